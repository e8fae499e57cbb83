"""The adapter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import msgspec

from steeltrap.adapters.kept import Forked, names
from steeltrap.adapters.likeness import ByWords
from steeltrap.adapters.mem_alpha.policy import (
    DELETE,
    INSERT,
    UPDATE,
    ModelPolicy,
    Policy,
    Shown,
)
from steeltrap.adapters.policies import MODEL, policy_class
from steeltrap.harness.memory import Item, Query, Subject, Utterance
from steeltrap.harness.models import ToolCall
from steeltrap.harness.tokens import count

__all__ = ["MemAlpha"]

_EVENT: Final = re.compile(r"\[(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d)?\]\s*(.+)", re.DOTALL)


class _Parts(msgspec.Struct):
    """The memory of one tenant."""

    core: str = ""
    semantic: dict[str, str] = {}
    """Facts by their ids, in the order in which they were inserted."""
    episodic: dict[str, str] = {}
    """Events, alike."""
    made: int = 0

    def copy(self) -> Self:
        return type(self)(self.core, dict(self.semantic), dict(self.episodic), self.made)

    def forget(self, subject: Subject) -> None:
        lines = self.core.split("\n")
        named = names(subject, *lines, *self.semantic.values(), *self.episodic.values())
        self.core = "\n".join(line for line in lines if not named(line))
        self.semantic = {name: text for name, text in self.semantic.items() if not named(text)}
        self.episodic = {name: text for name, text in self.episodic.items() if not named(text)}

    def carry_out(self, call: ToolCall, core_tokens: int) -> None:
        """Change the memory; a call that cannot be carried out changes nothing (section 3.1.2)."""
        given = {name: value for name, value in call.arguments.items() if isinstance(value, str)}
        kind, name = given.get("memory_type", ""), given.get("memory_id", "")
        entries = {"semantic": self.semantic, "episodic": self.episodic}.get(kind)
        if call.name == UPDATE and kind == "core":
            self.core = _cut(given.get("new_content", self.core), core_tokens)
        elif entries is None:
            return
        elif call.name == INSERT:
            text = given.get("content", "").strip()
            if text and text not in entries.values():
                entries[f"{kind}-{self.made}"] = text
                self.made += 1
        elif call.name == UPDATE and name in entries and given.get("new_content", "").strip():
            entries[name] = given["new_content"].strip()
        elif call.name == DELETE:
            entries.pop(name, None)


class MemAlpha(Forked[_Parts]):
    """Mem-alpha: a core text, facts and events; a policy changes them chunk by chunk.

    A turn is a chunk (section 3.1.1): the policy sees it and the memory, and calls tools once.
    What is served (section 3.1.3) is the core text, which is always before the reader, and then the
    best facts and events by BM25, at most `top_k` of each. A fact has no time, an event has the one
    in its text. Reading changes nothing and asks no model.

    Args:
        policy: `model`, or `package.module.Class` of a `Policy`.
        core_tokens: the core text is cut to so many (o200k_base).
        top_k: facts, and events, that a question is served.
        shown_entries: the policy sees so many of the latest facts, and events; None: all.

    Raises:
        ValueError: a number is not positive, or there is no such policy.
    """

    def __init__(
        self,
        *,
        policy: str = MODEL,
        core_tokens: int = 512,
        top_k: int = 20,
        shown_entries: int | None = None,
    ) -> None:
        if min(core_tokens, top_k, 1 if shown_entries is None else shown_entries) < 1:
            raise ValueError(
                f"mem-alpha: core_tokens={core_tokens}, top_k={top_k},"
                f" shown_entries={shown_entries}: set each to 1 or more"
            )
        super().__init__("mem-alpha", _Parts)
        self._policy_class = policy_class(policy, ModelPolicy)
        self._core_tokens, self._top_k, self._shown = core_tokens, top_k, shown_entries
        self._words = ByWords()

    @property
    def _policy(self) -> Policy:
        made: Policy = self._policy_class(self._chat)
        return made

    def ingest(self, turn: Utterance) -> None:
        """Have the policy act on the turn, and carry out what it calls for."""
        parts = self._of(turn.tenant).copy()
        shown = Shown(
            parts.core, self._core_tokens, _latest(parts.semantic, self._shown),
            _latest(parts.episodic, self._shown),
        )  # fmt: skip
        for call in self._policy.act(turn, shown):
            parts.carry_out(call, self._core_tokens)
        self._opened()[turn.tenant] = parts

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The core text, then facts and events, the best first with their scores."""
        parts = self._of(query.tenant)
        found = [*self._best(parts.semantic, query.text), *self._best(parts.episodic, query.text)]
        found.sort(key=lambda item: -(item.score or 0.0))
        return [*_core(parts), *found][: max(query.limit, 0)]

    def active(self, tenant: str) -> Sequence[Item]:
        """The core text, every fact and every event, the latter oldest first."""
        parts = self._of(tenant)
        facts = [Item(text=text, id=name) for name, text in parts.semantic.items()]
        return [*_core(parts), *facts, *_events(parts)]

    def _best(self, entries: Mapping[str, str], question: str) -> list[Item]:
        ids = list(entries)
        ranking = self._words.best(question, list(entries.values()), self._top_k)
        return [_item(ids[place], entries[ids[place]], score) for place, score in ranking]


def _latest(entries: Mapping[str, str], shown: int | None) -> dict[str, str]:
    """The last entries of a memory, oldest first."""
    return dict(list(entries.items())[-shown if shown else 0 :])


def _cut(text: str, tokens: int) -> str:
    """A text without the words at its end that do not fit."""
    while count(text) > tokens:
        text = text.rpartition(" ")[0]
    return text


def _core(parts: _Parts) -> list[Item]:
    return [Item(text=parts.core, id="core")] if parts.core.strip() else []


def _item(name: str, text: str, score: float | None = None) -> Item:
    """An entry; of one that begins with a time in brackets the time is taken out of the text."""
    stamped: Any = _EVENT.fullmatch(text)
    if stamped is None:
        return Item(text=text, id=name, score=score)
    day, minute, said = stamped.groups()
    return Item(text=said, id=name, valid_from=f"{day}T{minute}", score=score)


def _events(parts: _Parts) -> list[Item]:
    """Every event, by its time; one without a time stands first."""
    items = [_item(name, text) for name, text in parts.episodic.items()]
    return sorted(items, key=lambda item: item.valid_from or "")
