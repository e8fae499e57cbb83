"""The adapter: a summary of what is older, and the latest turns word for word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from steeltrap.adapters.chat import prompts
from steeltrap.adapters.kept import Kept
from steeltrap.harness.memory import Item, Query, Subject, Utterance
from steeltrap.harness.tokens import count

__all__ = ["NOTHING", "Summary"]

NOTHING: Final = "NONE"
"""What the model says where nothing is worth keeping."""


class _Transcript(msgspec.Struct):
    """What is kept of one tenant."""

    summary: tuple[str, ...] = ()
    """Its sentences."""
    turns: tuple[Utterance, ...] = ()
    """Those that it does not hold yet, oldest first."""

    def forget(self, subject: Subject) -> None:
        """Drop every turn and sentence that names the subject's topic."""
        topic = subject.topic.casefold()
        self.summary = tuple(line for line in self.summary if topic not in line.casefold())
        self.turns = tuple(turn for turn in self.turns if topic not in turn.text.casefold())


class Summary(Kept[_Transcript]):
    """Flat history with summarisation.

    When the turns that are kept word for word have more than `trigger_tokens` together, a model
    writes a new summary of the older ones and of the summary so far; the latest that fit into
    `keep_tokens` stay. The summary itself does not count: one that is as long as the trigger would
    be written anew with every turn. Where the model cannot be asked, nothing is taken in or lost.

    Served is, whatever the question, the latest turns, newest first, and then the summary, a sentence
    an item. A sentence names no sources: nobody knows which turns a model made it of. Like `flat` it
    is its own retrieval budget, which `Query.limit` does not cut.

    Args:
        trigger_tokens: of the turns' texts (o200k_base).
        keep_tokens: the same; below the trigger.
        prompt: which of `prompts.toml`.

    Raises:
        ValueError: a number or the prompt makes no sense.
    """

    def __init__(
        self, *, trigger_tokens: int = 1000, keep_tokens: int = 250, prompt: str = "plain-1"
    ) -> None:
        if not 0 <= keep_tokens < trigger_tokens:
            raise ValueError(
                f"summary: keep_tokens={keep_tokens} has to be at least 0 and below"
                f" trigger_tokens={trigger_tokens}"
            )
        known = prompts("steeltrap.adapters.summary")
        if prompt not in known:
            raise ValueError(f"summary: prompt={prompt}: there are {', '.join(known)}")
        self._trigger_tokens, self._keep_tokens = trigger_tokens, keep_tokens
        self._prompt = known[prompt]
        super().__init__("summary", _Transcript)

    # ------------------------------------------------------------ telling and asking

    def ingest(self, turn: Utterance) -> None:
        """Take in a turn; summarise what is older where the room runs out."""
        kept = self._of(turn.tenant)
        turns = (*kept.turns, turn)
        if sum(count(one.text) for one in turns) <= self._trigger_tokens:
            self._opened()[turn.tenant] = _Transcript(kept.summary, turns)
            return
        older = self._older(turns)
        summary = self._summarised(kept.summary, turns[:older])
        self._opened()[turn.tenant] = _Transcript(summary, turns[older:])

    def _older(self, turns: Sequence[Utterance]) -> int:
        """How many turns do not fit beside the later ones; those stay whole."""
        left, place = self._keep_tokens, len(turns)
        while place and (left := left - count(turns[place - 1].text)) >= 0:
            place -= 1
        return place

    def _summarised(self, summary: Sequence[str], turns: Sequence[Utterance]) -> tuple[str, ...]:
        told = [{"at": turn.at, "role": turn.role, "text": turn.text} for turn in turns]
        said = self._chat.text(
            self._prompt.messages(
                summary="\n".join(summary) or NOTHING,
                turns="\n".join(msgspec.json.encode(one).decode() for one in told),
            )
        )
        lines = (" ".join(line.split()) for line in said.split("\n"))
        return tuple(line for line in lines if line not in ("", NOTHING))

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The latest turns, newest first, then the summary."""
        kept = self._of(query.tenant)
        return [*map(_verbatim, kept.turns[::-1]), *map(Item, kept.summary)]

    # ------------------------------------------------------------ looking

    def active(self, tenant: str) -> Sequence[Item]:
        """The summary, then the latest turns, oldest first."""
        kept = self._of(tenant)
        return [*map(Item, kept.summary), *map(_verbatim, kept.turns)]


def _verbatim(turn: Utterance) -> Item:
    return Item(text=turn.text, id=turn.id, sources=(turn.id,), valid_from=turn.at)
