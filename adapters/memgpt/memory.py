"""The adapter: events, the queue manager, and what main context holds for a question."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from steeltrap.adapters.chat import prompts
from steeltrap.adapters.context import Nearness, fitting
from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.adapters.kept import Forked
from steeltrap.adapters.memgpt.context import BLOCKS, Agent, Entry, Role, as_json
from steeltrap.adapters.memgpt.functions import TOOLS, Executor
from steeltrap.harness.memory import Item, Query, Subject, Utterance
from steeltrap.harness.tokens import count

__all__ = ["MemGPT"]

NONE = "NONE"
"""What the model says where nothing is worth keeping."""


class MemGPT(Forked[Agent]):
    """The tiers of MemGPT (Packer et al. 2023), one agent a tenant.

    A turn is an event: it joins the queue, and the model deals with it by calling functions until
    it asks for no further heartbeat. A question is an event too, so that **reading changes the
    state**: question and calls stay in the queue, and what was found stands at its end again.

    Where a model cannot be asked, nothing happened.

    Args:
        embedder: makes the vectors of archival storage; by default `WordLlamaEmbedder`.
        context_tokens: the model's context window (o200k_base).
        warning: share of it from which the model is warned (section 2.2).
        flush: share of it from which the queue is flushed.
        evicted: share of it that is evicted then.
        block_chars: characters that each block of core memory may have.
        summary_words: that the summary shall have at most.
        steps: inferences for one event, at most.

    Raises:
        ValueError: a setting makes no sense.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        context_tokens: int = 8192,
        warning: float = 0.7,
        flush: float = 1.0,
        evicted: float = 0.5,
        block_chars: int = 2000,
        summary_words: int = 100,
        steps: int = 10,
    ) -> None:
        if not 0 < warning <= flush or not 0 < evicted <= flush:
            raise ValueError(
                f"memgpt: warning={warning} and evicted={evicted} have to be above 0 and at most"
                f" flush={flush}"
            )
        if min(context_tokens, block_chars, summary_words, steps) < 1:
            raise ValueError(
                "memgpt: context_tokens, block_chars, summary_words and steps are at least 1"
            )
        super().__init__("memgpt", Agent)
        self.embedder = embedder or WordLlamaEmbedder()
        self._nearness = Nearness(self.embedder)
        self._executor = Executor(self._nearness, block_chars)
        self._warning, self._flush = warning * context_tokens, flush * context_tokens
        self._evicted = evicted * context_tokens
        self._block_chars, self._summary_words, self._steps = block_chars, summary_words, steps
        self._prompts = prompts("steeltrap.adapters.memgpt")

    # ------------------------------------------------------------ events

    def ingest(self, turn: Utterance) -> None:
        """Hear a turn and deal with it. What an assistant says is the agent's own, and no event."""
        agent = self._of(turn.tenant).copy()
        role: Role = "assistant" if turn.role == "assistant" else "user"
        agent.hear(Entry(turn.at, role, turn.text, turn.id))
        self._manage(agent, turn.at)
        if role == "user":
            self._think(agent, turn.at)
        self._opened()[turn.tenant] = agent

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What main context holds for a question: what the model pulled for it comes first.

        Then core memory, the queue, newest first, and its summary, as far as the limit goes; a model
        would have all of it before it (see `adapters.context`).
        """
        if query.tenant not in self._opened():
            return []
        agent = self._of(query.tenant).copy()
        agent.hear(Entry(query.at, "user", query.text))
        self._manage(agent, query.at)
        pulled = self._think(agent, query.at)
        self._opened()[query.tenant] = agent
        items = dict.fromkeys(
            _item(entry) for entry in pulled if entry.turn or entry.role == "archival"
        )
        first = list(items)[: max(0, query.limit)]
        rest = [item for item in _main(agent) if item not in items]
        return [*first, *fitting(rest, query.text, query.limit - len(first), self._nearness)]

    def _think(self, agent: Agent, at: str) -> list[Entry]:
        """Function chaining (section 2.4); what its searches found, the best of each first."""
        found: list[tuple[Entry, ...]] = []
        for _ in range(self._steps):
            calls, _said = self._chat.calls(self._prompt(agent), TOOLS)
            beats = False
            for call in calls:
                entry, beat = self._executor.run(agent, call, at)
                agent.queue.append(entry)
                found.append(entry.found)
                beats = beats or beat
            if not beats:
                break
        return [entry for entry in chain.from_iterable(zip_longest(*found)) if entry]

    def _prompt(self, agent: Agent) -> list[dict[str, str]]:
        blocks = [
            {
                "block": block, "characters": len(agent.core[block]), "limit": self._block_chars,
                "text": agent.core[block],
            }
            for block in BLOCKS
        ]  # fmt: skip
        return self._prompts["agent-1"].messages(
            edited=agent.edited or "never",
            core="\n".join(map(as_json, blocks)),
            recall=str(len(agent.recall)),
            archival=str(len(agent.archival)),
            summary=as_json({"covers": agent.covers, "summary": list(agent.summary)}),
            queue="\n".join(entry.line for entry in agent.queue),
        )

    # ------------------------------------------------------------ the queue manager

    def _manage(self, agent: Agent, at: str) -> None:
        """Warn and flush as section 2.2 has it; what decides is how long main context is, and age."""
        tokens = self._overhead + agent.tokens
        if tokens > self._flush:
            self._flush_queue(agent)
        elif tokens > self._warning and not agent.warned:
            agent.warned = True
            agent.queue.append(Entry(at, "system", self._prompts["pressure-1"].user.strip()))

    @property
    def _overhead(self) -> int:
        """Tokens of the system instructions and of the functions."""
        return count(self._prompts["agent-1"].system) + count(as_json(TOOLS))

    def _flush_queue(self, agent: Agent) -> None:
        """Evict the oldest entries, up to the latest one, and write a new summary."""
        place, tokens = 0, 0
        while place < len(agent.queue) - 1 and tokens < self._evicted:
            tokens += count(agent.queue[place].line)
            place += 1
        gone, agent.queue = agent.queue[:place], agent.queue[place:]
        agent.warned = False
        if not gone:
            return
        said = self._chat.text(
            self._prompts["summary-1"].messages(
                words=str(self._summary_words),
                summary=as_json({"covers": agent.covers, "summary": list(agent.summary)}),
                queue="\n".join(entry.line for entry in gone),
            )
        )
        lines = (" ".join(line.split()) for line in said.split("\n"))
        agent.summary = tuple(line for line in lines if line not in ("", NONE))
        agent.covers = gone[-1].at

    # ------------------------------------------------------------ looking and erasing

    def active(self, tenant: str) -> Sequence[Item]:
        """Main context: core memory, the queue, newest first, and its summary.

        Recall and archival storage are external: nothing in them can be seen until a function call
        brings it back.
        """
        return _main(self._of(tenant))

    def recover(self, subject: Subject) -> Sequence[Item]:
        """What any tier holds on a subject, as a search for its topic finds it."""
        agent = self._of(subject.tenant)
        topic = subject.topic.casefold()
        stored = [*agent.archival[::-1], *(one for one in agent.recall[::-1] if one.turn)]
        items = [*_main(agent), *map(_item, stored)]
        return [item for item in dict.fromkeys(items) if topic in item.text.casefold()]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Drop an agent, or all that names the subject's topic, in every tier."""
        self._nearness.forget()
        super().erase(tenant, subject)


def _main(agent: Agent) -> list[Item]:
    """Main context but for questions, warnings and calls, which state nothing of their own.

    Core memory has one time for all of it, that of its last change; so has the summary, that of the
    last message that it covers.
    """
    core = [
        Item(text=line, id=f"core-{block}-{place}", valid_from=agent.edited)
        for block in BLOCKS
        for place, line in enumerate(agent.lines(block), 1)
    ]
    summary = [
        Item(text=line, id=f"summary-{place}", valid_from=agent.covers)
        for place, line in enumerate(agent.summary, 1)
    ]
    return [*core, *map(_item, agent.visible), *summary]


def _item(entry: Entry) -> Item:
    """A message or a passage; neither core memory nor an archive keeps where something came from."""
    if not entry.turn:
        return Item(text=entry.text, valid_from=entry.at)
    return Item(text=entry.text, id=entry.turn, sources=(entry.turn,), valid_from=entry.at)
