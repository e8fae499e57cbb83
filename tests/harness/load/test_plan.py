from __future__ import annotations

import hashlib
from itertools import pairwise

import msgspec
import pytest

from steeltrap.harness.load import LoadSettings, planned
from steeltrap.harness.load.plan import Operation
from steeltrap.harness.script import Turn, tenant_of

SETTINGS = LoadSettings(seconds=3, tenants=3)


def test_a_load_follows_from_its_settings_and_its_seed() -> None:
    """The same settings give the same script and the same times, on every machine; another seed,
    other ones.
    """
    one, other = planned(SETTINGS, 80), planned(SETTINGS, 80)
    assert one.script.sha256() == other.script.sha256()
    assert one.operations == other.operations
    times = hashlib.sha256(msgspec.json.encode(one.operations)).hexdigest()
    assert (one.script.sha256()[:16], times[:16]) == ("f0e3ca5ad4f01cff", "67d65c8f92ad6e0e")
    assert planned(msgspec.structs.replace(SETTINGS, seed=1), 80).operations != one.operations


def test_no_value_is_given_twice_and_no_unit_has_two_tenants() -> None:
    """Whatever is served names the write that it came from, and so its tenant."""
    plan = planned(SETTINGS, 400)
    told = [step for step in plan.script.steps if isinstance(step, Turn)]
    codes = [turn.ops[0].value for turn in told]
    assert len(set(codes)) == len(codes) > 400
    assert all(tenant_of(turn.ops[0].unit or "") == turn.tenant for turn in told)
    assert len({turn.text for turn in told}) == len(told)


@pytest.mark.parametrize(("arrivals", "spread"), [("poisson", True), ("constant", False)])
def test_operations_come_at_the_rate_that_was_asked_for(arrivals: str, spread: bool) -> None:
    """About so many a second, at equal distances or by chance, in order, up to the end."""
    settings = LoadSettings(seconds=10, arrivals=arrivals, traced=0.0)  # type: ignore[arg-type]
    times = [operation.at_s for operation in planned(settings, 200).operations]
    assert times == sorted(times)
    assert times[-1] < 10
    assert abs(len(times) - 2000) < (180 if spread else 2)
    gaps = {round(later - before, 4) for before, later in pairwise(times)}
    assert (len(gaps) > 50) is spread


def test_a_look_follows_its_write_and_ends_with_the_next_one() -> None:
    """A traced write is looked for from its start on, as long as nothing takes its place."""
    plan = planned(LoadSettings(seconds=3, tenants=1, traced=1.0), 30)
    steps = plan.script.steps
    writes: dict[str, Operation] = {}
    polls = 0
    for operation in plan.operations:
        step = steps[operation.step]
        if isinstance(step, Turn):
            writes[step.ops[0].unit or ""] = operation
        elif operation.kind == "poll":
            polls += 1
            write = writes[step.unit]  # type: ignore[union-attr]
            assert operation.of == write.step
            assert operation.at_s >= write.at_s
    assert polls > 100


@pytest.mark.parametrize(
    ("settings", "rate", "words"),
    [
        ({"seconds": 0}, 10, "seconds=0"),
        ({"tenants": 0}, 10, "tenants=0"),
        ({"writes": 0}, 10, "writes=0"),
        ({"writes": 1.5}, 10, "writes=1.5"),
        ({}, 0, "rate=0"),
    ],
)
def test_what_makes_no_load_is_refused(settings: dict[str, float], rate: float, words: str) -> None:
    """Numbers that make no load are named, with what would."""
    with pytest.raises(ValueError, match=words):
        planned(LoadSettings(**settings), rate)  # type: ignore[arg-type]
