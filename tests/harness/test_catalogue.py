"""The catalogue works out late, and for what is asked, what an index of everything would hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness import shelf
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Catalogue, Claim, Oracle
from steeltrap.harness.record import Outcome
from steeltrap.harness.script import Header, Op, Step, Turn, tenant_of
from steeltrap.harness.shelf import Attic
from steeltrap.harness.statements import Statement, stated
from steeltrap.harness.verdict import Violation
from steeltrap.workloads.compose import ScriptSettings, compose


class Spelled:
    """Every plain sentence of every op, spelled out at once: what the catalogue must come to."""

    def __init__(self) -> None:
        self.claims: dict[str, dict[str, tuple[str, str | None]]] = {}
        """Sentence -> unit -> (meaning, value)."""

    def hear(self, turn: Turn) -> None:
        for op in turn.ops:
            said = stated(op, turn.at) if op.op != "associate" else None
            if said is None or op.unit is None:
                continue
            value = None if op.op in ("retract", "depend") else op.value
            meaning = {"retract": "withdraws", "rumour": "rumour", "depend": "rule"}.get(
                op.op, "states"
            )
            meaning = "past" if op.valid_at else meaning
            self._enter(said, op.unit, meaning, value)
            if said.sense == "states":
                event = Statement("past", said.topic, said.field, said.value, since=turn.at)
                self._enter(event, op.unit, "past", value)

    def _enter(self, said: Statement, unit: str, meaning: str, value: str | None) -> None:
        for text in (said.text, said.untopical.text):
            folded = " ".join(text.split())
            self.claims.setdefault(folded, {})[unit] = (meaning, value)

    def of(self, text: str, tenant: str) -> list[tuple[str, str, str | None]]:
        found = [(unit, *claim) for unit, claim in self.claims[text].items()]
        return [claim for claim in found if tenant_of(claim[0]) == tenant] or found


def told(claims: tuple[Claim, ...] | None) -> list[tuple[str, str, str | None]]:
    return [(claim.unit, claim.meaning, claim.value) for claim in claims or ()]


def compare(turns: list[Turn], header: Header, *, room: int | None = None) -> int:
    """Ask a catalogue for every plain sentence now and then, and for all of them at the end."""
    known, spelled, asked = Catalogue(header, Attic(room)), Spelled(), 0
    for number, turn in enumerate(turns):
        known.hear(turn, {})
        spelled.hear(turn)
        last = number == len(turns) - 1
        for text in list(spelled.claims) if last else list(spelled.claims)[-1:]:
            for tenant in {tenant_of(unit) for unit in spelled.claims[text]} | {"nobody"}:
                # not by `claims`, which reads what it does not know by heart, and often as well
                assert spelled.of(text, tenant) == told(known._plainly(text, tenant)), text
                asked += 1
    return asked


@pytest.mark.parametrize("room", [None, 3])
def test_plain_sentences_mean_what_an_index_of_all_would_say(room: int | None) -> None:
    """Whatever was stated in plain words is found by its parts as it would be by its spelling."""
    script = compose(ScriptSettings(name="adversarial", turns=250), 3)
    turns = [step for step in script.steps if isinstance(step, Turn)]
    assert compare(turns, script.header, room=room) > 500


NAMES = st.sampled_from(
    ["Atlas", "What is left of Rome", "the end", "set", "A  B", "x: the y", " as of now", "is was"]
)
VALUES = st.sampled_from([
    "date:2026-04-20", "date:0999-01-02", "count:12", "count:012", "count:1200", "measure:1500 m",
    "money:EUR 4300", "time:14:00", "code:KX-12", "name:Ilse Brandt", "text:no longer set",
    "text:12", "text:20 April 2026", "text:it is 5 until 6", "text:A  B", "name:x as of y.",
])  # fmt: skip
OPS = st.builds(
    Op,
    op=st.sampled_from(["tell", "revise", "revert", "correct", "restate", "retract", "rumour", "echo", "expire"]),
    unit=st.builds("{}/{}/{}".format, st.sampled_from(["acme", "bolt", ""]), NAMES, NAMES),
    value=VALUES,
    until=st.sampled_from([None, "2026-05-01T10:00"]),
    valid_at=st.sampled_from([None, None, "2026-01-01T10:00"]),
    source=st.sampled_from(["owner", "hearsay", "colleague: the boss"]),
)  # fmt: skip


@given(st.lists(st.lists(OPS, max_size=2), min_size=1, max_size=8), st.sampled_from([None, 1]))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_names_and_values_may_hold_any_words(said: list[list[Op]], room: int | None) -> None:
    """Names that read like parts of a sentence, and odd spellings of values, mislead nobody."""
    turns = [
        Turn(id=f"t{n}", at=f"2026-01-{n + 1:02d}T09:00", tenant="acme", session="s",
             text=f"Said {n}.", ops=ops)
        for n, ops in enumerate(said)
    ]  # fmt: skip
    compare(turns, Header(name="x"), room=room)


def own_words(step: Step) -> list[str]:
    """Texts as a system might write them itself."""
    found = []
    for op in step.ops if isinstance(step, Turn) else ():
        said = stated(op, step.at)
        if said and said.value:
            found.append(f"[{step.at}] {said.field} / {said.topic}: now {said.value}")
            found.append(f"{said.topic} had {said.value} as its {said.field}.")
    return found


@pytest.mark.parametrize("room", [None, 3])
def test_reading_late_reads_as_reading_from_the_start(room: int | None) -> None:
    """Phrases that are collected when a text has to be read are those that were collected by then."""
    script = compose(ScriptSettings(name="adversarial", turns=200), 5)
    early, late = Catalogue(script.header), Catalogue(script.header, Attic(room))
    early.claims(Item("Nothing that anybody said."), "acme")
    texts: list[str] = []
    for step in script.steps:
        if isinstance(step, Turn):
            early.hear(step, {})
            late.hear(step, {})
            texts += own_words(step)
        for change in step.changes:
            if change.value and change.cause == "derived":
                early.know(change.unit, change.value)
                late.know(change.unit, change.value)
    for text in texts:
        expected = early.claims(Item(text), "acme")
        assert expected == late.claims(Item(text), "acme")
    assert len(texts) > 200


@pytest.mark.parametrize("name", ["never-supersedes", "obeys-injection"])
def test_a_run_is_scored_alike_however_little_room_there_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Books that lie on disk say what books in memory say: violations, counts and curves."""
    script = compose(ScriptSettings(name="adversarial", turns=120), 1)
    memory, history = MUTANTS[name](), tmp_path / "history.jsonl"
    memory.told(script)
    memory.open(tmp_path)
    drive(memory, script, history, limit=10)
    able = read_header(history).capabilities

    def scored(room: int) -> tuple[list[Violation], Outcome]:
        monkeypatch.setattr(shelf, "ROOM", room)
        found = score(script, read_events(history), capabilities=able, reader=Oracle())
        return list(found.violations), found.outcome

    violations, outcome = scored(1 << 16)
    assert (violations, outcome) == scored(5)
    assert violations
