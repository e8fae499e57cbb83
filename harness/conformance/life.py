"""One life of a memory that is put to a check: calls that say by name what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from steeltrap.harness.conformance.said import ACME, LIGHTS, about
from steeltrap.harness.memory import Item, Memory, MemoryFault, Query, Subject, Utterance

__all__ = ["Broken", "Life", "Make", "NotApplicable", "Remark", "names", "shown"]

Make = Callable[[], Memory]
"""Gives a new memory, not yet opened."""
BEGAN: Final = "2026-01-05T09:00"


class Broken(AssertionError):
    """A memory does not keep to the contract.

    Attributes:
        happened: what it did.
        due: what the contract says.
        hint: what to do.
    """

    def __init__(self, happened: str, due: str, hint: str) -> None:
        self.happened, self.due, self.hint = happened, due, hint
        super().__init__(f"{happened}\n  contract: {due}\n  to do:    {hint}")


class Remark(Broken):
    """What a memory may do, and whoever compares its runs should know."""


class NotApplicable(Exception):
    """A check cannot be put to this memory; says why."""


class Life:
    """A memory from `open` to `close`, told on a clock that goes an hour a turn.

    Args:
        make: gives a new memory.
        folder: is made where it is not there; the memory's own.
        began: the time of the first turn.
    """

    def __init__(self, make: Make, folder: Path, *, began: str = BEGAN) -> None:
        self.memory = make()
        self.folder = folder
        self.said: dict[str, Utterance] = {}
        """Every turn by its id."""
        self._now = datetime.fromisoformat(began)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.call("open", self.folder)
        except Broken:
            self.memory.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.call("close")
            return
        try:
            self.memory.close()
        except Exception as closing:  # the first failure is the one to be read
            error.add_note(f"and close() raised {_words(closing)}")

    @property
    def now(self) -> str:
        """The simulated time."""
        return self._now.isoformat(timespec="minutes")

    def call(self, method: str, *arguments: Any) -> Any:
        """Call the memory.

        Raises:
            Broken: it raised an error.
        """
        try:
            return getattr(self.memory, method)(*arguments)
        except Exception as error:
            shortened = ", ".join(_short(argument) for argument in arguments)
            raise Broken(
                f"{method}({shortened}) raised {_words(error)}",
                "no error is due here; MemoryFault is for what certainly did not happen",
                "look at the line of the memory that raised it",
            ) from error

    def tell(
        self, *texts: str, tenant: str = ACME, minutes: int = 60, settle: bool = True
    ) -> list[Utterance]:
        """Take in turns; `minutes` pass after each."""
        turns = []
        for text in texts:
            turn = Utterance(f"turn-{len(self.said)}", self.now, tenant, "session-1", "user", text)
            self.said[turn.id] = turn
            self.call("ingest", turn)
            self._now += timedelta(minutes=minutes)
            turns.append(turn)
        if settle:
            self.call("settle")
        return turns

    def reply(self, text: str = about(LIGHTS), *, tenant: str = ACME, limit: int = 10) -> Any:
        """What `retrieve` returned, as it is."""
        return self.call("retrieve", Query("question-1", self.now, tenant, text, limit))

    def ask(self, text: str = about(LIGHTS), *, tenant: str = ACME, limit: int = 10) -> list[Item]:
        """The items of a reply; what is no item is left to the check of replies."""
        return items(self.reply(text, tenant=tenant, limit=limit))

    def listed(self, tenant: str = ACME) -> list[Item]:
        """The items of `active`."""
        return items(self.call("active", tenant))

    def looked_up(self, method: str, subject: Subject) -> list[Item]:
        """The items of `history` or `recover`."""
        return items(self.call(method, subject))

    def able(self, *protocols: type, what: str) -> None:
        """Go on only where the memory has a capability.

        Raises:
            NotApplicable: it has not.
        """
        if not isinstance(self.memory, protocols):
            raise NotApplicable(f"the memory has no {what}, so this cannot be put to it")

    def serves(self, name: str, topic: str = LIGHTS, tenant: str = ACME) -> bool:
        """Whether the question for the host of a topic is served a name."""
        return names(self.ask(about(topic), tenant=tenant), name)

    def must_serve(self, name: str, topic: str = LIGHTS, tenant: str = ACME) -> None:
        """Go on only where the memory serves what the check is about.

        Raises:
            NotApplicable: it does not.
        """
        if not self.serves(name, topic, tenant):
            raise NotApplicable(
                f"asked '{about(topic)}', the memory does not serve {name}, which it was told in"
                " plain words; so this cannot be seen"
            )


def items(reply: Any) -> list[Item]:
    """The items in whatever was returned."""
    if not isinstance(reply, Iterable):
        return []
    return [item for item in reply if isinstance(item, Item)]


def names(found: Iterable[Item], name: str) -> bool:
    """Whether an item holds a name."""
    return any(name.casefold() in str(item.text).casefold() for item in found)


def shown(found: Sequence[Item], most: int = 3) -> str:
    """Items in words, for a message."""
    texts = [_short(item.text) for item in found[:most]]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return (", ".join(texts) or "nothing") + more


def _short(argument: Any) -> str:
    text = argument.text if isinstance(argument, Utterance | Query | Subject) else argument
    words = ascii(text) if isinstance(text, str) and not text.isprintable() else repr(text)
    if isinstance(text, Path):
        return "folder"
    return words if len(words) <= 70 else f"{words[:60]}… ({len(str(text))} characters)"


def _words(error: BaseException) -> str:
    kind = type(error).__name__
    words = str(error).strip()
    fault = " (a MemoryFault)" if isinstance(error, MemoryFault) and kind != "MemoryFault" else ""
    return f"{kind}{fault}: {words[:300]}" if words else f"{kind}{fault}"
