"""The adapter: evaluate, reflect, keep the last few."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

import msgspec

from steeltrap.adapters.chat import prompts
from steeltrap.adapters.context import Nearness, fitting
from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.adapters.kept import Forked
from steeltrap.harness.memory import Item, Query, Subject, Utterance

__all__ = ["Evaluation", "Reflexion"]


class Evaluation(msgspec.Struct, frozen=True):
    """What the evaluator says of one message."""

    failed: bool
    """What the agent held before it was wrong, as the message shows."""


class _Experience(msgspec.Struct, frozen=True):
    """One reflection on one failure."""

    number: int
    at: str
    """When the agent failed."""
    text: str
    """Sentences, one a line."""


class _Lessons(msgspec.Struct):
    """What is kept of one tenant, oldest first."""

    trajectory: tuple[Utterance, ...] = ()
    """Short-term memory."""
    reflections: tuple[_Experience, ...] = ()
    """Long-term memory, at most `experiences`."""
    failures: int = 0
    """So far, to number them."""

    def copy(self) -> Self:
        """Another one; what it holds is never changed, only replaced."""
        return copy.copy(self)

    def forget(self, subject: Subject) -> None:
        """Drop every lesson and turn that names the subject's topic."""
        topic = subject.topic.casefold()
        self.trajectory = tuple(t for t in self.trajectory if topic not in t.text.casefold())
        self.reflections = tuple(o for o in self.reflections if topic not in o.text.casefold())


class Reflexion(Forked[_Lessons]):
    """The memory of Reflexion (Shinn et al., NeurIPS 2023): verbal lessons from failures.

    A model is shown the trajectory, the lessons so far and each new message of the user, and says
    whether the message shows that what the agent held was wrong: an evaluation that the agent can
    make by itself, without any truth. If so, a model writes a reflection, which joins the lessons; the
    oldest goes when there are more than `experiences`. Nothing else outlives the trajectory.

    Served are the lessons, newest first and a sentence an item, and then the trajectory, newest
    first; a model would have all of it before it, so that the limit of a query cuts it as
    `adapters.context` says. Reading changes nothing. Where a model cannot be asked nothing is taken
    in.

    Args:
        embedder: makes the vectors by which a context is cut; by default `WordLlamaEmbedder`.
        experiences: reflections that are kept and read, Ω; the paper has 1 to 3 (section 3) and
            3 in its experiments (sections 4.1 and 4.2).
        trajectory_turns: turns that are kept; the paper cuts a trial of ALFWorld at 30 actions
            (section 4.1).

    Raises:
        ValueError: a number is not positive.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        experiences: int = 3,
        trajectory_turns: int = 30,
    ) -> None:
        if min(experiences, trajectory_turns) < 1:
            raise ValueError(
                f"reflexion: experiences={experiences} and trajectory_turns={trajectory_turns}"
                " are at least 1"
            )
        super().__init__("reflexion", _Lessons)
        self.embedder = embedder or WordLlamaEmbedder()
        self._nearness = Nearness(self.embedder)
        self._experiences, self._trajectory_turns = experiences, trajectory_turns
        self._prompts = prompts("steeltrap.adapters.reflexion")

    # ------------------------------------------------------------ trials

    def ingest(self, turn: Utterance) -> None:
        """Take in a turn; reflect if it shows a failure. What an assistant says shows none."""
        kept = self._of(turn.tenant)
        reflections, failures = kept.reflections, kept.failures
        if turn.role != "assistant" and self._failed(kept, turn):
            failures += 1
            lesson = _Experience(failures, turn.at, self._reflected(kept, turn))
            reflections = (*reflections, lesson)[-self._experiences :]
        trajectory = (*kept.trajectory, turn)[-self._trajectory_turns :]
        self._opened()[turn.tenant] = _Lessons(trajectory, reflections, failures)

    def _failed(self, kept: _Lessons, turn: Utterance) -> bool:
        """The evaluator. An agent that has not said or heard anything cannot have been wrong."""
        if not kept.trajectory and not kept.reflections:
            return False
        asked = self._prompts["evaluate-1"].messages(**_shown(kept, turn))
        return self._chat.filled(asked, "evaluation", Evaluation).failed

    def _reflected(self, kept: _Lessons, turn: Utterance) -> str:
        """The self-reflection model."""
        said = self._chat.text(self._prompts["reflect-1"].messages(**_shown(kept, turn)))
        return "\n".join(filter(None, (" ".join(line.split()) for line in said.split("\n"))))

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The lessons and then the trajectory, each newest first, as far as the limit goes."""
        kept = self._of(query.tenant)
        lessons = (item for one in kept.reflections[::-1] for item in _sentences(one))
        context = [*lessons, *map(_verbatim, kept.trajectory[::-1])]
        return fitting(context, query.text, query.limit, self._nearness)

    # ------------------------------------------------------------ looking and erasing

    def active(self, tenant: str) -> Sequence[Item]:
        """The lessons and the trajectory, each oldest first."""
        kept = self._of(tenant)
        lessons = (item for one in kept.reflections for item in _sentences(one))
        return [*lessons, *map(_verbatim, kept.trajectory)]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """See `Kept`."""
        self._nearness.forget()
        super().erase(tenant, subject)


def _shown(kept: _Lessons, turn: Utterance) -> dict[str, str]:
    """What both models are shown."""
    lessons = [{"lesson": one.text} for one in kept.reflections]
    return {
        "lessons": "\n".join(map(_json, lessons)),
        "trajectory": "\n".join(_json(_said(one)) for one in kept.trajectory),
        "message": _json(_said(turn)),
    }


def _said(turn: Utterance) -> dict[str, str]:
    return {"at": turn.at, "role": turn.role, "text": turn.text}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _sentences(one: _Experience) -> list[Item]:
    """A lesson; the paper keeps the text and its place among the trials, and no source."""
    lines = one.text.split("\n")
    return [
        Item(text=line, id=f"lesson-{one.number}.{place}", valid_from=one.at)
        for place, line in enumerate(lines, 1)
    ]


def _verbatim(turn: Utterance) -> Item:
    return Item(text=turn.text, id=turn.id, sources=(turn.id,), valid_from=turn.at)
