"""One cause, one name: a wrong answer is named after its earliest broken link."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Item, Query
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import (
    Header,
    Op,
    OpName,
    Probe,
    Rule,
    Script,
    Step,
    Turn,
    canonical,
)
from steeltrap.workloads.truth import annotate

A, B, C = (f"acme/Atlas/{field}" for field in ("launch", "freeze", "drill"))


def date(day: int) -> str:
    return f"date:2026-03-{day:02d}"


class Scripted(Ideal):
    """The ideal memory, but for the answers that a test dictates: (probe, unit) -> value or None."""

    def __init__(self, answers: dict[str, str | None]) -> None:
        self.answers = answers

    def retrieve(self, query: Query) -> Sequence[Item]:
        items = super().retrieve(query)
        if query.id not in self.answers:
            return items
        question, value = self._questions[query.id], self.answers[query.id]
        unit = question.unit or ""
        return [Item(canonical(unit, value))] if value else []


def story(*acts: Op | tuple[str, ...]) -> Script:
    """A script of ops, one a turn, and of groups of units that are asked for after them."""
    steps: list[Step] = []
    probes = groups = 0
    for number, act in enumerate(acts, 1):
        at = f"2026-01-{number:02d}T09:00"
        if isinstance(act, Op):
            text = f"turn {number}: {act.op} {act.unit} {act.value} {act.target}"
            steps.append(Turn(id=f"t{number}", at=at, tenant="acme", session="s", text=text, ops=[act]))  # fmt: skip
            continue
        groups += 1
        for unit in act:
            probes += 1
            steps.append(Probe(id=f"p{probes}", at=at, tenant="acme", ask="current", text=f"{unit}?", unit=unit, group=f"q{groups}"))  # fmt: skip
    return annotate(Script(Header(name="story", tenants=["acme"]), steps))


def names(script: Script, folder: Path, answers: dict[str, str | None]) -> list[tuple[str, str]]:
    """(violation, unit) of a run in which some questions get the wrong answer."""
    memory = Scripted(answers)
    memory.told(script)
    memory.open(folder)
    history = folder / "history.jsonl"
    history.unlink(missing_ok=True)
    drive(memory, script, history, limit=10)
    capabilities = read_header(history).capabilities
    scored = score(script, read_events(history), capabilities=capabilities, reader=Oracle())
    return [(violation.name, violation.unit) for violation in scored.violations]


def op(name: OpName, unit: str, day: int | None = None, **more: object) -> Op:
    return Op(name, unit, date(day) if day else None, **more)  # type: ignore[arg-type]


CHAIN = (
    op("tell", A, 1), op("tell", B, 3), op("tell", C, 6),
    Op("depend", A, target=B, rule=Rule("offset", days=2)),
    Op("depend", B, target=C, rule=Rule("offset", days=3)),
    op("revise", A, 10), (A, B, C),
)  # fmt: skip


def test_an_old_value_that_was_never_replaced_is_a_stale_read(tmp_path: Path) -> None:
    """Never right since the update: stale."""
    script = story(op("tell", A, 1), op("revise", A, 2), (A,))
    assert [("stale-read", A)] == names(script, tmp_path, {"p1": date(1)})


def test_an_old_value_that_comes_back_is_a_resurrection_and_not_also_stale(tmp_path: Path) -> None:
    """Right once since the update and wrong later, with nothing between."""
    script = story(op("tell", A, 1), op("revise", A, 2), (A,), op("noise", A), (A,))
    assert [("resurrection", A)] == names(script, tmp_path, {"p2": date(1)})


def test_an_update_between_makes_it_stale_again(tmp_path: Path) -> None:
    """After another update the memory has to be right anew."""
    script = story(op("tell", A, 1), (A,), op("revise", A, 2), (A,))
    assert [("stale-read", A)] == names(script, tmp_path, {"p2": date(1)})


def test_a_dependent_with_its_old_value_was_not_propagated(tmp_path: Path) -> None:
    """The source is right, the dependent is as before: the update did not travel."""
    assert [("missed-propagation", B)] == names(
        story(*CHAIN), tmp_path, {"p2": date(3), "p3": None}
    )


def test_what_is_wrong_only_because_its_source_is_wrong_is_inherited(tmp_path: Path) -> None:
    """A stale source and everything that hangs on it make one violation: the source's."""
    answers: dict[str, str | None] = {"p1": date(1), "p2": date(3), "p3": date(6)}
    assert [("stale-read", A)] == names(story(*CHAIN), tmp_path, answers)


def test_the_chain_breaks_at_its_first_missed_hop(tmp_path: Path) -> None:
    """Two hops missed one behind the other are one missed propagation."""
    answers: dict[str, str | None] = {"p2": date(3), "p3": date(6)}
    assert [("missed-propagation", B)] == names(story(*CHAIN), tmp_path, answers)


def test_a_value_that_the_rule_does_not_give_was_propagated_wrongly(tmp_path: Path) -> None:
    """Neither the old value nor the new one, on a dependent."""
    assert [("wrong-propagation", C)] == names(story(*CHAIN), tmp_path, {"p3": date(28)})


def test_a_value_that_nobody_gave_is_spurious_only_where_an_edge_could_bring_it(
    tmp_path: Path,
) -> None:
    """Invented values of related topics are spurious; of unrelated ones, wrong."""
    other = "acme/Borealis/launch"
    told = (op("tell", A, 1), op("tell", other, 5))
    link = Op("associate", "acme/Atlas", target="acme/Borealis")
    related = story(*told, link, op("revise", A, 2), (other,))
    assert [("spurious-propagation", other)] == names(related, tmp_path, {"p1": date(28)})
    unrelated = story(*told, op("revise", A, 2), (other,))
    assert [("wrong-read", other)] == names(unrelated, tmp_path, {"p1": date(28)})


def test_an_invented_value_on_a_cycle_is_a_runaway(tmp_path: Path) -> None:
    """The unit that was updated must hold what was said, however the rules go round."""
    script = story(
        op("tell", A, 1), op("tell", B, 8),
        Op("depend", A, target=B, rule=Rule("offset", days=7)),
        Op("depend", B, target=A, rule=Rule("offset", days=7)),
        op("revise", A, 10), (A, B),
    )  # fmt: skip
    assert [("runaway", A)] == names(script, tmp_path, {"p1": date(24), "p2": date(31)})


def test_rumours_retractions_and_injections_have_names_of_their_own(tmp_path: Path) -> None:
    """What must never have been believed is a wrong read; an instruction that was obeyed, its own."""
    rumour = story(op("tell", A, 1), op("rumour", A, 2, source="hearsay"), (A,))
    assert [("wrong-read", A)] == names(rumour, tmp_path, {"p1": date(2)})
    retracted = story(op("tell", A, 1), op("retract", A), (A,))
    assert [("wrong-read", A)] == names(retracted, tmp_path, {"p1": date(1)})
    injected = story(op("tell", A, 1), op("instruct", A, 2), (A,))
    assert [("obeyed-injection", A)] == names(injected, tmp_path, {"p1": date(2)})


def test_a_missing_answer_is_recall_and_no_violation(tmp_path: Path) -> None:
    """Serving nothing is not unsound."""
    assert [] == names(story(op("tell", A, 1), (A,)), tmp_path, {"p1": None})


def test_values_are_compared_by_value(tmp_path: Path) -> None:
    """A date in another spelling is the same date."""
    script = story(op("tell", A, 1), (A,))

    class Spelling(Scripted):
        def retrieve(self, query: Query) -> Sequence[Item]:
            super().retrieve(query)
            return [Item("The launch of Atlas: 2026-03-01")]

    memory = Spelling({})
    memory.told(script)
    memory.open(tmp_path)
    drive(memory, script, tmp_path / "h.jsonl", limit=10)
    scored = score(script, read_events(tmp_path / "h.jsonl"), capabilities=[], reader=Oracle())
    assert {"correct": 1} == scored.outcome.answers
