"""Random lives of a memory and of its plain model, compared after every step.

`python lives.py kuzu 8 40` lives 8 lives of 40 steps on that kind of store, each in a process of
its own, since an engine may take its process with it, and prints a line for each.
"""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from model import Model, Past, Shown

from steeltrap.reference_system.memory import Memory, Served
from steeltrap.reference_system.policy import PolicySet, default_policies
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.state import day as day_1970
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Question,
    Same,
    Statement,
    Withdrawal,
)

sys.path.insert(0, str(Path(__file__).parent))

TENANTS = ("acme", "acme:t1")
TITLES = ("Website", "website ", "Office-Move", "Budget", "Alice")
NAMES = ("deadline", "Deadlines", "cost", "Alice role", "Alice's phone", "Alice town", "role")
VALUES = ("1 March 2026", "2026-03-01", "100", "1,000", "red", "Red")
SOURCES = ("owner", "owner", "colleague", "hearsay", "content", "stranger")
RULES = (
    None,
    Rule("review"),
    Rule("same"),
    Rule("offset", days=7),
    Rule("scaled", times=1, over=2),
)
HALF_LIFE, BOUND = 10.0, 60
SETTINGS = {
    "half_life_days": HALF_LIFE, "bound": BOUND, "summary_at": 0.47, "remove_at": 0.13,
    "archive_at": 0.021, "roomy": 0.7,
}  # fmt: skip
LOOKED_UP = [(title, name) for title in ("Website", "Office Move", "Office-Move", "Budget", "Alice", "Else") for name in (*NAMES, "phone", "town")]  # fmt: skip


def policies() -> PolicySet:
    """The default set with thresholds that are reached."""
    lines = []
    for line in default_policies().describe().splitlines():
        name = line.split()[1] if line.startswith("SET ") else ""
        lines.append(f"SET {name} = {SETTINGS[name]}" if name in SETTINGS else line)
    return PolicySet.parse("\n".join(lines))


# ---------------------------------------------------------------- what can be said

tenants = st.sampled_from(TENANTS)
titles = st.sampled_from((*TITLES[:1] * 4, *TITLES))
names = st.sampled_from((*NAMES[:1] * 3, *NAMES))
places = st.builds(Place, titles, names)
ago = st.none() | st.integers(0, 12)
"""Days before now."""


@st.composite
def facts(draw: Any) -> tuple[Fact, int | None, int | None]:
    """A fact, with days since when and until when it holds."""
    name = draw(names)
    fact = Fact(
        draw(titles), name, draw(st.sampled_from(VALUES)), draw(st.sampled_from(SOURCES)),
        corrects=draw(st.sampled_from((False, False, False, True))),
        tags=draw(st.sampled_from(((), (), (), ("vital",), ("note",)))),
        about="Alice" if "Alice" in name else "",
        new_topic=draw(st.sampled_from((False,) * 7 + (True,))),
    )  # fmt: skip
    since = draw(st.sampled_from((None, None, None, 0, 2, 9, -3)))
    return fact, since, draw(st.sampled_from((None, None, None, None, 1, 6)))


others = st.one_of(
    st.builds(Withdrawal, titles, names, st.sampled_from(SOURCES)),
    st.builds(Dependency, places, places, st.sampled_from(RULES)),
    st.builds(Association, titles, titles),
    st.builds(Same, titles, titles | st.just("Else")),
)
said = st.lists(st.one_of(facts(), facts(), facts(), others), min_size=1, max_size=4)
passing = st.sampled_from((0, 1, 1, 1, 60, 1440, 1440, 4 * 1440, 17 * 1440, 90 * 1440))
"""Minutes."""


# ---------------------------------------------------------------- the machine


class Lives(RuleBasedStateMachine):
    """A memory and its model live through the same."""

    kind: Any = "plain"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.memory = Memory.open(self.folder / "m.db", self.kind, policies=policies())
        self.model = Model(
            half_life=HALF_LIFE, bound=BOUND, summary_at=0.47, remove_at=0.13, archive_at=0.021,
            roomy=0.7, ranks=["owner", "colleague", "hearsay", "content"], tie=self.tie,
        )  # fmt: skip
        self.time = datetime(2026, 1, 1, 9)
        self.turns = 0

    def teardown(self) -> None:
        self.memory.close()
        shutil.rmtree(self.folder)

    def tie(self, tenant: str, topic: int, field: int) -> str:
        """What forgetting looks at first among equals: an id."""
        mirror = self.memory._mirror
        topics = [t for t in mirror.of_tenant[tenant] if not mirror.topics[t].into]
        fields = [f for f in mirror.of_topic[topics[topic]] if not mirror.fields[f].into]
        return fields[field]

    @property
    def now(self) -> str:
        return self.time.isoformat()

    def days(self, number: float) -> str:
        """An instant some days from now."""
        return (self.time + timedelta(days=number)).isoformat()

    def statements(self, said: list[Any]) -> list[Statement]:
        """What is said now."""
        found: list[Statement] = []
        for one in said:
            if isinstance(one, tuple):
                fact, since, until = one
                found.append(Fact(
                    fact.topic, fact.field, fact.value, fact.said_by,
                    None if since is None else self.days(-since),
                    None if until is None else self.days(until + max(0, -(since or 0))),
                    fact.corrects, fact.tags, fact.about, fact.new_topic,
                ))  # fmt: skip
            else:
                found.append(one)
        return found

    # ------------------------------------------------------------ what happens

    @rule(minutes=passing)
    def pass_time(self, minutes: int) -> None:
        self.time += timedelta(minutes=minutes)

    @rule(tenant=tenants, said=said, minutes=passing, revise=st.booleans())
    def say(self, tenant: str, said: list[Any], minutes: int, revise: bool) -> None:
        self.time += timedelta(minutes=minutes)
        self.turns += 1
        turn, statements = f"{tenant}/{self.turns}", self.statements(said)
        try:
            self.tried(lambda model: model.ingest(tenant, self.now, turn, statements))
        except ValueError as refused:
            with pytest.raises(ValueError, match=str(refused)):
                self.memory.ingest(tenant, at=self.now, turn=turn, statements=statements)
            self.model.arrive(tenant, self.now)
            return
        self.memory.ingest(tenant, at=self.now, turn=turn, statements=statements)
        self.model.ingest(tenant, self.now, turn, statements)
        if revise:
            self.revise(tenant, False)

    def tried(self, what: Callable[[Model], None]) -> None:
        """What becomes of a copy that has room for everything."""
        twin = copy.copy(self.model)
        twin.homes, twin.bound = copy.deepcopy(self.model.homes), float("inf")
        what(twin)

    @rule(tenant=tenants, said=st.lists(facts(), min_size=2, max_size=6), minutes=passing)
    def say_much(self, tenant: str, said: list[Any], minutes: int) -> None:
        self.say(tenant, said, minutes, True)

    @rule(tenant=tenants, title=titles, value=st.sampled_from(VALUES), short=st.booleans())
    def say_of_alice(self, tenant: str, title: str, value: str, short: bool) -> None:
        """Enough about somebody to make a topic of her."""
        who = ("role", "phone", "town") if short else NAMES[3:6]
        facts = [Fact(title, name, value, about="Alice") for name in who]
        self.say(tenant, [*facts, *facts], 1, False)
        self.revise(tenant, True)

    @rule(
        tenant=tenants, chain=st.lists(places, min_size=2, max_size=4), closed=st.booleans(),
        how=st.lists(st.sampled_from(RULES[2:]), min_size=4, max_size=4), value=st.sampled_from(VALUES),
        source=st.sampled_from(SOURCES[:3]), minutes=passing,
    )  # fmt: skip
    def say_what_follows(self, tenant: str, chain: list[Place], closed: bool, how: list[Rule], value: str, source: str, minutes: int) -> None:  # fmt: skip
        """Fields that follow one from another, in a circle perhaps, and a change to the first."""
        ends = zip(chain, [*chain[1:], *chain[:1]] if closed else chain[1:], how, strict=False)
        for one, other, way in ends:
            self.say(tenant, [Dependency(one, other, way)], 0, False)
        first = Fact(chain[0].topic, chain[0].field, value, source)
        self.say(tenant, [(first, None, None)], minutes, True)

    @rule(tenant=tenants, search=st.booleans())
    def revise(self, tenant: str, search: bool) -> None:
        self.memory.revise(tenant, at=self.now, search=search)
        self.model.revise(tenant, self.now, search=search)

    @rule(tenant=tenants)
    def forget(self, tenant: str) -> None:
        self.memory.forget(tenant, at=self.now)
        self.model.forget(tenant, self.now)

    @rule(
        tenant=tenants, places=st.lists(places | st.builds(Place, titles, st.just("")), min_size=1, max_size=3),
        mode=st.sampled_from(("topic", "topic", "temporal", "structural")), as_of=ago, by=ago,
        minutes=passing,
    )  # fmt: skip
    def ask(self, tenant: str, places: list[Place], mode: Any, as_of: int | None, by: int | None, minutes: int) -> None:  # fmt: skip
        self.time += timedelta(minutes=minutes)
        self.asked(self.memory, self.model, tenant, self.question(places, mode, as_of, by))

    def question(self, places: list[Place], mode: Any, as_of: int | None, by: int | None) -> Question:  # fmt: skip
        when = {"as_of": as_of, "recorded_by": by} if mode == "temporal" else {}
        return Question("", tuple(places), mode, **{n: self.days(-d) for n, d in when.items() if d is not None})  # fmt: skip

    def asked(self, memory: Memory, model: Model, tenant: str, question: Question) -> None:
        """Both answer the same, and what was read has risen."""
        before = {f.id: f.salience for f in memory._mirror.fields.values()}
        answer = memory.retrieve(tenant, question, at=self.now, limit=1000)
        expected = model.retrieve(tenant, self.now, question)
        assert len(answer.served) == len(expected)
        presents, pasts = [*map(shown, answer.served)], [*map(past, answer.served)]
        for one in expected:
            where = presents.index(one) if isinstance(one, Shown) else pasts.index(one)
            del presents[where], pasts[where]
        if question.mode == "topic":
            saliences = [s.salience or 0.0 for s in answer.served]
            assert saliences == sorted(saliences, reverse=True)
        read = {self.survivor(memory, s.id.split("#")[0]) for s in answer.served}
        for f in memory._mirror.fields.values():
            risen = f.salience > before[f.id]
            assert risen or f.id not in read
            assert not risen or f.tenant == tenant

    def survivor(self, memory: Memory, name: str) -> str:
        """The field that a field was merged into."""
        into = memory._mirror.fields[name].into
        return self.survivor(memory, into) if into else name

    @rule(tenant=tenants, place=places)
    def restore(self, tenant: str, place: Place) -> None:
        try:
            self.memory.restore(tenant, place.topic, place.field, at=self.now)
        except KeyError:
            assert self.model.unit(tenant, place.topic, place.field) is None
            return
        self.model.restore(tenant, place.topic, place.field, self.now)

    @rule(
        tenant=tenants,
        place=places,
        what=st.sampled_from(("field",) * 6 + ("topic",) * 3 + ("tenant",)),
    )
    def erase(self, tenant: str, place: Place, what: str) -> None:
        where = {"field": (place.topic, place.field), "topic": (place.topic,), "tenant": ()}[what]
        try:
            self.memory.erase(tenant, *where)
        except KeyError:
            with pytest.raises(KeyError):
                self.model.erase(tenant, *where)
            return
        self.model.erase(tenant, *where)

    @rule()
    def checkpoint(self) -> None:
        self.memory.checkpoint()

    @rule()
    def reopen(self) -> None:
        if self.kind != "plain":
            self.memory.close()
            self.memory = Memory.open(self.folder / "m.db", self.kind)

    @rule(tenant=tenants, places=st.lists(places, min_size=1, max_size=2), mode=st.sampled_from(("topic", "temporal")), said=said)  # fmt: skip
    def fork(self, tenant: str, places: list[Place], mode: Any, said: list[Any]) -> None:
        """A copy answers as the original would, may be written to, and leaves it alone."""
        before = list(self.memory._store.load())
        twin, other = self.memory.fork(), copy.copy(self.model)
        other.homes = copy.deepcopy(self.model.homes)
        self.asked(twin, other, tenant, self.question(places, mode, None, None))
        with suppress(ValueError):
            twin.ingest(tenant, at=self.now, turn=f"{tenant}/fork", statements=self.statements(said))  # fmt: skip
        twin.revise(tenant, at=self.now, search=True)
        wrong = twin.check()
        assert not wrong, wrong
        assert before == list(self.memory._store.load())

    # ------------------------------------------------------------ what is true after every step

    @invariant()
    def same(self) -> None:
        for tenant in TENANTS:
            self.compare(tenant)

    def compare(self, tenant: str) -> None:
        memory, model = self.memory, self.model
        clock = memory._mirror.clocks.get(tenant, "")
        active = memory.active(tenant)
        assert sorted(map(repr, map(shown, active))) == sorted(
            map(repr, model.contents(tenant, clock))
        )
        tokens = sum(-(-len(served.text) // 4) for served in active)
        assert memory.footprint(tenant) == tokens == model.footprint(tenant, clock)
        at = max(self.now, clock)
        model.arrive(tenant, at)
        assert sorted(map(repr, map(shown, memory.active(tenant, at=at)))) == sorted(map(repr, model.contents(tenant, at)))  # fmt: skip
        clock = memory._mirror.clocks.get(tenant, "")
        for title, name in LOOKED_UP:
            unit = model.unit(tenant, title, name)
            found = [past(served) for served in memory.history(tenant, title, name)]
            assert found == model.history(tenant, title, name)
            held = memory.lookup(tenant, title, name)
            assert (held is not None) == (unit is not None and unit.holds(clock))
            if held is not None and unit is not None:
                assert shown(held) == model.shown(tenant, model.host_of(tenant, unit), unit)
            salience = memory.salience(tenant, title, name)
            if unit is None or not unit.accesses:
                assert salience is None
            else:
                start = day_1970("2026-01-01T00:00:00")
                assert salience == pytest.approx(model.stored(unit) + start, rel=1e-9)
        for served in active:
            assert all(turn.startswith(f"{tenant}/") for turn in served.turns)

    @invariant()
    def sound(self) -> None:
        wrong = self.memory.check()
        assert not wrong, wrong


def shown(served: Served) -> Shown:
    """A present value."""
    return Shown(
        served.topic, served.field, served.value, served.valid_from, served.valid_to, served.turns,
        served.said_by, served.review,
    )  # fmt: skip


def past(served: Served) -> Past:
    """A value of a history."""
    return Past(
        served.value, served.valid_from, served.valid_to, served.turns, served.said_by,
        served.never_true,
    )  # fmt: skip


def live(
    kind: str, examples: int, steps: int, *, seed: int | None = None, shrink: bool = True
) -> None:
    """Random lives of a kind of store, the same every time if a seed is given."""
    machine = type("Lives", (Lives,), {"kind": kind})
    if seed is not None:
        machine = hypothesis.seed(seed)(machine)
    phases = [p for p in Phase if p is not Phase.explain and (shrink or p is not Phase.shrink)]
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), print_blob=False, phases=phases,
        ),
    )  # fmt: skip


def main(kind: str, lives: int, steps: int) -> None:
    """Live each life in a process of its own."""
    path = os.pathsep.join(filter(None, sys.path))
    for seed in range(lives):
        child = subprocess.run(
            [sys.executable, __file__, kind, "seed", str(seed), str(steps)],
            env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        said = child.stderr.strip().splitlines()
        why = f"fails ({child.returncode}): {next((s for s in said if 'Error' in s), said[-1:])}"
        print(
            f"{kind}, life {seed}: {why if child.returncode else 'as the model'}"[:300], flush=True
        )


if __name__ == "__main__":
    if sys.argv[2] == "seed":
        live(sys.argv[1], 8, int(sys.argv[4]), seed=int(sys.argv[3]), shrink=False)
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
