"""What is left of a script is made a true script again, and can be said more simply."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steeltrap.harness.script import (
    Erasure,
    Header,
    Op,
    Probe,
    Rule,
    Script,
    Turn,
    TwinSpec,
)
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import EVERY
from steeltrap.workloads.retell import ALL, retold
from steeltrap.workloads.simpler import SIMPLER, numbered
from steeltrap.workloads.wild import conversation

A, B = "acme/Atlas/deadline", "acme/Borealis/deadline"
FIRST, SECOND, THIRD = "date:2026-05-01", "date:2026-06-01", "date:2026-07-01"


def turn(number: int, *ops: Op) -> Turn:
    at = f"2026-01-{number:02d}T10:00"
    return Turn(id=f"t{number}", at=at, tenant="acme", session="s", text=f"Turn {number}.", ops=list(ops))  # fmt: skip


def ops_of(*turns: Turn) -> list[str]:
    made = retold(Header(name="x", tenants=["acme"]), turns)
    if made is None:
        return []
    return [op.op for step in made.steps if isinstance(step, Turn) for op in step.ops]


def checked(script: Script, folder: Path) -> None:
    path = folder / "script.jsonl"
    script.write(path)
    check(path)


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        ([Op("revise", A, FIRST)], ["tell"]),
        ([Op("revert", A, FIRST)], ["tell"]),
        ([Op("correct", A, FIRST)], ["tell"]),
        ([Op("restate", A, FIRST)], ["tell"]),
        ([Op("retract", A)], []),
        ([Op("echo", A, FIRST)], []),
        ([Op("rumour", A, FIRST, source="hearsay")], []),
        ([Op("instruct", A, FIRST)], []),
        ([Op("tell", A, FIRST), Op("revise", A, FIRST)], ["tell", "restate"]),
        ([Op("tell", A, FIRST), Op("restate", A, SECOND)], ["tell", "revise"]),
        ([Op("tell", A, FIRST), Op("revert", A, SECOND)], ["tell", "revise"]),
        ([Op("tell", A, FIRST), Op("correct", A, FIRST)], ["tell"]),
        ([Op("tell", A, FIRST), Op("echo", A, FIRST)], ["tell"]),
        ([Op("tell", A, FIRST), Op("depend", A, target=B, rule=Rule("same"))], ["tell"]),
        ([Op("tell", A, FIRST), Op("associate", "acme/Atlas", target="acme/Borealis")], ["tell"]),
        (
            [Op("tell", A, FIRST), Op("revise", A, SECOND), Op("revert", A, FIRST)],
            ["tell", "revise", "revert"],
        ),
    ],
)
def test_ops_become_what_they_amount_to(said: list[Op], becomes: list[str]) -> None:
    """A tell comes first, restating repeats, returning returns; what makes no sense goes."""
    assert ops_of(*(turn(n, op) for n, op in enumerate(said, 1))) == becomes
    assert ops_of(turn(1, *said)) == becomes


def test_what_makes_sense_stays_as_it_is() -> None:
    """A script that lacks nothing is the same script, but for lags."""
    for number, family in enumerate(EVERY):
        alone = ScriptSettings(name=family, turns=40, families={family: 1.0}, lags={0: 1.0})
        script = compose(alone, number)
        made = retold(script.header, script.steps)
        assert made is not None
        for given_step, step in zip(script.steps, made.steps, strict=True):
            if isinstance(step, Probe) and isinstance(given_step, Probe):
                step.lag = given_step.lag
            assert step == given_step


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.2, 0.5, 0.9]), st.booleans(), st.booleans())
def test_any_part_of_a_script_is_a_true_script(
    tmp_path: Path, seed: int, share: float, plain: bool, probed: bool
) -> None:
    """Whatever is left out, what remains passes the check of scripts."""
    dice = random.Random(seed)
    families = dict.fromkeys(EVERY, 1.0)
    script = compose(ScriptSettings(name="mix", turns=60, families=families), seed % 7)
    steps = [step for step in script.steps if dice.random() < share]
    made = retold(script.header, steps, plain=ALL if plain else (), probed=probed)
    if made is not None:
        checked(made, tmp_path)
        checked(numbered(made), tmp_path)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.integers(0, 10**6))
def test_every_simplification_gives_a_true_script_of_the_same_turns(
    tmp_path: Path, seed: int
) -> None:
    """All parts, one part, or half of them: the script stays true and loses nothing."""
    dice = random.Random(seed)
    script = conversation(dice.randrange, 12)
    for way in SIMPLER:
        parts = way.parts(script)
        some = [part for part in parts if dice.random() < 0.5]
        for chosen in (parts, parts[:1], some):
            made = way.apply(script, chosen) if chosen else None
            if made is not None:
                checked(made, tmp_path)
                assert [type(s) for s in made.steps] == [type(s) for s in script.steps]
        script = way.apply(script, parts) or script


def test_what_was_simple_is_offered_no_more() -> None:
    """A script that has been made simpler has nothing left that could be."""
    script = conversation(random.Random(5).randrange, 12)
    for way in SIMPLER:
        while parts := way.parts(script):
            made = way.apply(script, parts)
            assert made is not None
            script = made
    assert not any(way.parts(script) for way in SIMPLER)


def test_a_change_is_asked_for_where_nobody_asks() -> None:
    """With `probed` a question follows each change, its cause first."""
    told = [turn(1, Op("tell", A, FIRST)), turn(2, Op("tell", B, FIRST))]
    rule = turn(3, Op("depend", A, target=B, rule=Rule("same")))
    made = retold(
        Header(name="x", tenants=["acme"]), [*told, rule, turn(4, Op("revise", A, SECOND))],
        probed=True,
    )  # fmt: skip
    assert made is not None
    assert [s.unit for s in made.steps if isinstance(s, Probe)] == [A, B, A, B]


def test_a_twin_goes_with_what_it_differs_by() -> None:
    """Without its reads, or without its erasure, a pair of twins is none."""
    for family in ("reinforcement", "erase-unit", "leak-asking", "leak-telling"):
        alone = ScriptSettings(name=family, turns=200, families={family: 1.0})
        script = compose(alone, 0)
        assert script.header.twins
        whole = retold(script.header, script.steps)
        assert whole is not None and whole.header.twins == script.header.twins
        kept = [
            step for step in script.steps
            if not step.unless and not (isinstance(step, Probe) and step.swap)
        ]  # fmt: skip
        rest = retold(script.header, kept)
        assert rest is not None and not rest.header.twins
        assert not any(isinstance(s, Erasure) and s.gone for s in rest.steps)


def test_a_twin_goes_that_would_be_without_more_than_what_is_erased() -> None:
    """A turn that only the twin lacks must be about something that is erased here, or the twin
    differs in two things and shows the second as a trace of the first."""
    twin = TwinSpec("gone", about="existing", gone=A)
    header = Header(name="x", tenants=["acme"], twins=[twin])
    one, two = turn(1, Op("tell", A, FIRST)), turn(2, Op("tell", B, SECOND))
    small_talk = turn(2, Op("noise"))
    at = "2026-01-03T10:00"
    erased = Erasure(id="e1", at=at, tenant="acme", unit=A, unless=("gone",))
    every = Erasure(id="e1", at=at, tenant="acme", unless=("gone",))
    rule = turn(2, Op("depend", B, target=A, rule=Rule("same")))
    for step in (one, two, small_talk, rule):
        step.unless = ("gone",)
    before = turn(1, Op("tell", B, SECOND), Op("tell", A, FIRST))

    def kept(*steps: Turn | Erasure) -> bool:
        made = retold(header, steps)
        assert made is not None
        assert bool(made.header.twins) == any(step.unless for step in made.steps)
        return bool(made.header.twins)

    assert kept(one, erased)
    assert not kept(one, two, erased)
    assert not kept(one, small_talk, erased)
    assert kept(one, two, small_talk, every)
    assert kept(before, rule, erased)
    assert not kept(one)
