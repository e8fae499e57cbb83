from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.harness.load import LoadSettings, Plan, Trace, judge, planned
from steeltrap.harness.load.plan import Operation
from steeltrap.harness.load.running import Done, Quiet
from steeltrap.harness.memory import Item
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

UNIT = "acme/Amber Bridge/access code"
CODES = ("LD-000001", "LD-000002", "LD-000003")


@pytest.mark.parametrize(
    ("defect", "name"),
    [
        ("LockTooFew", "lost"),
        ("LosesInACrowd", "lost"),
        ("DoublesInACrowd", "doubled"),
        ("OneTenantAtATime", "leak"),
        ("Stale", "stale-read"),
        ("TwoReplicas", "resurrection"),
        ("ServesBoth", "ambiguous-read"),
        ("ListsOld", "superseded-active"),
        ("Garbles", "wrong-read"),
        ("RefusesTooLate", "kept-refused"),
    ],
)
def test_each_defect_is_caught_under_its_name(
    loaded: Any, memories: Any, defect: str, name: str
) -> None:
    """A memory with one defect under load is caught, under the name of what it does."""
    _, found = loaded(getattr(memories, defect)())
    assert found.counts[name] > 0, found.counts


@pytest.mark.parametrize("seed", range(3))
def test_a_memory_under_one_lock_is_never_accused(loaded: Any, memories: Any, seed: int) -> None:
    """What is right in some order of the operations is right, whatever happened at once."""
    for memory in (memories.Sound(), Flat()):
        _, found = loaded(memory, seed=seed, seconds=0.4)
        del found.counts["superseded-active"]  # a transcript keeps everything
        assert not any(found.counts.values()), found.examples
        assert found.opportunities["C1"] > 20
        assert found.opportunities["C1-quiet"] > 20
        assert not found.unknown


@pytest.mark.slow
def test_no_seed_accuses_a_sound_memory(loaded: Any, memories: Any) -> None:
    """Over many seeds and rates there is no false alarm."""
    for seed in range(60):
        for memory in (memories.Sound(), Flat()):
            _, found = loaded(memory, seed=seed, rate=200 + 50 * seed, seconds=0.5, traced=0.2)
            del found.counts["superseded-active"]
            assert not any(found.counts.values()), (seed, found.examples)


def test_work_in_the_background_is_stale_until_it_has_settled_and_loses_nothing(
    loaded: Any, memories: Any
) -> None:
    """Before a system has settled it may be behind; when all is quiet it may not, and the lag tells
    how long it was.
    """
    _, found = loaded(memories.Background(), traced=0.5)
    assert found.broken["C1"] > 0
    assert found.broken["C1-quiet"] == 0
    assert found.counts["lost"] == found.counts["doubled"] == 0
    assert sorted(found.lags_ms)[len(found.lags_ms) // 2] >= 1000 * memories.Background.AFTER_S / 2


# ---------------------------------------------------------------- the rule itself


def _script() -> Script:
    """Three writes of one unit, and three questions."""
    turns = [
        Turn(
            at=f"2026-01-05T09:0{n}", tenant="acme", id=f"t{n}", session="s",
            text=f"The access code of Amber Bridge is {code}.",
            ops=[Op("revise" if n else "tell", UNIT, f"code:{code}")],
        )
        for n, code in enumerate(CODES)
    ]  # fmt: skip
    asked = [
        Probe(
            at="2026-01-05T10:00", tenant="acme", id=f"q{n}", ask="current", unit=UNIT,
            text="What is the access code of Amber Bridge?",
        )
        for n in range(4)
    ]  # fmt: skip
    return Script(Header(name="load", tenants=["acme"]), [*turns, *asked])


SCRIPT = _script()
PLAN = Plan(SCRIPT, [], {UNIT: 6})

Span = tuple[float, float]


def _found(
    writes: list[tuple[Span, str]], reads: list[tuple[Span, int | None]]
) -> tuple[dict[str, int], bool]:
    """What is found of writes (span, outcome) and reads (span, number of the write that is served)."""
    done = []
    for n, ((start, end), outcome) in enumerate(writes):
        done.append(Done(Operation(start, "write", n, "w"), start, end, outcome))  # type: ignore[arg-type]
    for n, ((start, end), served) in enumerate(reads):
        items = (
            [] if served is None else [Item(f"The access code of Amber Bridge is {CODES[served]}.")]
        )
        one = Done(Operation(start, "read", 3 + n, "r"), start, end, "ok", "", items)
        one.at = "2026-01-05T10:00"
        done.append(one)
    found = judge(PLAN, Trace(done, [], 10.0, Quiet(error="not looked at")), 1)
    counts = {name: n for name, n in found.counts.items() if n}
    return counts, bool(found.broken["C1"])


def test_a_question_beside_a_write_may_be_answered_either_way() -> None:
    """What runs at once has no order, until an answer has given it one."""
    writes = [((0.0, 1.0), "ok"), ((2.0, 4.0), "ok")]
    assert _found(writes, [((2.5, 3.5), 0)]) == ({}, False)
    assert _found(writes, [((2.5, 3.5), 1)]) == ({}, False)
    assert _found(writes, [((2.2, 2.4), 1), ((2.6, 2.8), 0)]) == ({"resurrection": 1}, True)
    assert _found(writes, [((5.0, 6.0), 0)]) == ({"stale-read": 1}, True)


def test_what_may_have_been_done_accuses_nobody_and_what_was_refused_must_not_show() -> None:
    """A write of unknown outcome may take effect late or never; a refused one has none."""
    late = [((0.0, 1.0), "info"), ((2.0, 3.0), "ok")]
    assert _found(late, [((4.0, 5.0), 1), ((6.0, 7.0), 0)]) == ({}, False)
    assert _found(late, [((4.0, 5.0), 0), ((6.0, 7.0), 1)])[1]
    assert _found([((0.0, 1.0), "ok"), ((2.0, 3.0), "info")], [((4.0, 5.0), 0)]) == ({}, False)
    refused = [((0.0, 1.0), "ok"), ((2.0, 3.0), "fail")]
    assert _found(refused, [((4.0, 5.0), 1)]) == ({"kept-refused": 1}, True)
    assert _found(refused, [((4.0, 5.0), 0)]) == ({}, False)


def _explained(writes: list[tuple[Span, str]], reads: list[tuple[Span, int | None]]) -> bool:
    """Whether any order explains it: all are tried."""
    needed = [(start, end if outcome == "ok" else math.inf, n, True) for n, ((start, end), outcome) in enumerate(writes)]  # fmt: skip
    needed += [(start, end, served, False) for (start, end), served in reads]  # type: ignore[misc]
    shown = {served for _, served in reads}
    optional = [n for n, (_, outcome) in enumerate(writes) if outcome == "info" and n not in shown]
    operations = [one for one in needed if not (one[3] and one[2] in optional)]
    return any(_fits(order) for order in permutations(operations))


def _fits(order: tuple[Any, ...]) -> bool:
    held = None
    for place, (_, end, value, writes) in enumerate(order):
        if any(later[0] > end for later in order[:place]):
            return False
        if writes:
            held = value
        elif held != value:
            return False
    return True


def test_the_rule_finds_what_trying_every_order_finds() -> None:
    """On small histories, drawn at random, an answer is accused exactly where no order explains all."""
    import random

    dice, seen = random.Random(7), {True: 0, False: 0}
    for _ in range(1500):
        marks = sorted(dice.sample(range(100), 6))
        writes: list[tuple[Span, str]] = [
            (
                (float(marks[2 * n]), float(marks[2 * n + 1])),
                "info" if dice.random() < 0.2 else "ok",
            )
            for n in range(3)
        ]
        reads: list[tuple[Span, int | None]] = []
        for _ in range(3):
            start, end = sorted(dice.sample(range(100), 2))
            begun = [n for n in range(3) if writes[n][0][0] < end]
            if begun:
                reads.append(((start + 0.3, end + 0.6), dice.choice(begun)))
        explained = _explained(writes, reads)
        seen[explained] += 1
        assert _found(writes, reads)[1] is not explained, (writes, reads)
    assert min(seen.values()) > 200


def test_the_latest_acknowledged_value_is_lost_only_if_nothing_ever_showed_it() -> None:
    """Lost is what neither an answer under way, nor the listing, nor an answer at the end shows."""
    plan = planned(LoadSettings(seconds=0.2, tenants=1, traced=0.0), 100)
    turns = [op for op in plan.operations if op.kind == "write"]
    done = [Done(op, op.at_s, op.at_s, "ok") for op in turns]
    last = {plan.script.steps[op.step].ops[0].unit: plan.script.steps[op.step] for op in turns}  # type: ignore[union-attr]
    whole = [Item(turn.text) for turn in last.values()]  # type: ignore[union-attr]

    def lost(listed: list[Item]) -> int:
        quiet = Quiet(listed={"tenant-1": listed}, at="2026-02-01T00:00")
        return judge(plan, Trace(done, [], 1.0, quiet), 1).counts["lost"]

    assert lost(whole) == 0
    assert lost(whole[1:]) == 1
    assert lost([]) == len(last)


def test_twice_is_measured_against_what_is_told_alone() -> None:
    """A system that keeps each thing in two forms doubles nothing; the same words more often do."""
    plan = planned(LoadSettings(seconds=0.1, tenants=1, traced=0.0), 100)
    turns = [op for op in plan.operations if op.kind == "write"]
    done = [Done(op, op.at_s, op.at_s, "ok") for op in turns]
    text = plan.script.steps[turns[0].step].text  # type: ignore[union-attr]

    def doubled(copies: int, *texts: str) -> int:
        items = [Item(words, id=str(n)) for n, words in enumerate(texts)]
        quiet = Quiet(listed={"tenant-1": items}, at="2026-02-01T00:00")
        return judge(plan, Trace(done, [], 1.0, quiet), copies).counts["doubled"]

    assert doubled(1, text, f"It was said: {text}") == 0
    assert doubled(1, text, text) == 1
    assert doubled(2, text, text) == 0
