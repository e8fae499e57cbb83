"""Families in which one tenant must not notice what another one asks or says.

Each episode is one trial. A coin chooses which of two exchangeable things the other tenant asks
or speaks of, so that whatever the answers owe to chance, to the order of telling or to anything
but the leak does not follow the coin. Both tenants' topics bear the same names, or nearly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from steeltrap.harness.script import TwinSpec, topic_of
from steeltrap.workloads.stage import Slot, Stage

__all__ = ["asking", "names", "scope", "telling"]

OBSERVER = "globex"
"""Who must not notice."""
SCOPES = ("", "*", "acm", "Acme", "acme%", "acme-labs")
"""No tenants: no scope at all, a wildcard, and what is nearly the name of `acme`."""


def asking(stage: Stage) -> Iterator[int]:
    """Two tenants know the same two things; one asks for one of them, again and again.

    In the other twin it asks for the other.
    """
    twin = _twin(stage, "asking")
    pair = _pair(stage)
    mine = [_theirs(stage, slot, stage.tenant) for slot in pair]
    for slot in stage.dice.shuffled([*pair, *mine]):
        stage.tell(slot)
        yield 0
    coin = stage.dice.between(0, 1)
    for _ in range(stage.dice.between(3, 5)):
        stage.ask(mine[coin], swap=(twin.name, mine[1 - coin]))
    yield stage.dice.between(0, 1)
    twin.trials[stage.rank(*pair)] = pair[coin].unit


def telling(stage: Stage) -> Iterator[int]:
    """Two tenants speak of a thing of the same name; in the other twin one of them is silent."""
    return _telling(stage, lambda topic: topic)


def names(stage: Stage) -> Iterator[int]:
    """One tenant speaks of a thing of nearly the same name; in the other twin it is silent."""
    return _telling(stage, stage.mint.look_alike)


def _telling(stage: Stage, name: Callable[[str], str]) -> Iterator[int]:
    twin = _twin(stage, "telling")
    pair = _pair(stage)
    for slot in pair:
        stage.tell(slot)
        yield 0
    favoured = stage.dice.pick(pair)
    theirs = _theirs(stage, favoured, stage.tenant, name(topic_of(favoured.unit)))
    stage.never(twin.name, theirs.unit)
    stage.tell(theirs)
    for _ in range(stage.dice.between(2, 3)):
        yield 0
        if stage.dice.chance(0.5):
            stage.revise(theirs)
        else:
            stage.op("restate", theirs)
    stage.tell(stage.slot())
    yield stage.dice.between(0, 1)
    stage.check(*pair)
    twin.trials[stage.rank(*pair)] = favoured.unit


def scope(stage: Stage) -> Iterator[int]:
    """A scope is left out or wrong, and what is told without one is everybody's.

    Whoever asks in the name of no tenant is served nothing that any tenant said. Another tenant
    may be served what was told without a scope, and never the first one's own value beside it.
    """
    stage.new_tenant(OBSERVER)
    slot = stage.slot()
    stage.tell(slot)
    yield stage.dice.between(0, 2)
    for _ in range(2):
        wrong = stage.deal("scope", SCOPES)
        stage.ask_as(wrong and stage.new_tenant(wrong), slot)
    common = _theirs(stage, slot, "")
    stage.tell(common)
    yield stage.dice.between(0, 2)
    stage.revise(slot)
    stage.ask_as(OBSERVER, slot)
    stage.check(common, slot)


def _twin(stage: Stage, about: Literal["asking", "telling"]) -> TwinSpec:
    """The twin of the whole script, to which all its trials belong."""
    stage.new_tenant(OBSERVER)
    for twin in stage.header.twins:
        if twin.name == about:
            return twin
    stage.header.twins.append(TwinSpec(about, about=about, tenant=OBSERVER))
    return stage.header.twins[-1]


def _pair(stage: Stage) -> list[Slot]:
    """Two units of the observer, of one field of one domain, in no order."""
    one = stage.slot(tenant=OBSERVER)
    topic = stage.mint.topic(one.domain)
    other = stage.slot(field=one.field, domain=one.domain, topic=topic, tenant=OBSERVER)
    return stage.dice.shuffled([one, other])


def _theirs(stage: Stage, slot: Slot, tenant: str, topic: str | None = None) -> Slot:
    """The same thing, or one of another name, as a unit of another tenant."""
    return stage.slot(
        field=slot.field, domain=slot.domain, tenant=tenant, topic=topic or topic_of(slot.unit)
    )
