"""Who caused which call, and what it cost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.gateway.backend import Call
from steeltrap.harness.gateway.prefix import Prompt
from steeltrap.harness.models import Reply, Usage

__all__ = ["Arrival", "Kind", "Meter", "kind_of", "used"]

_GRACE_S: Final = 0.25
"""How long a step waits for calls that are still open. A client that gave up has closed its
connection by then, but the server may not have seen it."""
_WORDS: Final = 60
"""So many characters of a system message are shown."""


class Kind(NamedTuple):
    """What a call asks for; all embeddings are one kind."""

    dialect: str
    system: str | None = ""
    """The system message; None: the request could not be read."""
    schema: str = ""
    """Its name."""
    tools: tuple[str, ...] = ()
    """Their names."""

    def __str__(self) -> str:
        if self.dialect == "embeddings":
            return "a request for embeddings"
        if self.system is None:
            return f"a {self.dialect} request that cannot be read"
        if self.schema:
            return f"the {self.dialect} call for {self.schema}"
        if self.tools:
            return f"the {self.dialect} call with the tools {', '.join(self.tools)}"
        words = " ".join(self.system.split())
        if not words:
            return f"a {self.dialect} call without a system message"
        cut = words if len(words) <= _WORDS else words[:_WORDS].rsplit(" ", 1)[0] + " …"
        return f"the {self.dialect} call '{cut}'"


def kind_of(dialect: str, call: Call | None) -> Kind:
    """The kind of a call; None for one that could not be read."""
    if dialect == "embeddings":
        return Kind(dialect)
    if call is None or call.ask is None:
        return Kind(dialect, None)
    ask = call.ask
    return Kind(
        dialect, ask.said("system"), ask.schema_name, tuple(tool.name for tool in ask.tools)
    )


def used(prompt: Prompt, reply: Reply) -> Usage:
    """What a chat call cost in tokens, counted here where the provider says nothing."""
    said = reply.usage
    spoken = tokens.count(reply.text)
    for call in reply.calls:
        spoken += tokens.count(f"{call.name}{msgspec.json.encode(call.arguments).decode()}")
    prompt_tokens = said.prompt_tokens or prompt.tokens
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=said.completion_tokens or spoken,
        cached_tokens=said.cached_tokens,
        prefix_tokens=min(prompt.prefix_tokens, prompt_tokens),
    )


class Arrival(msgspec.Struct, eq=False):
    """A request that is being answered."""

    dialect: str
    step: int
    phase: str
    order: int
    life: int
    """Of the memory, counted by `Meter.begin`."""


class _Failure(msgspec.Struct):
    """A call that was answered by an error, brokenly or not at all."""

    kind: Kind
    what: str
    phase: str
    arrived: int
    """When it came, and when it was answered, in the order of all that happened."""
    answered: int
    missing: set[str] = set()
    """What was asked, and has not been answered since: texts to be embedded, or the prompt."""
    recovered: bool = False


class Meter:
    """Attributes every request to the step and phase in force when it arrived.

    The driver says where it is and takes what was used, the server reports the requests; they
    do so from different threads.
    """

    def __init__(self) -> None:
        self.address = ""
        """Of the server, without a path."""
        self._changed = threading.Condition()
        self._order = self._life = 0
        self.begin()

    # ------------------------------------------------------------ the driver's side

    def begin(self) -> None:
        """A new life of a memory begins: what was left of another is none of its own."""
        with self._changed:
            self._life += 1
            self._open: set[Arrival] = set()
            self._step, self._phase = -1, ""
            self._used: dict[str, Usage] = {}
            self._failures: list[_Failure] = []
            self._stopped = ""

    def at(self, step: int, phase: str) -> None:
        """The requests from now on are caused by this step in this phase."""
        with self._changed:
            if step != self._step:
                self._failures.clear()
            self._step, self._phase = step, phase

    def taken(self) -> dict[str, Usage]:
        """What each phase has used since the last time; a call counts when it is answered."""
        with self._changed:
            self._settle()
            used, self._used = self._used, {}
        return used

    def unrecovered(self) -> str:
        """Names a call of this step that failed and was never made good.

        A system that swallows a failed call shows no other sign of it. A failed call is made
        good within the step by a later call of the same kind that is answered whole and asks the
        same: a prompt that is, or begins with, the failed one; texts that were to be embedded, in
        one call or in several. A call that an earlier step made counts where its failure comes to
        light.

        Returns:
            A sentence, or nothing where every call was answered in the end.
        """
        with self._changed:
            self._settle()
            lost = [failure for failure in self._failures if not failure.recovered]
        if not lost:
            return ""
        first = lost[0]
        more = f" ({len(lost)} such calls)" if len(lost) > 1 else ""
        during = f" during {first.phase}" if first.phase else ""
        return (
            f"{first.kind}{during} {first.what}, and no later call of its kind was answered{more}"
        )

    def stopped(self) -> str:
        """Why no further call can be answered: a budget is spent, or a prompt is not known.

        Asking clears it, so that a run that was stopped can be taken up.
        """
        with self._changed:
            why, self._stopped = self._stopped, ""
        return why

    # ------------------------------------------------------------ the server's side

    def arrived(self, dialect: str) -> Arrival:
        """A request came in."""
        with self._changed:
            arrival = Arrival(dialect, self._step, self._phase, self._next(), self._life)
            self._open.add(arrival)
        return arrival

    def answered(
        self,
        arrival: Arrival,
        kind: Kind,
        usage: Usage,
        broken: str = "",
        stops: str = "",
        asked: Sequence[str] = (),
    ) -> None:
        """A request is about to be answered, or never will be.

        Args:
            arrival: what `arrived` gave.
            kind: of the call.
            usage: what it cost, without the count of calls.
            broken: what became of it, as the end of a sentence: "was answered 500 (overloaded)".
            stops: why no further call can be answered.
            asked: the prompt, or the texts to be embedded; empty: not known.
        """
        counts = Usage(
            calls=1, failed=int(bool(broken)), embeddings=int(arrival.dialect == "embeddings")
        )
        with self._changed:
            if arrival.life != self._life:
                return  # whoever asked has died
            self._stopped = self._stopped or stops
            self._open.discard(arrival)
            self._used[arrival.phase] = self._used.get(arrival.phase, Usage()) + usage + counts
            if broken:
                self._failures.append(
                    _Failure(kind, broken, arrival.phase, arrival.order, self._next(), set(asked))
                )
            else:
                self._recover(kind, arrival.order, asked)
            self._changed.notify_all()

    def _recover(self, kind: Kind, arrived: int, asked: Sequence[str]) -> None:
        for failure in self._failures:
            if failure.kind != kind or arrived < failure.arrived:
                continue
            # a prompt that is asked again may have a complaint below it
            failure.missing = {
                text for text in failure.missing if not any(t.startswith(text) for t in asked)
            }
            failure.recovered = not failure.missing

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _settle(self) -> None:
        self._changed.wait_for(lambda: not self._open, timeout=_GRACE_S)
