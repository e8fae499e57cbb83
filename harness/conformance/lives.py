"""The contract of a life: opening, closing, folders, turns of any shape."""

from __future__ import annotations

import contextlib
import difflib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from steeltrap.harness.conformance.life import Broken, Life, Make, NotApplicable, names, shown
from steeltrap.harness.conformance.said import (
    ACME,
    ALPHABETS,
    CONTROL,
    FIRST,
    LIGHTS,
    LONG,
    LUNCH,
    MILL,
    OTHER,
    about,
    host,
    subject,
)
from steeltrap.harness.memory import CAPABILITIES, Lists, Memory, MemoryFault, Query, Utterance

__all__ = ["CHECKS"]

_REQUIRED: Final = {"open": 1, "close": 0, "ingest": 1, "retrieve": 1, "settle": 0}
"""The methods that every memory has, with the number of their arguments."""
_OPTIONAL: Final = {
    "active": 1, "history": 1, "salience": 1, "maintain": 1, "recover": 1, "erase": 2, "fork": 0,
    "size_bytes": 0, "told": 1, "connect": 1,
}  # fmt: skip
_ALIKE: Final = 0.86
"""Names that are so alike (difflib's ratio) are taken for a slip."""


def required_methods(make: Make, folder: Path) -> None:  # noqa: ARG001
    """A memory has open(folder), close(), ingest(turn), retrieve(query) and settle()."""
    memory = make()
    for name, arguments in _REQUIRED.items():
        _takes(memory, name, arguments, f"write {name} into {type(memory).__name__}")


def known_capabilities(make: Make, folder: Path) -> None:  # noqa: ARG001
    """Each further method that steeltrap calls has its name and arguments as harness/memory.py says."""
    memory = make()
    for name, arguments in _OPTIONAL.items():
        if hasattr(memory, name):
            _takes(memory, name, arguments, f"give {name} these arguments, or rename it")
    own = [name for name in dir(type(memory)) if not name.startswith("_")]
    for name in own:
        if name in _REQUIRED or name in _OPTIONAL:
            continue
        for meant in difflib.get_close_matches(name, _OPTIONAL, 1, _ALIKE):
            if not hasattr(memory, meant):
                raise Broken(
                    f"there is a method {name}, which nobody calls",
                    f"the capabilities are: {', '.join(CAPABILITIES)}; the method of this one is {meant}",
                    f"rename {name} to {meant}, or to something less alike",
                )


def _takes(memory: Memory, name: str, arguments: int, hint: str) -> None:
    method = getattr(memory, name, None)
    due = f"{name} takes {arguments} argument{'' if arguments == 1 else 's'} besides self"
    if not callable(method):
        raise Broken(f"there is no method {name}", due, hint)
    try:
        inspect.signature(method).bind(*[None] * arguments)
    except TypeError as error:
        raise Broken(f"{name} cannot be called so: {error}", due, hint) from None
    except ValueError:
        return  # a builtin without a signature


def begins_empty(make: Make, folder: Path) -> None:
    """After open() a memory serves nothing and lists nothing."""
    with Life(make, folder) as life:
        found = life.ask()
        if isinstance(life.memory, Lists):
            found += life.listed()
        if found:
            raise Broken(
                f"newly opened, and told nothing, it has: {shown(found)}",
                "open begins an empty memory",
                "let open drop what is there, or keep everything below the folder that it is given",
            )


def serves_what_it_was_told(make: Make, folder: Path) -> None:
    """A fact in plain words, asked for in the same words, is among ten items."""
    with Life(make, folder) as life:
        life.tell(LUNCH, host(LIGHTS, FIRST))
        if not life.serves(FIRST):
            raise Broken(
                f"told '{host(LIGHTS, FIRST)}' and asked '{about(LIGHTS)}', it served:"
                f" {shown(life.ask())}",
                "retrieve gives what would be put before a model to answer the query",
                "look at what ingest keeps and at how retrieve searches; without this nothing else"
                " can be judged",
            )


def opens_anew(make: Make, folder: Path) -> None:
    """A second open() in the same folder begins an empty memory, and so does a new object."""
    life = Life(make, folder)
    for again in ("", "the same memory, opened again,", "a new memory, opened in the same folder,"):
        if again.startswith("a new"):
            life = Life(make, folder)
        with life:
            found = life.ask()
            if again and found:
                raise Broken(
                    f"{again} still serves: {shown(found)}",
                    "open begins an empty memory, whatever is in its folder",
                    "let open remove what an earlier life left in the folder and in the object",
                )
            life.tell(host(LIGHTS, FIRST))


def closes_twice(make: Make, folder: Path) -> None:
    """close() after close(), and without open(), does nothing."""
    _harmless(make(), "close() of a memory that was never opened")
    with Life(make, folder) as life:
        life.tell(host(LIGHTS, FIRST))
        _harmless(life.memory, "close()")
        _harmless(life.memory, "close() after close()")


def _harmless(memory: Memory, what: str) -> None:
    try:
        memory.close()
    except Exception as error:
        raise Broken(
            f"{what} raised {type(error).__name__}: {error}",
            "close is called at the end, also after a failure, or where nothing was opened",
            "let close look whether there is anything to release",
        ) from error


def faults_while_not_open(make: Make, folder: Path) -> None:
    """Every call before open() and after close() raises MemoryFault."""
    memory = make()
    _all_fault(memory, "before open()")
    with Life(lambda: memory, folder) as life:
        life.tell(host(LIGHTS, FIRST))
    _all_fault(memory, "after close()")


def _all_fault(memory: Memory, when: str) -> None:
    at = "2026-03-01T09:00"
    turn = Utterance("turn-9", at, ACME, "session-1", "user", host(LIGHTS, FIRST))
    asked = subject(LIGHTS)
    calls: dict[str, tuple[Any, ...]] = {
        "ingest": (turn,), "retrieve": (Query("question-9", at, ACME, about(LIGHTS), 10),),
        "settle": (), "active": (ACME,), "history": (asked,), "salience": (asked,),
        "maintain": (at,), "recover": (asked,), "erase": (ACME, None), "fork": (), "size_bytes": (),
    }  # fmt: skip
    for name, arguments in calls.items():
        method: Callable[..., Any] | None = getattr(memory, name, None)
        if method is None:
            continue
        try:
            method(*arguments)
        except MemoryFault:
            continue
        except Exception as error:
            happened = f"{name} {when} raised {type(error).__name__}: {error}"
            cause: Exception | None = error
        else:
            happened, cause = f"{name} {when} did not raise", None
        raise Broken(
            happened,
            "what certainly did not happen is a MemoryFault; any other error leaves it open",
            "raise steeltrap.harness.memory.MemoryFault('not open') from every method but open and close",
        ) from cause


def writes_below_its_folder(make: Make, folder: Path) -> None:
    """Whatever is written goes below the folder that open() was given."""
    own, working = folder / "own", folder / "working"
    working.mkdir(parents=True)
    with contextlib.chdir(working), Life(make, own) as life:
        life.tell(host(LIGHTS, FIRST), LUNCH)
        life.ask()
    strays = [path.name for path in sorted(working.iterdir())]
    strays += [path.name for path in sorted(folder.iterdir()) if path not in (own, working)]
    if strays:
        raise Broken(
            f"it wrote elsewhere: {', '.join(strays)}",
            "whatever is written goes below the folder that open is given",
            "make every path from that folder; two memories run side by side and must not meet",
        )


# ---------------------------------------------------------------- turns of any shape


def takes_every_script(make: Make, folder: Path) -> None:
    """Turns in any language, with emoji, right-to-left marks and markup, are taken in."""
    _takes_in(make, folder, ALPHABETS)


def takes_control_characters(make: Make, folder: Path) -> None:
    """A turn with control characters is taken in."""
    _takes_in(make, folder, (CONTROL,))


def takes_a_long_turn(make: Make, folder: Path) -> None:
    """A turn of 30 KB is taken in."""
    _takes_in(make, folder, (LONG,))


def takes_an_empty_turn(make: Make, folder: Path) -> None:
    """A turn without text is taken in."""
    _takes_in(make, folder, ("",))


def _takes_in(make: Make, folder: Path, texts: tuple[str, ...]) -> None:
    """Nothing is raised, and what was told before is served as if nothing had been said."""
    with Life(make, folder) as life:
        life.tell(host(LIGHTS, FIRST))
        served = life.serves(FIRST)
        for text in texts:
            life.tell(text)
        if served and not life.serves(FIRST):
            raise Broken(
                f"after a turn that says nothing of it, '{about(LIGHTS)}' is served:"
                f" {shown(life.ask())}",
                "a turn is taken in whatever its text, beside the others",
                "look at what ingest does with a text of this kind",
            )


def takes_turns_of_one_minute(make: Make, folder: Path) -> None:
    """Turns with the same time are all taken in."""
    with Life(make, folder) as life:
        life.tell(LUNCH, host(MILL, "Tomas Weld"), host(LIGHTS, FIRST), minutes=0)
        served = {name: life.ask(about(topic)) for topic, name in _TOLD.items()}
    if lost := [name for name, found in served.items() if not names(found, name)]:
        if len(lost) == len(served):
            raise NotApplicable("none of the turns is served, so this cannot be seen")
        raise Broken(
            f"of three turns of one minute, that which names {lost[0]} is not served",
            "times are to the minute, so several turns may have the same one",
            "tell turns apart by turn.id, not by turn.at",
        )


_TOLD: Final = {MILL: "Tomas Weld", LIGHTS: FIRST}


def settles(make: Make, folder: Path) -> None:
    """After settle() nothing changes any more by itself, and settle() again does nothing."""
    import time

    with Life(make, folder) as life:
        life.tell(host(LIGHTS, FIRST), host(MILL, "Tomas Weld"))
        before = _state(life)
        time.sleep(_BACKGROUND_S)
        after = _state(life)
        life.call("settle")
        if before != after:
            raise Broken(
                f"after settle() it gave {len(before)} texts, and {_BACKGROUND_S} s later {len(after)}",
                "settle waits until background work is done",
                "let settle join threads and wait for queues and indexes",
            )


_BACKGROUND_S: Final = 0.3


def _state(life: Life) -> set[str]:
    if isinstance(life.memory, Lists):
        return {item.text for item in life.listed()}
    return {item.text for topic in (LIGHTS, MILL) for item in life.ask(about(topic))}


def threads_where_claimed(make: Make, folder: Path) -> None:
    """A memory that says `threads = True` may be called from several threads at once."""
    from concurrent.futures import ThreadPoolExecutor

    with Life(make, folder) as life:
        if getattr(life.memory, "threads", False) is not True:
            raise NotApplicable(
                "the memory does not claim it (threads = True); steeltrap calls from one thread alone"
            )
        life.tell(host(MILL, "Uma Okafor"))
        life.must_serve("Uma Okafor", MILL)
        told = {ACME: FIRST, OTHER: "Tomas Weld", "third": "Pavel Kral"}
        with ThreadPoolExecutor(len(told)) as pool:
            for done in [
                pool.submit(life.tell, host(LIGHTS, name), tenant=tenant)
                for tenant, name in told.items()
            ]:
                done.result()
        for tenant, name in told.items():
            if not life.serves(name, tenant=tenant):
                raise Broken(
                    f"told by three threads at once, it does not serve {name} to {tenant}",
                    "a memory that says threads = True takes in what several threads tell it",
                    "guard the state with a lock, or do not claim it",
                )


CHECKS: Final = (
    required_methods, known_capabilities, begins_empty, serves_what_it_was_told, opens_anew,
    closes_twice, faults_while_not_open, writes_below_its_folder, takes_every_script,
    takes_control_characters, takes_a_long_turn, takes_an_empty_turn, takes_turns_of_one_minute,
    settles, threads_where_claimed,
)  # fmt: skip
