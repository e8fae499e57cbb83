"""What memories of this repository share that ask a chat model and keep plain Python values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from steeltrap.adapters.chat import Chat
from steeltrap.harness.memory import MemoryFault, Subject
from steeltrap.harness.models import Models

__all__ = ["Forked", "Kept", "names"]


class _Forgets(Protocol):
    """What is kept of one tenant."""

    def forget(self, subject: Subject) -> None:
        """Remove what names the subject."""


class _Copied(_Forgets, Protocol):
    """The same, where it can be copied."""

    def copy(self) -> Self:
        """One that can be changed without changing this one."""


S = TypeVar("S", bound=_Forgets)
C = TypeVar("C", bound=_Copied)


class Kept(Generic[S]):
    """The life of such a memory: one state a tenant, a chat model, erasure.

    Args:
        name: of the memory, for messages.
        fresh: makes the state of a tenant that says something for the first time.
    """

    def __init__(self, name: str, fresh: Callable[[], S]) -> None:
        self._name = name
        self._fresh = fresh
        self._chat = Chat(name)
        self._states: dict[str, S] | None = None

    def connect(self, models: Models) -> None:
        """Ask this model."""
        self._chat.connect(models)

    def open(self, folder: Path) -> None:  # noqa: ARG002 - everything is kept in memory
        """Begin an empty memory.

        Raises:
            MemoryFault: there is no model.
        """
        self._chat.open()
        self._states = {}

    def close(self) -> None:
        """Drop everything."""
        self._chat.close()
        self._states = None

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._opened()

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Drop what is kept of a tenant, or what names a subject.

        What speaks of a subject without its topic's name stays, and what names it for another reason
        goes: these memories know no subjects.
        """
        states = self._opened()
        if subject is None:
            states.pop(tenant, None)
        elif tenant in states:
            states[tenant].forget(subject)

    def _of(self, tenant: str) -> S:
        """A tenant's state, to be read; a new one where there is none."""
        return self._opened().get(tenant) or self._fresh()

    def _opened(self) -> dict[str, S]:
        if self._states is None:
            raise MemoryFault(
                f"{self._name}: not open; call open(folder) first, and nothing after close()"
            )
        return self._states


class Forked(Kept[C]):
    """The same where states can be copied.

    A turn is worked through on a copy of its tenant's state, which takes the state's place when all
    is done: where the model fails nothing has happened.
    """

    def fork(self) -> Self:
        """An exact copy, which asks through the original's connections."""
        twin = copy.copy(self)
        twin._states = {tenant: state.copy() for tenant, state in self._opened().items()}
        twin._chat = self._chat.lend()
        return twin


def names(subject: Subject, *texts: str) -> Callable[[str], bool]:
    """Tells which texts name a subject: its topic and field, or, where none of all does, its topic.

    Args:
        subject: to be found.
        texts: all that there are.
    """
    topic, field = subject.topic.casefold(), subject.field.casefold()
    both = any(topic in text.casefold() and field in text.casefold() for text in texts)
    words = (topic, field) if both else (topic,)
    return lambda text: all(word in text.casefold() for word in words)
