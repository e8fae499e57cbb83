"""The adapter: observe, retrieve, reflect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, get_args

import msgspec

from steeltrap.adapters.chat import prompts
from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.adapters.embedders.base import Vectors
from steeltrap.adapters.generative_agents.stream import (  # fmt: skip
    CODE,
    IMPORTANCE_MAX,
    PAPER,
    Record,
    Stream,
    Variant,
    named,
)
from steeltrap.adapters.kept import Forked
from steeltrap.harness.memory import Item, Query, Subject, Utterance

__all__ = ["GenerativeAgents", "Insight", "Insights", "Questions", "Rating"]

RECENT: Final = 100
"""Records that are shown to find what to reflect on (section 4.2)."""
EVIDENCE: Final = 30
"""Records that are gathered for each question: `n_count` of the released code; the paper says how
many nowhere."""


class Rating(msgspec.Struct, frozen=True):
    """How much something matters."""

    importance: Annotated[int, msgspec.Meta(ge=1, le=IMPORTANCE_MAX)]


class Questions(msgspec.Struct, frozen=True):
    """What to reflect on."""

    questions: list[str]


class Insight(msgspec.Struct, frozen=True):
    """What follows from some records."""

    insight: str
    because: list[int]
    """Their numbers."""


class Insights(msgspec.Struct, frozen=True):
    """What a reflection finds."""

    insights: list[Insight]


class GenerativeAgents(Forked[Stream]):
    """The memory of Generative Agents (Park et al., UIST 2023), one agent a tenant.

    A turn is an observation, word for word; a model says how important it is. Retrieval ranks the
    whole stream by recency, importance and relevance, and what is served has been accessed: **reading
    changes the state**. When what was observed since the last time weighs more than `threshold`, the
    agent reflects: it asks itself questions, retrieves (which is an access, too) and stores insights
    with what they are drawn from. Nothing ever leaves the stream.

    Where the model cannot be asked, nothing is observed.

    Args:
        embedder: makes the vectors; by default `WordLlamaEmbedder`.
        scoring: `paper`, or `code` as released, which differs; see the README.
        threshold: summed importance after which the agent reflects; 0: never.
        questions: at each reflection, and ...
        insights: for each of them, at most.

    Raises:
        ValueError: a setting makes no sense.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        scoring: Variant = "paper",
        threshold: int = 150,
        questions: int = 3,
        insights: int = 5,
    ) -> None:
        if scoring not in get_args(Variant):
            raise ValueError(f"generative-agents: scoring={scoring}: paper or code")
        if threshold < 0 or min(questions, insights) < 1:
            raise ValueError(
                f"generative-agents: threshold={threshold} is at least 0,"
                f" questions={questions} and insights={insights} at least 1"
            )
        super().__init__("generative-agents", Stream)
        self.embedder = embedder or WordLlamaEmbedder()
        self._scoring = PAPER if scoring == "paper" else CODE
        self._threshold, self._questions, self._insights = threshold, questions, insights
        self._prompts = prompts("steeltrap.adapters.generative_agents")

    # ------------------------------------------------------------ observing and reflecting

    def ingest(self, turn: Utterance) -> None:
        """Observe a turn; reflect where enough has come together."""
        stream = self._of(turn.tenant).copy()
        importance = self._rated(turn.text)
        stream.add(turn.text, turn.at, importance, (turn.id,), self._vector(turn.text))
        stream.pending += importance
        if 0 < self._threshold < stream.pending:
            self._reflect(stream, turn.at)
            stream.pending = 0
        self._opened()[turn.tenant] = stream

    def _rated(self, text: str) -> int:
        """Poignancy of one memory (section 4.1)."""
        asked = self._prompts["importance-1"].messages(memory=_json({"memory": text}))
        return self._chat.filled(asked, "importance", Rating).importance

    def _reflect(self, stream: Stream, at: str) -> None:
        """Questions, what bears on each, insights with their evidence (section 4.2)."""
        recent = stream.records[-RECENT:]
        asked = self._prompts["questions-1"].messages(
            count=str(self._questions), records=_rows(recent)
        )
        for question in self._chat.filled(asked, "questions", Questions).questions[
            : self._questions
        ]:
            found = self._retrieved(stream, question, at, EVIDENCE)
            evidence = sorted((record for record, _ in found), key=lambda one: one.number)
            for insight in self._concluded(question, evidence):
                self._store(stream, insight, evidence, at)

    def _concluded(self, question: str, evidence: Sequence[Record]) -> list[Insight]:
        if not evidence:
            return []
        asked = self._prompts["insights-1"].messages(
            count=str(self._insights), question=_json({"question": question}),
            records=_rows(evidence),
        )  # fmt: skip
        return self._chat.filled(asked, "insights", Insights).insights[: self._insights]

    def _store(self, stream: Stream, said: Insight, evidence: Sequence[Record], at: str) -> None:
        """An insight that cites nothing of what was shown is none."""
        cited = [record for record in evidence if record.number in said.because]
        if not said.insight.strip() or not cited:
            return
        turns = dict.fromkeys(turn for record in cited for turn in record.turns)
        stream.add(
            said.insight, at, self._rated(said.insight), tuple(turns),
            self._vector(said.insight), [record.number for record in cited],
        )  # fmt: skip

    # ------------------------------------------------------------ retrieving

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The best records with their scores; they have been accessed then."""
        stream = self._opened().get(query.tenant)
        if stream is None:
            return []
        found = self._retrieved(stream, query.text, query.at, query.limit)
        return [_item(record, score) for record, score in found]

    def _retrieved(
        self, stream: Stream, question: str, at: str, limit: int
    ) -> list[tuple[Record, float]]:
        found = self._scoring.best(stream.records, self._vector(question), at, limit)
        stream.access([record for record, _ in found], at)
        return found

    def _vector(self, text: str) -> Vectors:
        vector: Vectors = self.embedder.embed([text])[0]
        return vector

    # ------------------------------------------------------------ looking

    def active(self, tenant: str) -> Sequence[Item]:
        """The whole stream, oldest first."""
        return [_item(record) for record in self._of(tenant).records]

    def salience(self, subject: Subject) -> float | None:
        """What recency and importance give the best record of a subject; None if there is none.

        It is what is ranked by beside relevance, as of the latest time that the agent knows. Records
        of a subject are those that name its topic and field; where none does, those that name its
        topic.
        """
        records = self._of(subject.tenant).records
        about = [n for n, one in enumerate(records) if named(one, subject.topic)]
        exact = [n for n in about if named(records[n], subject.field)]
        if not about:
            return None
        scores = self._scoring.salience(records, max(record.accessed for record in records))
        return max(float(scores[place]) for place in exact or about)


def _item(record: Record, score: float | None = None) -> Item:
    return Item(
        text=record.text, id=str(record.number), sources=record.turns, valid_from=record.at,
        score=score,
    )  # fmt: skip


def _rows(records: Sequence[Record]) -> str:
    return "\n".join(_json({"number": one.number, "text": one.text}) for one in records)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
