"""What every interpreter is given and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from steeltrap.reference_system.statements import Question, Statement

__all__ = ["InterpretationError", "Interpreter", "Known", "Sketch", "Speech"]


class InterpretationError(RuntimeError):
    """What a model answered was of no use; the message says why. Nothing was stored."""


class Speech(msgspec.Struct, frozen=True):
    """An utterance, and what is known of it beside its words."""

    turn: str
    """Its id."""
    at: str
    """When it was said, ISO 8601."""
    tenant: str
    role: str
    """`user` or `assistant`; any other, such as `tool`, is content that nobody here vouches for."""
    speaker: str
    """Empty: not known."""
    text: str


class Sketch(msgspec.Struct, frozen=True):
    """As much of a stored topic as an interpreter is shown: enough to choose it, and its schema."""

    title: str
    summary: str
    fields: tuple[str, ...]


Known = Callable[[str, int], Sequence[Sketch]]
"""The stored topics nearest to a text, nearest first, at most so many."""


class Interpreter(Protocol):
    """Turns words into statements. It reads stored topics only as they are shown to it."""

    def statements(self, speech: Speech, known: Known) -> Sequence[Statement]:
        """What an utterance says, in its order.

        Raises:
            InterpretationError: no statements could be had; nothing may be stored.
        """

    def question(self, text: str, at: str, tenant: str, known: Known) -> Question:
        """What a question asks for.

        Args:
            text: the question.
            at: when it is asked, ISO 8601.
            tenant: who asks.
            known: finds stored topics; it is bound to the tenant.

        Raises:
            InterpretationError: no answer could be had; nothing may be counted as read.
        """
