"""The contract of replies: their form, their order, whose they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from steeltrap.harness.conformance.life import (
    Broken,
    Life,
    Make,
    NotApplicable,
    Remark,
    items,
    names,
    shown,
)
from steeltrap.harness.conformance.said import (
    ACME,
    FIRST,
    LIGHTS,
    LOOK_ALIKES,
    LUNCH,
    MILL,
    OTHER,
    SECOND,
    VAGUE,
    about,
    host,
    subject,
)
from steeltrap.harness.memory import Erases, Item, Lists, Recalls, Recovers
from steeltrap.harness.replies import BadReplyError, Items

__all__ = ["CHECKS"]


def _replies(life: Life, topic: str = LIGHTS, tenant: str = ACME) -> Iterator[tuple[str, Any]]:
    """Everything that a memory shows of a topic, by the method that shows it."""
    yield "retrieve", life.reply(about(topic), tenant=tenant)
    if isinstance(life.memory, Lists):
        yield "active", life.call("active", tenant)
    if isinstance(life.memory, Recalls):
        yield "history", life.call("history", subject(topic, tenant))
    if isinstance(life.memory, Recovers):
        yield "recover", life.call("recover", subject(topic, tenant))


def _everything(life: Life) -> Iterator[tuple[str, Item]]:
    """Every item that a memory shows after a few turns."""
    for topic in (LIGHTS, MILL):
        for call, reply in _replies(life, topic):
            for item in items(reply):
                yield call, item


def _told(life: Life) -> Life:
    life.tell(LUNCH, host(LIGHTS, FIRST), host(MILL, "Tomas Weld"), host(LIGHTS, SECOND, now=True))
    return life


def well_formed_replies(make: Make, folder: Path) -> None:
    """A reply is a list or tuple of Item, each field of its kind and times in ISO 8601."""
    with Life(make, folder) as life:
        for call, reply in _replies(_told(life)):
            try:
                Items().intern(reply, call)
            except BadReplyError as error:
                raise Broken(
                    str(error),
                    "an Item has text, and where known id, sources (a tuple of turn ids), valid_from,"
                    " valid_to, review and score",
                    "see Item in steeltrap.harness.memory",
                ) from None


def keeps_to_the_limit(make: Make, folder: Path) -> None:
    """At most query.limit items are served."""
    with Life(make, folder) as life:
        life.tell(LUNCH, *[host(LIGHTS, FIRST), host(MILL, "Tomas Weld")] * 4)
        for limit in (1, 3):
            if len(served := life.ask(limit=limit)) > limit:
                raise Broken(
                    f"asked for at most {limit}, it served {len(served)} items",
                    "at most query.limit items may be served; fewer is fine",
                    "cut the reply: found[:query.limit]",
                )


def answers_any_question(make: Make, folder: Path) -> None:
    """A question without a known word, or in the signs of a query language, raises nothing."""
    with Life(make, folder) as life:
        _told(life)
        for text in VAGUE:
            life.ask(text)


def nothing_found_is_empty(make: Make, folder: Path) -> None:
    """Where there is nothing a list is returned, and it is empty."""
    with Life(make, folder) as life:
        _told(life)
        for call, reply in _replies(life, tenant="nobody"):
            if reply is None or list(reply):
                given = "None" if reply is None else shown(items(reply))
                raise Broken(
                    f"{call} for a tenant that never spoke returned {given}",
                    "where nothing is found the reply is an empty list",
                    "return [] where nothing is found",
                )


def knows_its_sources(make: Make, folder: Path) -> None:
    """Where an item has sources, they are ids of turns."""
    with Life(make, folder) as life:
        _told(life)
        sourced = 0
        for call, item in _everything(life):
            sourced += item.sources is not None
            if unknown := [source for source in item.sources or () if source not in life.said]:
                raise Broken(
                    f"{call} gave '{item.text}' with the source {unknown[0]!r}, which is no turn",
                    "sources are the ids of the turns that an item came from",
                    "keep turn.id with what is stored; leave sources out (None) where it is not known",
                )
    if not sourced:
        raise NotApplicable("the memory gives no sources")


def times_in_order(make: Make, folder: Path) -> None:
    """Where an item has both times, valid_to is not before valid_from."""
    with Life(make, folder) as life:
        ended = 0
        for call, item in _everything(_told(life)):
            ended += item.valid_to is not None
            if item.valid_from and item.valid_to and item.valid_to < item.valid_from:
                raise Broken(
                    f"{call} gave '{item.text}' as valid from {item.valid_from} to {item.valid_to}",
                    "valid_to is the time from which an item is no longer current",
                    "set valid_to to the time of the turn that superseded it",
                )
    if not ended:
        raise NotApplicable("the memory never says that something has ended")


def keeps_simulated_time(make: Make, folder: Path) -> None:
    """The times of items are those of the turns, not those of the machine's clock."""
    with Life(make, folder, began="2001-02-03T09:00") as life:
        timed = 0
        for call, item in _everything(_told(life)):
            for name in ("valid_from", "valid_to"):
                at = getattr(item, name)
                timed += at is not None
                if at and str(at)[:4] > "2001":
                    raise Broken(
                        f"turns were of February 2001, and {call} gave '{item.text}' with {name} {at}",
                        "the only clock of a memory is the time of turns, queries and maintenance",
                        "take turn.at for the time at which something was said, never datetime.now()",
                    )
    if not timed:
        raise NotApplicable("the memory gives no times")


# ---------------------------------------------------------------- tenants


def keeps_tenants_apart(make: Make, folder: Path) -> None:
    """A tenant is never served or shown what another one said."""
    with Life(make, folder) as life:
        life.tell(host(LIGHTS, FIRST), LUNCH)
        life.tell(host(LIGHTS, SECOND), host(MILL, "Uma Okafor"), tenant=OTHER)
        for tenant, foreign in ((ACME, SECOND), (OTHER, FIRST)):
            for call, reply in _replies(life, tenant=tenant):
                if names(items(reply), foreign):
                    raise Broken(
                        f"{call} for {tenant} gave {shown(items(reply))}; another tenant said that",
                        "each tenant has a memory of its own",
                        "store turn.tenant with everything, and filter by query.tenant",
                    )


def tells_look_alikes_apart(make: Make, folder: Path) -> None:
    """Tenants with names that are nearly the same, or hold the signs of patterns, are not mixed up."""
    with Life(make, folder) as life:
        for tenant, name in LOOK_ALIKES.items():
            life.tell(host(LIGHTS, name), tenant=tenant)
        _see_apart(life, LOOK_ALIKES)
        if isinstance(life.memory, Erases):
            life.call("erase", "acm_", None)
            _see_apart(life, {key: name for key, name in LOOK_ALIKES.items() if key != "acm_"})


def _see_apart(life: Life, told: dict[str, str]) -> None:
    served = {tenant: life.ask(tenant=tenant) for tenant in told}
    for tenant, found in served.items():
        foreign = [other for other, name in LOOK_ALIKES.items() if other != tenant and names(found, name)]  # fmt: skip
        if foreign or (not names(found, told[tenant]) and any(served.values())):
            raise Broken(
                f"asked by '{tenant}', beside the tenants {', '.join(map(repr, told))}, it served:"
                f" {shown(found)}",
                "each tenant has a memory of its own, whatever its name",
                "compare tenants by ==, without patterns, prefixes or folding of case; escape them in"
                " names of files and indexes",
            )


# ---------------------------------------------------------------- determinism


def same_replies_twice(make: Make, folder: Path) -> None:
    """Two lives with the same turns and questions give the same replies."""

    def life(number: int) -> list[list[Item]]:
        with Life(make, folder / str(number)) as one:
            _told(one)
            return [one.ask(about(topic)) for topic in (LIGHTS, MILL, LIGHTS)]

    for first, second in zip(life(1), life(2), strict=True):
        if first != second:
            raise Remark(
                f"told the same twice, it served {shown(first)} and then {shown(second)}"
                + ("" if _texts(first) != _texts(second) else " with other ids, times or scores"),
                "the same turns may give other replies; runs of such a memory are compared over several",
                "seed what is random, order what is a set, and make ids of what they stand for; or"
                " run more seeds",
            )


def _texts(found: list[Item]) -> list[str]:
    return [item.text for item in found]


CHECKS: Final = (
    well_formed_replies, keeps_to_the_limit, answers_any_question, nothing_found_is_empty,
    knows_its_sources, times_in_order, keeps_simulated_time, keeps_tenants_apart,
    tells_look_alikes_apart, same_replies_twice,
)  # fmt: skip
