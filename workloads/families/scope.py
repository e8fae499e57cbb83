"""Families about whose fact it is: look-alikes, tenants, and what must be gone."""

from __future__ import annotations

from collections.abc import Iterator

from steeltrap.harness.script import tenant_of, topic_of
from steeltrap.workloads.stage import Slot, Stage

__all__ = ["erasure", "look_alike", "multi_tenant"]

OTHER_TENANTS = ("globex", "northwind", "lumina")


def look_alike(stage: Stage) -> Iterator[int]:
    """Two topics of nearly the same name hold the same field; one changes, the other must not."""
    slot = stage.slot()
    topic = stage.mint.look_alike(topic_of(slot.unit))
    twin = stage.slot(field=slot.field, domain=slot.domain, topic=topic)
    stage.tell(slot)
    yield stage.dice.between(0, 2)
    stage.tell(twin)
    for _ in range(stage.dice.between(2, 4)):
        yield stage.dice.between(1, 4)
        stage.revise(stage.dice.pick((slot, twin)))
        stage.check(slot, twin)


def _namesake(stage: Stage, slot: Slot, tenant: str) -> Slot:
    return stage.slot(
        field=slot.field, domain=slot.domain, topic=topic_of(slot.unit), tenant=tenant
    )


def multi_tenant(stage: Stage) -> Iterator[int]:
    """Two tenants speak of a topic of the same name; neither may be served the other's words."""
    slot = stage.slot()
    other = _namesake(stage, slot, stage.new_tenant(OTHER_TENANTS[0]))
    stage.tell(slot)
    yield 1
    stage.tell(other)
    for _ in range(stage.dice.between(2, 4)):
        yield stage.dice.between(1, 3)
        stage.revise(stage.dice.pick((slot, other)))
        stage.check(slot, other)
    stage.ask(other)
    yield 1
    only_here = stage.slot()
    stage.tell(only_here)
    yield 1
    stage.check(only_here)


def erasure(stage: Stage) -> Iterator[int]:
    """A unit, or a tenant with all it said, is removed for good and asked for again."""
    if stage.deal("erasure", ("tenant", "unit")) == "tenant":
        tenant = stage.new_tenant(f"{stage.dice.pick(OTHER_TENANTS[1:])}-{stage.turns}")
        slots = [stage.slot(tenant=tenant) for _ in range(2)]
        for slot in slots:
            stage.tell(slot)
            yield stage.dice.between(0, 2)
        stage.revise(slots[0])
        yield stage.dice.between(1, 4)
        stage.erase(tenant)
    else:
        slots = [stage.slot(), stage.slot()]
        stage.tell(slots[0])
        yield 1
        stage.tell(slots[1])
        yield stage.dice.between(0, 2)
        stage.revise(slots[0])
        yield stage.dice.between(1, 4)
        stage.erase(tenant_of(slots[0].unit), slots[0])
    yield stage.dice.between(1, 6)
    stage.check(*slots)
