"""What came of each family: the tallies of the conditions, told apart by whose units they are of."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Outcome
from steeltrap.harness.script import Audit, Gauge, Header, Op, Probe, Script, Turn
from steeltrap.harness.verdict import CONDITION_OF
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.truth import annotate

MIX = {"revision-chain": 1.0, "restatement-flood": 1.0, "retraction": 1.0}


def outcome(kind: type[Ideal], script: Script) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        memory, history = kind(), Path(folder) / "history"
        memory.told(script)
        memory.open(Path(folder))
        drive(memory, script, history, limit=10)
        able = read_header(history).capabilities
        return score(script, read_events(history), capabilities=able, reader=Oracle()).outcome


@pytest.fixture(scope="module")
def mixed() -> Script:
    return compose(ScriptSettings(name="mixed", turns=120, families=MIX), 4)


@pytest.mark.parametrize("name", ["never-supersedes", "ignores-retraction", "drops-sources"])
def test_the_families_add_up_to_the_whole(mixed: Script, name: str) -> None:
    """Summed over families, violations and opportunities of a condition are those of its verdict."""
    found = outcome(MUTANTS[name], mixed)
    for condition, verdict in found.verdicts.items():
        rows = [counts.get(condition, [0, 0]) for counts in found.by_family.values()]
        assert [verdict.violations, verdict.opportunities] == [sum(col) for col in zip(*rows, strict=True)]  # fmt: skip


def test_a_violation_stands_under_the_family_of_its_unit(mixed: Script) -> None:
    """What a mutant of withdrawals gets wrong stands under withdrawals, also where an audit showed it."""
    found = outcome(MUTANTS["ignores-retraction"], mixed)
    wrong = {family for family, counts in found.by_family.items() for c, row in counts.items() if c != "missing" and row[0]}  # fmt: skip
    assert {"retraction"} == wrong
    assert found.by_family["retraction"]["C2"][0]


def test_silence_is_counted_beside_the_conditions(mixed: Script) -> None:
    """`missing` counts the set values that were asked for, and those that were not answered."""

    class Deaf(Ideal):
        def present(self, name: str) -> list:  # type: ignore[type-arg]
            return [] if self._family(name) == "retraction" else super().present(name)

        def _family(self, name: str) -> str:
            turns = (t for t in self._turns.values() if any(op.unit == name for op in t.ops))
            return next(turns).family

    found = outcome(Deaf, mixed).by_family
    silent, asked = found["retraction"]["missing"]
    assert silent == asked > 0
    assert 0 == found["revision-chain"]["missing"][0]


def test_what_a_family_tests_can_be_declared(mixed: Script) -> None:
    """Where the script says what a family is there for, only that is told of it, tested or not."""
    script = Script(msgspec.structs.replace(mixed.header), mixed.steps)
    script.header.settings = {"conditions": {"retraction": ["C2", "leak", "wrong-read"]}}
    found = outcome(MUTANTS["ignores-retraction"], script).by_family
    assert {"C2", "leak", "wrong-read", "missing"} == set(found["retraction"])
    assert [0, 0] == found["retraction"]["leak"]
    assert found["retraction"]["wrong-read"][0] and "wrong-read" in CONDITION_OF
    assert "C4" in found["revision-chain"]


# ---------------------------------------------------------------- looks at one tenant alone


def two_tenants() -> Script:
    """One says much, the other a little; each is looked at by itself."""

    def turn(i: int, tenant: str, op: Op, text: str) -> Turn:
        return Turn(id=f"t{i}", at=f"2026-03-01T09:{i:02d}", tenant=tenant, session="s", text=text, ops=[op])  # fmt: skip

    a, b = "ann/Atlas/lead", "bob/Birch/lead"
    steps = [
        turn(1, "ann", Op("tell", a, "name:Ada Moss"), "The lead of Atlas is Ada Moss."),
        turn(2, "bob", Op("tell", b, "name:Bea Lund"), "The lead of Birch is Bea Lund."),
        Probe(id="p1", at="2026-03-01T09:03", tenant="bob", ask="current", text="Who leads Birch?", unit=b),
        turn(4, "bob", Op("revise", b, "name:Cy Holm"), "The lead of Birch is Cy Holm now."),
        Probe(id="p2", at="2026-03-01T09:04", tenant="bob", ask="current", text="Who leads Birch?", unit=b),
        *(turn(n, "ann", Op("noise"), f"Small talk, number {n}, about the weather and the rain.") for n in range(5, 20)),
        Gauge(id="g1", at="2026-03-01T10:00", tenant="ann", full=True),
        Gauge(id="g2", at="2026-03-01T10:01", tenant="bob", full=True),
        Audit(id="a1", at="2026-03-01T10:01", tenant="bob", unit=b, text="Who ever led Birch?"),
    ]  # fmt: skip
    header = Header(name="two", tenants=["ann", "bob"], alpha=2.0, constant_tokens=16)
    return annotate(Script(header, steps))


def test_a_look_at_one_tenant_is_held_against_its_own_footprint() -> None:
    """The bound is of the tenant: what another one keeps does not count, and is no point of the curve."""
    script = two_tenants()
    assert [(1, 8), (1, 8)] == [s.footprint for s in script.steps if isinstance(s, Gauge)]
    found = outcome(MUTANTS["keeps-noise"], script)
    assert [1, 2] == [found.verdicts["C5"].names["over-bound"].violations, found.verdicts["C5"].names["over-bound"].opportunities]  # fmt: skip
    assert [] == found.footprint


def test_a_look_at_one_tenant_says_nothing_of_another() -> None:
    """The state of a tenant that was not listed is not taken for an empty one."""
    found = outcome(MUTANTS["lists-superseded"], two_tenants())
    tally = found.verdicts["C2"].names["superseded-active"]
    assert (1, 1) == (tally.violations, tally.opportunities)
