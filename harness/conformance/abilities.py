"""The contract of what a memory may do besides: history, erasure, forks, and so on."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Final

from steeltrap.harness.conformance.life import (
    Broken,
    Life,
    Make,
    NotApplicable,
    items,
    names,
    shown,
)
from steeltrap.harness.conformance.said import (
    ACME,
    FIRST,
    LIGHTS,
    LUNCH,
    MILL,
    OTHER,
    SECOND,
    THIRD,
    about,
    host,
    subject,
)
from steeltrap.harness.memory import (
    Erases,
    Forks,
    Item,
    Lists,
    Maintains,
    MemoryFault,
    Query,
    Recalls,
    Recovers,
    Salient,
    Sized,
    Utterance,
)

__all__ = ["CHECKS"]

_HOSTS: Final = (FIRST, SECOND, THIRD)


def history_oldest_first(make: Make, folder: Path) -> None:
    """history() gives the oldest entry first, and each superseded one has valid_to."""
    with Life(make, folder) as life:
        life.able(Recalls, what="history")
        life.tell(host(LIGHTS, FIRST))
        life.tell(host(LIGHTS, SECOND, now=True), host(LIGHTS, THIRD, now=True))
        found = life.looked_up("history", subject(LIGHTS))
    places = [n for item in found for n, name in enumerate(_HOSTS) if names([item], name)]
    if len(set(places)) < 2:
        raise NotApplicable(f"the history of a fact that was revised twice is {shown(found)}")
    if places != sorted(places):
        raise Broken(
            f"told {', then '.join(_HOSTS)}, history gave {shown(found)}",
            "all entries, oldest first",
            "sort by the time from which each entry held, and by turns within a minute",
        )
    if lasting := [item for item in found[:-1] if item.valid_to is None]:
        raise Broken(
            f"history gave '{lasting[0].text}' without valid_to, though it was superseded",
            "superseded entries carry valid_to",
            "set valid_to to the time of the turn that superseded the entry",
        )


def salience_only_looks(make: Make, folder: Path) -> None:
    """salience() is a finite number or None, None for what is unknown, and looking changes nothing."""
    with Life(make, folder) as life:
        life.able(Salient, what="salience")
        life.tell(host(LIGHTS, FIRST), host(MILL, "Tomas Weld"))
        first, second = (life.call("salience", subject(LIGHTS)) for _ in range(2))
        unknown = life.call("salience", subject("Lighthouse"))
    hint = "return a float from the state as it is, and count no read"
    number = isinstance(first, int | float) and not isinstance(first, bool)
    if first is not None and not (number and math.isfinite(first)):
        raise Broken(f"salience returned {first!r}", "a finite number, or None", hint)
    if first != second:
        raise Broken(f"salience was {first}, and {second} when it was looked at again", "salience must not change the state", hint)  # fmt: skip
    if unknown is not None:
        raise Broken(f"salience of what was never told is {unknown!r}", "None when the subject is not known", hint)  # fmt: skip


def maintains_at_a_simulated_time(make: Make, folder: Path) -> None:
    """maintain(at) takes the simulated time, and the memory goes on after it."""
    with Life(make, folder) as life:
        life.able(Maintains, what="maintain")
        life.tell(host(LIGHTS, FIRST))
        life.must_serve(FIRST)
        life.call("maintain", life.now)
        life.call("maintain", life.now)
        life.tell(host(MILL, "Tomas Weld"))
        if not life.serves("Tomas Weld", MILL):
            raise Broken(
                f"told after maintain(), '{host(MILL, 'Tomas Weld')}' is not served",
                "maintenance runs as of a simulated time, and the life goes on",
                "let maintain leave the memory as usable as it was",
            )


def forks_answer_alike(make: Make, folder: Path) -> None:
    """A fork answers as the original does."""
    with Life(make, folder) as life:
        life.able(Forks, what="fork")
        _told(life)
        copy = life.call("fork")
        for topic in (LIGHTS, MILL):
            query = Query("question-1", life.now, ACME, about(topic), 10)
            there, here = items(copy.retrieve(query)), life.ask(about(topic))
            if _texts(there) != _texts(here):
                raise Broken(
                    f"asked '{about(topic)}', the fork served {shown(there)}, the original {shown(here)}",
                    "a copy answers as the original would",
                    "copy the whole state, caches and counters included",
                )


def forks_leave_alone(make: Make, folder: Path) -> None:
    """What happens to a fork does not happen to the original."""
    with Life(make, folder / "without") as life:
        life.able(Forks, what="fork")
        _told(life)
        due = life.ask()
    with Life(make, folder / "with") as life:
        _told(life)
        copy = life.call("fork")
        for _ in range(3):
            copy.retrieve(Query("question-1", life.now, ACME, about(LIGHTS), 10))
        told = host(LIGHTS, THIRD, now=True)
        # a copy that takes in nothing is enough
        with contextlib.suppress(MemoryFault):
            copy.ingest(Utterance("turn-f", life.now, ACME, "session-1", "user", told))
            copy.settle()
        found = life.ask()
    if names(found, THIRD) or _texts(due) != _texts(found):
        raise Broken(
            f"after a fork was asked and told something else, the original serves {shown(found)},"
            f" and without that {shown(due)}",
            "a copy leaves the original alone",
            "copy deeply: lists, indexes, open files, counters of reads",
        )


# ---------------------------------------------------------------- erasure


def erases_a_subject(make: Make, folder: Path) -> None:
    """erase(tenant, subject) removes what was said of it, and nothing of others."""
    with Life(make, folder) as life:
        life.able(Erases, what="erase")
        _told(life)
        life.tell(host(LIGHTS, FIRST), tenant=OTHER)
        life.must_serve(SECOND)
        kept = life.serves("Tomas Weld", MILL), life.serves(FIRST, tenant=OTHER)
        life.call("erase", ACME, subject(LIGHTS))
        life.call("settle")
        for name in (FIRST, SECOND):
            _gone(life, name, "the host of Harbour Lights")
        if kept != (life.serves("Tomas Weld", MILL), life.serves(FIRST, tenant=OTHER)):
            raise _too_much("a subject")


def erases_a_tenant(make: Make, folder: Path) -> None:
    """erase(tenant, None) removes everything of a tenant, and nothing of others."""
    with Life(make, folder) as life:
        life.able(Erases, what="erase")
        _told(life)
        life.tell(host(LIGHTS, FIRST), tenant=OTHER)
        life.must_serve(SECOND)
        kept = life.serves(FIRST, tenant=OTHER)
        life.call("erase", ACME, None)
        life.call("settle")
        for name in (FIRST, SECOND, "Tomas Weld"):
            _gone(life, name, "the tenant")
        if kept and not life.serves(FIRST, tenant=OTHER):
            raise _too_much("a tenant")


def begins_anew_after_erasure(make: Make, folder: Path) -> None:
    """An erased tenant may speak again, and has what it says then."""
    with Life(make, folder) as life:
        life.able(Erases, what="erase")
        _told(life)
        life.must_serve(SECOND)
        life.call("erase", ACME, None)
        life.tell(host(MILL, "Uma Okafor"))
        if not life.serves("Uma Okafor", MILL) or names(life.ask(), SECOND):
            raise Broken(
                f"told '{host(MILL, 'Uma Okafor')}' after its erasure, it serves"
                f" {shown(life.ask(about(MILL)))}",
                "a tenant begins anew after its erasure",
                "let erase drop what is kept, not the tenant's right to be heard",
            )


def erases_what_never_was(make: Make, folder: Path) -> None:
    """Erasing an unknown tenant or subject raises nothing and disturbs nothing."""
    with Life(make, folder) as life:
        life.able(Erases, what="erase")
        _told(life)
        before = _state(life)
        life.call("erase", "nobody", None)
        life.call("erase", "nobody", subject(LIGHTS, "nobody"))
        life.call("erase", ACME, subject("Lighthouse"))
        if before != _state(life):
            raise _too_much("what was never told")


def _gone(life: Life, name: str, what: str) -> None:
    shows: dict[str, list[Item]] = {"retrieve": life.ask() + life.ask(about(MILL))}
    if isinstance(life.memory, Lists):
        shows["active"] = life.listed()
    if isinstance(life.memory, Recalls):
        shows["history"] = life.looked_up("history", subject(LIGHTS))
    if isinstance(life.memory, Recovers):
        shows["recover"] = life.looked_up("recover", subject(LIGHTS))
    for call, found in shows.items():
        if names(found, name):
            raise Broken(
                f"after {what} was erased, {call} gave: {shown(found)}",
                "erased content is removed for good: no trace of it may be served",
                "remove it from archives, indexes, caches and summaries as well",
            )


def _too_much(what: str) -> Broken:
    return Broken(
        f"erasing {what} took along what belongs to others",
        "erase removes a subject, or with None everything of one tenant, and no more",
        "look at what the deletion selects by",
    )


# ---------------------------------------------------------------- the rest


def recovers_what_it_holds(make: Make, folder: Path) -> None:
    """recover() gives what the archive or the active state holds on a subject."""
    with Life(make, folder) as life:
        life.able(Recovers, what="recover")
        _told(life)
        life.must_serve(SECOND)
        found = life.looked_up("recover", subject(LIGHTS))
        if not names(found, SECOND):
            raise Broken(
                f"{SECOND} is served to a question, and recover gave {shown(found)}",
                "recover gives what the archive or the active state holds on the subject",
                "look in both",
            )


def tells_its_size(make: Make, folder: Path) -> None:
    """size_bytes() is a whole number, and not below zero."""
    with Life(make, folder) as life:
        life.able(Sized, what="size_bytes")
        for _ in range(2):
            size = life.call("size_bytes")
            whole = isinstance(size, int | float) and not isinstance(size, bool) and size % 1 == 0
            if not whole or size < 0:
                raise Broken(
                    f"size_bytes returned {size!r}",
                    "bytes on disk now: a whole number, 0 or more",
                    "add up the st_size of the files below the folder",
                )
            _told(life)


def _told(life: Life) -> None:
    life.tell(host(LIGHTS, FIRST), host(MILL, "Tomas Weld"), host(LIGHTS, SECOND, now=True), LUNCH)


def _state(life: Life) -> list[str]:
    listed = life.listed() if isinstance(life.memory, Lists) else []
    return [*sorted(_texts(listed)), *sorted(_texts(life.ask())), *sorted(_texts(life.ask(about(MILL))))]  # fmt: skip


def _texts(found: list[Item]) -> list[str]:
    return [item.text for item in found]


CHECKS: Final = (
    history_oldest_first, salience_only_looks, maintains_at_a_simulated_time, forks_answer_alike,
    forks_leave_alone, erases_a_subject, erases_a_tenant, begins_anew_after_erasure,
    erases_what_never_was, recovers_what_it_holds, tells_its_size,
)  # fmt: skip
