"""The adapter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

import msgspec

from steeltrap.adapters.chat import prompts
from steeltrap.adapters.kept import Forked, names
from steeltrap.adapters.likeness import ByMeaning, ByWords
from steeltrap.adapters.mirix.components import (
    BLOCKS,
    COMPONENTS,
    CORE,
    CORE_TOOLS,
    ROUTES,
    Component,
    Entry,
)
from steeltrap.harness.memory import Item, Query, Subject, Utterance
from steeltrap.harness.models import ToolCall

if TYPE_CHECKING:
    from steeltrap.adapters.embedders import Embedder

__all__ = ["ROUTE", "Match", "Mirix"]

Match = Literal["embedding", "bm25"]
ROUTE: Final = "components"
"""Name of the form that the meta memory manager fills in."""
_PROMPTS: Final = prompts("steeltrap.adapters.mirix")
_FULL: Final = 0.9
"""A block of the core memory is rewritten when it is filled beyond this share."""


class _Route(msgspec.Struct):
    components: list[str]


class _Base(msgspec.Struct):
    """The memory of one tenant."""

    core: dict[str, str] = {}
    """Text by block."""
    entries: dict[str, dict[str, Entry]] = {}
    """Component -> id -> entry, in the order in which they were inserted."""
    made: int = 0

    def copy(self) -> Self:
        entries = {component: dict(held) for component, held in self.entries.items()}
        return type(self)(dict(self.core), entries, self.made)

    def held(self, component: str) -> dict[str, Entry]:
        """The entries of a component."""
        return self.entries.setdefault(component, {})

    def all(self) -> Iterator[tuple[Component, str, Entry]]:
        """Every entry, component by component."""
        for name, component in COMPONENTS.items():
            for key, entry in self.entries.get(name, {}).items():
                yield component, key, entry

    def forget(self, subject: Subject) -> None:
        lines = [line for text in self.core.values() for line in text.split("\n")]
        texts = ["\n".join(entry.fields.values()) for _, _, entry in self.all()]
        named = names(subject, *lines, *texts)
        for block, text in self.core.items():
            self.core[block] = "\n".join(line for line in text.split("\n") if not named(line))
        for component, key, entry in list(self.all()):
            if named("\n".join(entry.fields.values())):
                del self.entries[component.name][key]

    # ------------------------------------------------------------ the managers' tools

    def write(self, call: ToolCall, limit: int) -> None:
        """Carry out a call on the core memory; one that cannot be carried out changes nothing."""
        block, text = call.arguments.get("block"), call.arguments.get("text")
        if block not in BLOCKS or not isinstance(text, str):
            return
        before = self.core.get(block, "")
        if call.name == f"{CORE}_append" and before:
            text = f"{before}\n{text.strip()}"
        self.core[block] = text.strip()[:limit]

    def carry_out(self, component: Component, call: ToolCall, at: str) -> None:
        """Carry out a call on a component; one that cannot be carried out changes nothing."""
        given = {
            name: value
            for name, value in call.arguments.items()
            if name in component.fields and isinstance(value, str)
        }
        held, key = self.held(component.name), str(call.arguments.get("id", ""))
        match call.name.removeprefix(f"{component.name}_"):
            case "insert" if any(given.get(name, "").strip() for name in component.read):
                held[f"{component.name}-{self.made}"] = Entry(given, _when(given, at))
                self.made += 1
            case "merge" if key in held:
                held[key] = _merged(held[key], given)
            case "update" if key in held:
                held[key] = Entry({**held[key].fields, **given}, at)
            case "delete":
                held.pop(key, None)


class Mirix(Forked[_Base]):
    """MIRIX: a meta memory manager and six components, each with a manager of its own.

    A turn: the memories nearest to it are fetched, the meta memory manager chooses the components
    that it concerns, and the manager of each is asked for its calls, all of them before the same
    memories. A block of the core memory that is filled beyond 90 % is rewritten. A question (active
    retrieval): a topic is drawn from it, the nearest `top_k` entries of each component are fetched
    for the topic, and, after the core memory, which is always before the reader, the nearest of
    all of them are served. What component an item is of stands at the head of its id. Entries of
    high sensitivity in the knowledge vault are not served. Reading changes nothing.

    Args:
        embedder: makes the vectors; by default `WordLlamaEmbedder`. `bm25` needs none.
        match: how entries are searched: `embedding` or `bm25`.
        top_k: entries that are fetched of each component.
        block_chars: characters that a block of the core memory holds.

    Raises:
        ValueError: a number is not positive, or `match` is unknown.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        match: Match = "embedding",
        top_k: int = 10,
        block_chars: int = 5000,
    ) -> None:
        if match not in get_args(Match):
            raise ValueError(f"mirix: unknown match '{match}'; known: {', '.join(get_args(Match))}")
        if min(top_k, block_chars) < 1:
            raise ValueError(f"mirix: top_k={top_k}, block_chars={block_chars}: set both to 1 or more")  # fmt: skip
        super().__init__("mirix", _Base)
        self._likeness = ByMeaning(embedder) if match == "embedding" else ByWords()
        self._top_k, self._block_chars = top_k, block_chars

    # ------------------------------------------------------------ telling

    def ingest(self, turn: Utterance) -> None:
        """Have the managers of the components that the turn concerns update them."""
        base = self._of(turn.tenant).copy()
        said = {"at": turn.at, "role": turn.role, "text": turn.text}
        prompt = {
            "memories": self._shown(base, turn.text),
            "message": msgspec.json.encode(said).decode(),
        }
        route = self._chat.filled(_PROMPTS["route-1"].messages(**prompt), ROUTE, _Route)
        for name in (name for name in ROUTES if name in route.components):
            if name == CORE:
                calls, _ = self._chat.calls(_PROMPTS["core-1"].messages(**prompt), CORE_TOOLS)
                for call in calls:
                    base.write(call, self._block_chars)
                self._keep_short(base)
                continue
            component = COMPONENTS[name]
            calls, _ = self._chat.calls(_PROMPTS["manage-1"].messages(**prompt), component.tools)
            for call in calls:
                base.carry_out(component, call, turn.at)
        self._opened()[turn.tenant] = base

    def _keep_short(self, base: _Base) -> None:
        """Have blocks rewritten that are nearly full."""
        for block, text in base.core.items():
            if len(text) > _FULL * self._block_chars:
                full = {"block": block, "limit": self._block_chars, "text": text}
                asked = _PROMPTS["rewrite-1"].messages(block=msgspec.json.encode(full).decode())
                base.core[block] = self._chat.text(asked).strip()[: self._block_chars]

    def _shown(self, base: _Base, text: str) -> str:
        """The core memory, and the entries nearest to a text, tagged by component."""
        parts = []
        rows: list[Mapping[str, Any]] = [
            {"block": block, "limit": self._block_chars, "text": base.core.get(block, "")}
            for block in BLOCKS
        ]
        parts.append(_tagged(CORE, rows))
        for name in COMPONENTS:
            held = base.held(name)
            found = self._nearest(COMPONENTS[name], held, text)
            parts.append(_tagged(name, [{"id": key, **held[key].fields} for key, _ in found]))
        return "\n".join(parts)

    # ------------------------------------------------------------ asking

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The core memory, then the nearest entries of all components with their scores."""
        base = self._of(query.tenant)
        if query.limit < 1 or not (base.core or any(base.all())):
            return []
        topic = self._topic(query.text)
        found: list[Item] = []
        for name, component in COMPONENTS.items():
            held = {key: e for key, e in base.held(name).items() if not _secret(e)}
            for key, score in self._nearest(component, held, topic):
                found.append(_item(component, key, held[key], score))
        found.sort(key=lambda item: -(item.score or 0.0))
        return [*_core(base), *found][: query.limit]

    def _topic(self, question: str) -> str:
        if not question.strip():
            return question
        asked = msgspec.json.encode(question).decode()
        return self._chat.text(_PROMPTS["topic-1"].messages(question=asked)).strip()

    def _nearest(
        self, component: Component, held: Mapping[str, Entry], text: str
    ) -> list[tuple[str, float]]:
        ids = list(held)
        texts = [entry.text(*component.read) for entry in held.values()]
        return [(ids[at], score) for at, score in self._likeness.best(text, texts, self._top_k)]

    # ------------------------------------------------------------ looking and erasing

    def active(self, tenant: str) -> Sequence[Item]:
        """The core memory and every entry, component by component."""
        base = self._of(tenant)
        return [*_core(base), *(_item(*each) for each in base.all())]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """See `Kept`."""
        super().erase(tenant, subject)
        if isinstance(self._likeness, ByMeaning):
            self._likeness.forget()


def _when(given: Mapping[str, str], at: str) -> str:
    """When an event happened; now, where that is not said as it should be."""
    try:
        said = datetime.fromisoformat(given.get("occurred_at", "").strip())
    except ValueError:
        return at
    return f"{said:%Y-%m-%dT%H:%M}"


def _merged(entry: Entry, given: Mapping[str, str]) -> Entry:
    """An event with more details, and another summary if one is given."""
    details = "\n".join(
        part for part in (entry.fields.get("details", ""), given.get("details", "")) if part
    )
    summary = given.get("summary", "").strip() or entry.fields.get("summary", "")
    return Entry({**entry.fields, "summary": summary, "details": details}, entry.at)


def _secret(entry: Entry) -> bool:
    return entry.fields.get("sensitivity", "").strip().casefold() == "high"


def _tagged(component: str, rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [msgspec.json.encode(row).decode() for row in rows]
    return "\n".join((f"<{component}_memory>", *lines, f"</{component}_memory>"))


def _core(base: _Base) -> list[Item]:
    return [Item(text=text, id=f"{CORE}-{block}") for block, text in base.core.items() if text]


def _item(component: Component, key: str, entry: Entry, score: float | None = None) -> Item:
    text = entry.text(*component.read)
    return Item(text=text, id=key, valid_from=entry.at, score=score)
