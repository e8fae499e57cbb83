"""The dependency cascade: rules tie units together, and an update must reach what follows."""

from __future__ import annotations

from collections.abc import Iterator

from steeltrap.harness.script import Rule
from steeltrap.workloads.domains import Domain, Link, domains
from steeltrap.workloads.stage import Slot, Stage
from steeltrap.workloads.world import derive

__all__ = ["dependency_cascade"]

SHAPES = ("chain", "deep", "diamond", "cycle", "offset", "scaled", "same", "review")
Plan = list[tuple[Slot, Rule, int]]
"""Dependents in order: the unit, its rule, and the place of its source (0 is the root)."""


def dependency_cascade(stage: Stage) -> Iterator[int]:
    """Chain, deep chain, diamond, cycle, or a single edge of each rule; decoys beside them."""
    shape = stage.deal("cascade", SHAPES)
    root, plan, closing = _plan(stage, shape)
    yield from _tell(stage, root, plan)
    for source, target, rule in closing:
        stage.depend(source, target, rule)
        yield 0
    decoy = stage.slot(kinds=(root.field.kind,))
    stage.tell(decoy)
    yield 0
    stage.associate(root, decoy)
    for _ in range(stage.dice.between(2, 3)):
        yield stage.dice.between(1, 4)
        stage.revise(root, value=stage.fresh(root, plan))
    if shape in ("chain", "offset"):
        yield 1
        stage.revise(plan[0][0], value=stage.fresh(plan[0][0], _below(plan)))
        yield stage.dice.between(1, 4)
        stage.check(plan[0][0])
        stage.revise(root, value=stage.fresh(root, plan))
    yield 2
    stage.check(decoy)


def _tell(stage: Stage, root: Slot, plan: Plan) -> Iterator[int]:
    """Tell the root and every dependent a value that agrees with its rule, then the rules."""
    told = [stage.fresh(root, plan)]
    stage.tell(root, value=told[0])
    yield 0
    slots = [root]
    for slot, rule, source in plan:
        value = stage.fresh(slot) if rule.kind == "review" else derive(rule, told[source])
        told.append(value)
        slots.append(slot)
        stage.tell(slot, value=value)
        yield 0
    for slot, rule, source in plan:
        stage.depend(slots[source], slot, rule)
        yield 0


def _plan(stage: Stage, shape: str) -> tuple[Slot, Plan, list[tuple[Slot, Slot, Rule]]]:
    """A root, its dependents, and the edges that close a diamond or a cycle."""
    if shape in ("offset", "scaled", "same", "review"):
        return *_single(stage, shape), []
    length = {"chain": stage.dice.between(2, 3), "deep": 6, "diamond": 2, "cycle": 2}[shape]
    root = stage.slot(kinds=("date",))
    slots = [root, *(stage.slot(kinds=("date",)) for _ in range(length))]
    if shape == "diamond":
        return _diamond(stage, slots)
    sign = stage.dice.pick((-1, 1))
    plan: Plan = [
        (slot, Rule("offset", days=sign * stage.dice.between(2, 30)), place)
        for place, slot in enumerate(slots[1:])
    ]
    if shape != "cycle":
        return root, plan, []
    back = Rule("offset", days=-sum(rule.days for _, rule, _ in plan))
    return root, plan, [(slots[-1], root, back)]


def _diamond(stage: Stage, slots: list[Slot]) -> tuple[Slot, Plan, list[tuple[Slot, Slot, Rule]]]:
    """root -> left -> bottom and root -> right -> bottom, with rules that agree."""
    root, left, right = slots
    bottom = stage.slot(kinds=("date",))
    a, b, c = (stage.dice.between(2, 30) for _ in range(3))
    plan = [
        (left, Rule("offset", days=a), 0),
        (right, Rule("offset", days=a + b), 0),
        (bottom, Rule("offset", days=b + c), 1),
    ]
    return root, plan, [(right, bottom, Rule("offset", days=c))]


def _single(stage: Stage, kind: str) -> tuple[Slot, Plan]:
    """One edge inside one topic, as the domain knows it."""
    pairs: list[tuple[Domain, Link]] = [
        (domain, link) for domain in domains() for link in domain.links if link.rule == kind
    ]
    domain, link = stage.dice.pick(pairs)
    root = stage.slot(domain=domain, field=domain.field(link.source))
    topic = root.topic.split("/", 1)[1]
    target = stage.slot(domain=domain, field=domain.field(link.target), topic=topic)
    return root, [(target, rule_of(stage, link), 0)]


def rule_of(stage: Stage, link: Link) -> Rule:
    """A rule for a link of a domain, its numbers drawn from the link's range."""
    match link.rule:
        case "offset":
            return Rule("offset", days=stage.dice.between(link.low, link.high))
        case "scaled":
            return Rule("scaled", times=stage.dice.between(link.low, link.high), over=link.over)
        case kind:
            return Rule(kind)


def _below(plan: Plan) -> Plan:
    """What follows from the first dependent, as a plan of its own."""
    below: Plan = []
    place = {1: 0}
    for number, (slot, rule, source) in enumerate(plan[1:], 2):
        if source in place:
            below.append((slot, rule, place[source]))
            place[number] = len(below)
    return below
