"""What an interpreter says: the facts, ties and questions that it found in an utterance.

Topics and fields are named here as people name them; which stored topic and field is meant is
for the operators to find out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from steeltrap.reference_system.rules import Rule

__all__ = [
    "Association",
    "Dependency",
    "Fact",
    "Mode",
    "Place",
    "Question",
    "Same",
    "Statement",
    "Withdrawal",
    "valid",
    "valid_question",
]

Mode = Literal["topic", "temporal", "structural"]


class _Statement(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="say"):
    pass


class Place(msgspec.Struct, frozen=True):
    """A field of a topic, by name."""

    topic: str
    field: str


class Fact(_Statement, frozen=True, tag="fact"):
    """A field has a value."""

    topic: str
    field: str
    value: str
    said_by: str = "owner"
    """Whose words: a source that the policies rank."""
    valid_from: str | None = None
    """ISO 8601; None: from when it is said. Earlier than the present value: late news."""
    until: str | None = None
    """ISO 8601: it holds until then."""
    corrects: bool = False
    """The value on record was wrong all along."""
    tags: tuple[str, ...] = ()
    """Such as `vital` or `trivial`; policies may ask for them."""
    about: str = ""
    """The person or thing within the topic that the field describes, such as `Alice`."""
    new_topic: bool = False
    """Put it into a topic of its own even where one of that title is known."""


class Withdrawal(_Statement, frozen=True, tag="withdrawal"):
    """A field has no value any more."""

    topic: str
    field: str
    said_by: str = "owner"


class Dependency(_Statement, frozen=True, tag="dependency"):
    """An extension edge: `target` follows `source`, by a rule where there is one."""

    source: Place
    target: Place
    rule: Rule | None = None
    """None: somebody has to look at the target whenever the source changes."""


class Association(_Statement, frozen=True, tag="association"):
    """An association edge: two topics are related, and independent."""

    topic: str
    other: str


class Same(_Statement, frozen=True, tag="same"):
    """Two titles name one thing."""

    topic: str
    other: str


Statement = Fact | Withdrawal | Dependency | Association | Same
_KINDS: Final = (Fact, Withdrawal, Dependency, Association, Same)


def valid(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, once each is known to hold what it may hold.

    Raises:
        ValueError: one does not; nothing of them may be stored.
    """
    if isinstance(statements, _KINDS):
        raise ValueError("statements is a list; put the one statement into brackets")
    return [_valid(said, Statement, f"statement {n}") for n, said in enumerate(statements, 1)]


def valid_question(question: Question) -> Question:
    """A question, once it is known to hold what it may hold.

    Raises:
        ValueError: it does not.
    """
    if isinstance(question, str):
        raise ValueError("retrieve takes a Question; `ask` takes a question in words")
    asked: Question = _valid(question, Question, "the question")
    return asked


def _valid(said: Any, kind: Any, name: str) -> Any:
    try:
        return msgspec.convert(msgspec.to_builtins(said), type=kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"{name} is malformed: {error} ({said!r:.200})") from None


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is asked, as far as an interpreter can tell."""

    text: str = ""
    """The question itself, for routing by meaning where no place is named."""
    places: tuple[Place, ...] = ()
    """The fields asked for; a place with an empty field asks for the whole topic."""
    mode: Mode = "topic"
    as_of: str | None = None
    """temporal: what held at this instant, ISO 8601."""
    recorded_by: str | None = None
    """temporal: only what the memory knew at this instant counts, ISO 8601."""
