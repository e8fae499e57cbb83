"""The paper's figure 1: three weekly snapshots of the project record Website Redesign.

Week 0: the record is stored, and lunch preferences are discussed. Week 1: the user explains the
task again (the record is stored twice), the deadline moves from March 15 to April 20, and what
hangs on the deadline should follow. Week 2: room is short; the deadline, asked for every week,
must outlive the lunch preferences. The four failures that the figure marks are looked for where
they show: growth (C5 over-bound), missing revision (C1, C2, C3), forgetting by age (C5
inverted-retention), read-only retrieval (C6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from steeltrap.harness.script import (
    Audit,
    Gauge,
    Header,
    Op,
    Pause,
    Probe,
    Rule,
    Script,
    Step,
    Swap,
    Turn,
    TwinSpec,
)
from steeltrap.workloads.truth import annotate

__all__ = ["figure_1"]

TOPIC = "acme/Website Redesign"
DEADLINE = f"{TOPIC}/deadline"
MILESTONE = f"{TOPIC}/milestone"
LEAD = f"{TOPIC}/lead"
LUNCH = "acme/Lunch preferences/usual order"
UNITS = (DEADLINE, MILESTONE, LEAD, LUNCH)
QUESTIONS = {
    DEADLINE: "What is the deadline of Website Redesign?",
    MILESTONE: "When is the milestone of Website Redesign?",
    LEAD: "Who leads Website Redesign?",
    LUNCH: "What is the usual order for lunch?",
}
SMALL_TALK = (
    "Discussed lunch preferences again; nobody agreed on a place.",
    "The coffee machine on our floor is being descaled this week.",
    "Someone left an umbrella in the meeting room, blue handle.",
    "We joked about the office plants for most of the stand-up.",
    "The window blinds are stuck half-way again.",
    "Traffic was dreadful this morning, everybody came in late.",
    "The new chairs have arrived and they squeak.",
    "There is cake in the kitchen for whoever wants some.",
    "The lift is out of order, so use the stairs.",
    "Somebody has borrowed the label printer once more.",
    "Talked about the weather while the build was running.",
    "The cleaning rota hangs by the door now.",
)


@dataclass
class _Week:
    """Collects the steps of the weeks, an hour apart."""

    now: datetime = datetime(2026, 3, 2, 9, 0)
    steps: list[Step] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def at(self) -> str:
        return self.now.isoformat(timespec="minutes")

    def id(self, prefix: str) -> str:
        self.counts[prefix] = number = self.counts.get(prefix, 0) + 1
        return f"{prefix}{number:04d}"

    def say(self, text: str, *ops: Op) -> None:
        self.now += timedelta(hours=1)
        week = 1 + (self.now - datetime(2026, 3, 2)).days // 7
        self.steps.append(Turn(
            id=self.id("t"), at=self.at, tenant="acme", session=f"week-{week - 1}", text=text,
            ops=list(ops) or [Op("noise")], family="figure-1",
        ))  # fmt: skip

    def group(self, *units: str, lag: int | None = None) -> None:
        group = self.id("q")
        for unit in units:
            self.probe(unit, group=group, lag=lag)

    def probe(self, unit: str, **more: object) -> None:
        self.steps.append(Probe(
            id=self.id("p"), at=self.at, tenant="acme", ask="current", text=QUESTIONS[unit],
            unit=unit, family="figure-1", **more,  # type: ignore[arg-type]
        ))  # fmt: skip

    def read_deadline(self) -> None:
        """The weekly question; in the other twin it is the lunch order that is asked for."""
        swap = Swap("weekly-question", LUNCH, QUESTIONS[LUNCH])
        self.probe(DEADLINE, observe="in-script", swap=swap, control=LUNCH, group=self.id("q"))

    def rank(self) -> None:
        self.steps.append(Probe(
            id=self.id("p"), at=self.at, tenant="acme", ask="rank", family="figure-1",
            text="What do you have on file about the Website Redesign deadline and the lunch order?",
            units=tuple(sorted((DEADLINE, LUNCH))), group=self.id("q"),
        ))  # fmt: skip

    def snapshot(self) -> None:
        """A full look at the state, and the next week begins."""
        self.steps.append(Gauge(id=self.id("g"), at=self.at, full=True))
        group = self.id("q")
        for unit in UNITS:
            self.probe(unit, group=group)
        for unit in UNITS:
            self.steps.append(Audit(
                id=self.id("a"), at=self.at, tenant="acme", unit=unit, group=group,
                text=f"List every answer there ever was to: {QUESTIONS[unit]}", family="figure-1",
            ))  # fmt: skip
        self.now += timedelta(days=1)
        self.steps.append(Pause(id=self.id("m"), at=self.at, tenant="acme"))
        self.now += timedelta(days=7 - self.now.weekday())
        self.now = self.now.replace(hour=9)


def _week_0(week: _Week) -> None:
    week.say(
        "Website Redesign | Deadline: March 15",
        Op("tell", DEADLINE, "date:2026-03-15", importance="vital"),
    )
    week.group(DEADLINE, lag=0)
    week.say(
        "Website Redesign | Milestone: March 1, that is always 14 days before the deadline",
        Op("tell", MILESTONE, "date:2026-03-01"),
        Op("depend", DEADLINE, target=MILESTONE, rule=Rule("offset", days=-14)),
    )
    week.say("Website Redesign | Lead: Alice", Op("tell", LEAD, "name:Alice"))
    week.group(DEADLINE, MILESTONE, LEAD, lag=0)
    week.say(
        "Discussed lunch preferences | usual order: lentil soup",
        Op("tell", LUNCH, "text:lentil soup", importance="trivial"),
    )
    week.group(LUNCH, lag=0)
    week.rank()
    week.read_deadline()
    week.snapshot()


def _week_1(week: _Week) -> None:
    week.say(
        "Let me explain the task again. Website Redesign | Deadline: March 15",
        Op("restate", DEADLINE, "date:2026-03-15"),
    )
    week.say("Deadline UPDATED: April 20", Op("revise", DEADLINE, "date:2026-04-20"))
    week.group(DEADLINE, MILESTONE, lag=0)
    for text in SMALL_TALK[:4]:
        week.say(text)
    week.read_deadline()
    week.snapshot()


def _week_2(week: _Week) -> None:
    for text in SMALL_TALK[4:8]:
        week.say(text)
    week.read_deadline()
    week.say(
        "Discussed lunch preferences once more | usual order: lentil soup",
        Op("restate", LUNCH, "text:lentil soup"),
    )
    for text in SMALL_TALK[8:]:
        week.say(text)
    week.group(DEADLINE, LUNCH)
    week.rank()
    week.read_deadline()
    week.snapshot()


def _twins(week: _Week) -> Iterator[TwinSpec]:
    last_rank = [s.id for s in week.steps if isinstance(s, Probe) and s.ask == "rank"][-1]
    yield TwinSpec("weekly-question", DEADLINE, LUNCH, last_rank)


def figure_1(seed: int = 0) -> Script:
    """The script; the seed changes nothing but the header, for the figure is one story."""
    week = _Week()
    for act in (_week_0, _week_1, _week_2):
        act(week)
    header = Header(
        name="figure-1", seed=seed, tenants=["acme"], alpha=2.0, constant_tokens=0,
        words={"deadline": ["due date"], "usual order": ["lunch preferences"]},
        twins=list(_twins(week)),
    )  # fmt: skip
    return annotate(Script(header, week.steps))
