"""What the models are asked: extractor, adjudicator, summarizer and embedder of the recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from steeltrap.adapters.chat import Chat, prompts
from steeltrap.adapters.helix.graph import Row
from steeltrap.adapters.helix.settings import Kind
from steeltrap.harness.memory import MemoryFault, Utterance
from steeltrap.harness.models import Models

__all__ = ["NOTHING", "Candidate", "Decision", "Line", "Minds", "Relation"]

NOTHING = "NONE"
"""Stands where there is nothing to show."""
Relation = Literal["duplicate", "update", "extend", "new"]
"""The four decisions of the recipe."""
FOCUS_SHARE = 4
"""One line of so many may tell of the present focus."""


class Candidate(msgspec.Struct, frozen=True):
    """A fact that the extractor found. The recipe names all fields but the last three."""

    content: str
    kind: Kind
    confidence: float
    entities: list[str]
    source: str
    """Id of the message in which it stands."""
    scope: Literal["user", "shared"]
    importance: Literal["low", "normal", "high"]
    """What the salience of the data model begins with."""
    event_at: str
    """The recipe's eventAt: when it was so in the world; empty where that is now."""
    expires_at: str
    """The recipe's expiresAt; empty where there is no end."""


class Decision(msgspec.Struct, frozen=True):
    """How a candidate relates to what is there."""

    fact: int
    relation: Relation
    memories: list[int]


class Line(msgspec.Struct, frozen=True):
    """A line of a profile."""

    text: str
    memories: list[int]
    """Which it comes from."""


class _Found(msgspec.Struct, frozen=True):
    facts: list[Candidate]


class _Decided(msgspec.Struct, frozen=True):
    decisions: list[Decision]


class _Profile(msgspec.Struct, frozen=True):
    stable: list[Line]
    focus: list[Line]


class Minds:
    """The models of one memory."""

    def __init__(self) -> None:
        self._chat = Chat("helix-recipe")
        self._prompts = prompts("steeltrap.adapters.helix")
        self._models: Models | None = None
        self._client: Any = None

    def connect(self, models: Models) -> None:
        """Ask these."""
        self._models = models
        self._chat.connect(models)

    def open(self) -> int:
        """Make the clients; gives the dimension of the vectors.

        Raises:
            MemoryFault: there are no models.
        """
        self._chat.open()  # says so where there are none
        assert self._models is not None
        from openai import OpenAI

        self._client = OpenAI(
            base_url=self._models.openai_url, api_key=self._models.key,
            timeout=self._models.timeout_s, max_retries=self._models.retries,
        )  # fmt: skip
        return self._models.dimension

    def close(self) -> None:
        """Close the connections."""
        self._chat.close()
        if self._client is not None:
            self._client.close()
        self._client = None

    # ------------------------------------------------------------ what is asked

    def embedded(self, texts: Sequence[str]) -> list[list[float] | None]:
        """The vectors of texts; None for one that has no direction, which no index takes.

        Raises:
            MemoryFault: there are none.
        """
        if not texts:
            return []
        from openai import OpenAIError

        assert self._models is not None
        try:
            reply = self._client.embeddings.create(
                model=self._models.embedding, input=list(texts), encoding_format="float"
            )
        except OpenAIError as error:
            raise MemoryFault(f"helix-recipe: no vectors could be had: {error}") from error
        return [list(one.embedding) if any(one.embedding) else None for one in reply.data]

    def extracted(
        self, turn: Utterance, recent: Iterable[Utterance], related: Iterable[Row]
    ) -> list[Candidate]:
        """The facts of a turn, in their order; none without a sentence."""
        asked = self._prompts["extract-1"].messages(
            date=turn.at.replace("T", " "),
            related=_lines({"id": row.number, "text": row.text} for row in related),
            recent=_lines(map(_shown, recent)),
            message=_lines([_shown(turn)]),
        )
        found = self._chat.filled(asked, "facts", _Found).facts
        return [one for one in found if one.content.strip()]

    def adjudicated(
        self, facts: Sequence[Candidate], memories: Sequence[Row]
    ) -> list[tuple[Relation, list[Row]]]:
        """How each fact relates to the memories, and to which of them.

        A memory that was not shown is left out, and a fact without a decision, or whose memories
        were all left out, is new. Without memories nobody need be asked.
        """
        if not memories:
            return [("new", [])] * len(facts)
        asked = self._prompts["adjudicate-1"].messages(
            memories=_lines({"id": row.number, "text": row.text} for row in memories),
            facts=_lines({"fact": n, "text": one.content} for n, one in enumerate(facts)),
        )
        decided = {
            one.fact: one for one in self._chat.filled(asked, "decisions", _Decided).decisions
        }
        shown = {row.number: row for row in memories}
        found: list[tuple[Relation, list[Row]]] = []
        for number in range(len(facts)):
            decision = decided.get(number)
            meant = (
                [shown[n] for n in dict.fromkeys(decision.memories) if n in shown]
                if decision
                else []
            )
            if decision is None or not meant:
                found.append(("new", []))
            else:
                found.append(
                    (decision.relation, meant if decision.relation == "update" else meant[:1])
                )
        return found

    def profiled(self, memories: Sequence[Row], lines: int) -> list[Line]:
        """The lines of a profile, what is stable first; none that names no memory that was shown."""
        asked = self._prompts["profile-1"].messages(
            lines=str(lines), focus=str(lines // FOCUS_SHARE),
            memories=_lines(
                {"id": row.number, "kind": row.kind, "since": row.valid_from, "text": row.text}
                for row in memories
            ),
        )  # fmt: skip
        profile = self._chat.filled(asked, "profile", _Profile)
        shown = {row.number for row in memories}
        written = [*profile.stable, *profile.focus][:lines]
        return [
            one
            for one in written
            if one.text.strip() and one.memories and shown >= set(one.memories)
        ]


def _shown(turn: Utterance) -> Mapping[str, str]:
    return {"id": turn.id, "at": turn.at, "role": turn.role, "text": turn.text}


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """One JSON object a line, so that nothing in a text can be taken for a heading."""
    return "\n".join(msgspec.json.encode(row).decode() for row in rows) or NOTHING
