"""A memory that keeps to the whole contract, and for each rule one that breaks that rule alone."""

# ruff: noqa: ARG002

from __future__ import annotations

import copy
import inspect
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steeltrap.harness.memory import Item, Memory, MemoryFault, Query, Subject, Utterance

_FACT = re.compile(r"The (\S+) of (.+?) is (?:now )?(.+)\.")
_QUESTION = re.compile(r"\w+")


class Good:
    """Has every capability, and keeps to all of the contract."""

    threads = True

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] | None = None
        self.lock = threading.Lock()

    # required

    def open(self, folder: Path) -> None:
        self.entries, self.reads, self.folder = [], {}, folder
        (folder / "memory.txt").write_text("")

    def close(self) -> None:
        self.entries = None

    def ingest(self, turn: Utterance) -> None:
        with self.lock:
            self.keep(turn)

    def keep(self, turn: Utterance) -> None:
        fact = _FACT.fullmatch(turn.text)
        topic = fact[2] if fact else turn.id
        for entry in self.of(turn.tenant):
            if fact and entry["topic"] == topic and entry["to"] is None:
                entry["to"] = turn.at
        entry = {"tenant": turn.tenant, "topic": topic, "id": turn.id, "at": turn.at, "to": None}
        self.opened().append(entry | {"text": turn.text})

    def retrieve(self, query: Query) -> Sequence[Item]:
        words = self.words(query.text)
        found = [e for e in self.of(query.tenant)[::-1] if words & self.words(e["text"])]
        found.sort(key=lambda e: -len(words & self.words(e["text"])))
        return [self.item(entry) for entry in found[: query.limit]]

    def settle(self) -> None:
        self.opened()

    # optional

    def active(self, tenant: str) -> Sequence[Item]:
        return [self.item(entry) for entry in self.of(tenant)]

    def history(self, subject: Subject) -> Sequence[Item]:
        return [self.item(e) for e in self.of(subject.tenant) if e["topic"] == subject.topic]

    def salience(self, subject: Subject) -> float | None:
        return float(len(self.history(subject))) or None

    def maintain(self, at: str) -> None:
        self.opened()

    def recover(self, subject: Subject) -> Sequence[Item]:
        return self.history(subject)

    def erase(self, tenant: str, subject: Subject | None) -> None:
        mine = self.of(tenant)
        gone = mine if subject is None else [e for e in mine if e["topic"] == subject.topic]
        self.entries = [entry for entry in self.opened() if entry not in gone]

    def fork(self) -> Memory:
        twin = copy.copy(self)
        twin.entries = copy.deepcopy(self.opened())
        return twin

    def size_bytes(self) -> int:
        return len(self.opened())

    # helpers

    def opened(self) -> list[dict[str, Any]]:
        if self.entries is None:
            raise MemoryFault("not open")
        return self.entries

    def of(self, tenant: str) -> list[dict[str, Any]]:
        return [entry for entry in self.opened() if entry["tenant"] == tenant]

    def item(self, entry: dict[str, Any]) -> Item:
        return Item(entry["text"], entry["id"], (entry["id"],), entry["at"], entry["to"])

    def words(self, text: str) -> set[str]:
        return set(_QUESTION.findall(text.casefold()))


BROKEN: dict[str, Callable[[], Any]] = {}
"""A memory for each check that it fails, and no other."""


def breaks(check: str) -> Callable[[type], type]:
    def add(cls: type) -> type:
        BROKEN[check] = cls
        return cls

    return add


@breaks("required-methods")
class TakesTwo(Good):
    def settle(self, patience: float | None = None, *, until: float = 0) -> None:
        super().settle()

    def close(self, *, hard: bool = False) -> None:
        super().close()

    def __getattribute__(self, name: str) -> Any:
        # what it shows to whoever looks is not what it takes
        found = super().__getattribute__(name)
        if name == "ingest":
            return _Shy(found)
        return found


def _takes_two(turn: Utterance, session: str) -> None:
    """Nobody calls it."""


class _Shy:
    """Can be called with a turn, and says that it takes two."""

    def __init__(self, call: Callable[[Utterance], None]) -> None:
        self.call = call

    def __call__(self, turn: Utterance) -> None:
        self.call(turn)

    @property
    def __signature__(self) -> Any:
        return inspect.signature(_takes_two)


@breaks("known-capabilities")
class Misspelled(Good):
    recover = None  # type: ignore[assignment]

    def recovers(self, subject: Subject) -> Sequence[Item]:
        return super().history(subject)

    def __getattribute__(self, name: str) -> Any:
        if name == "recover":
            raise AttributeError(name)
        return super().__getattribute__(name)


@breaks("begins-empty")
class Greets(Good):
    def active(self, tenant: str) -> Sequence[Item]:
        greeting = [Item("Welcome.")] if not self.opened() and tenant == "acme" else []
        return [*super().active(tenant), *greeting]


@breaks("serves-what-it-was-told")
class Silent(Good):
    def retrieve(self, query: Query) -> Sequence[Item]:
        self.opened()
        return []


@breaks("opens-anew")
class Lasting(Good):
    def open(self, folder: Path) -> None:
        kept = getattr(self, "kept", [])
        super().open(folder)
        self.entries = kept

    def close(self) -> None:
        self.kept = self.entries or []
        super().close()


@breaks("closes-twice")
class ClosesOnce(Good):
    def close(self) -> None:
        self.opened()
        super().close()


@breaks("faults-while-not-open")
class Forgiving(Good):
    def size_bytes(self) -> int:
        return len(self.entries or [])


@breaks("writes-below-its-folder")
class Strays(Good):
    def open(self, folder: Path) -> None:
        super().open(folder)
        (folder.parent / "cache.txt").write_text("")


@breaks("takes-every-script")
class AsciiOnly(Good):
    def ingest(self, turn: Utterance) -> None:
        if "DROP" in turn.text or any(ord(letter) > 0x2FFF for letter in turn.text):
            turn.text.encode("ascii")
        super().ingest(turn)


@breaks("takes-control-characters")
class NoControl(Good):
    def ingest(self, turn: Utterance) -> None:
        if "\x1b" in turn.text:
            self.erase(turn.tenant, None)
        super().ingest(turn)


@breaks("takes-a-long-turn")
class Column(Good):
    def ingest(self, turn: Utterance) -> None:
        if len(turn.text) > 4000:
            raise MemoryFault("value too long for type character varying(4000)")
        super().ingest(turn)


@breaks("takes-an-empty-turn")
class NeedsText(Good):
    def ingest(self, turn: Utterance) -> None:
        if not turn.text:
            raise ValueError("input must not be empty")
        super().ingest(turn)


@breaks("takes-turns-of-one-minute")
class KeyedByTime(Good):
    def keep(self, turn: Utterance) -> None:
        self.entries = [
            e for e in self.opened() if (e["tenant"], e["at"]) != (turn.tenant, turn.at)
        ]
        super().keep(turn)


@breaks("settles")
class Background(Good):
    def settle(self) -> None:
        entries = self.opened()
        if len(entries) == 2 and entries[0]["tenant"] == "acme":
            summary = {**entries[0], "text": "A summary.", "topic": "summary"}
            threading.Timer(0.05, entries.append, [summary]).start()


@breaks("threads-where-claimed")
class OneThread(Good):
    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def keep(self, turn: Utterance) -> None:
        if threading.get_ident() != self.thread:
            raise RuntimeError("created in another thread")
        super().keep(turn)


@breaks("well-formed-replies")
class ListOfSources(Good):
    def item(self, entry: dict[str, Any]) -> Item:
        return Item(entry["text"], entry["id"], [entry["id"]], entry["at"], entry["to"])  # type: ignore[arg-type]


@breaks("keeps-to-the-limit")
class Generous(Good):
    def retrieve(self, query: Query) -> Sequence[Item]:
        return super().retrieve(Query(query.id, query.at, query.tenant, query.text, 10))


@breaks("answers-any-question")
class SearchSyntax(Good):
    def retrieve(self, query: Query) -> Sequence[Item]:
        if '"' in query.text:
            raise sqlite3.OperationalError("fts5: syntax error near")
        return super().retrieve(query)


@breaks("nothing-found-is-empty")
class Nothing(Good):
    def recover(self, subject: Subject) -> Sequence[Item]:
        return super().recover(subject) or None  # type: ignore[return-value]


@breaks("knows-its-sources")
class OwnIds(Good):
    def item(self, entry: dict[str, Any]) -> Item:
        return Item(entry["text"], entry["id"], (f"row {entry['at']}",), entry["at"], entry["to"])


@breaks("times-in-order")
class Backwards(Good):
    def item(self, entry: dict[str, Any]) -> Item:
        return Item(
            entry["text"], entry["id"], (entry["id"],), entry["at"], entry["to"] and "1999-01-01T00:00"
        )  # fmt: skip


@breaks("keeps-simulated-time")
class WallClock(Good):
    def item(self, entry: dict[str, Any]) -> Item:
        return Item(entry["text"], entry["id"], (entry["id"],), "2024-05-01T00:00", entry["to"])


@breaks("keeps-tenants-apart")
class Shared(Good):
    def recover(self, subject: Subject) -> Sequence[Item]:
        mine = super().history(subject)
        return [self.item(e) for e in self.opened() if e["topic"] == subject.topic] if mine else []


@breaks("tells-look-alikes-apart")
class FoldsCase(Good):
    def of(self, tenant: str) -> list[dict[str, Any]]:
        return [e for e in self.opened() if e["tenant"].casefold() == tenant.casefold()]


@breaks("same-replies-twice")
class RandomIds(Good):
    def item(self, entry: dict[str, Any]) -> Item:
        return Item(entry["text"], uuid.uuid4().hex, (entry["id"],), entry["at"], entry["to"])


@breaks("history-oldest-first")
class NewestFirst(Good):
    def history(self, subject: Subject) -> Sequence[Item]:
        return super().history(subject)[::-1]


@breaks("salience-only-looks")
class CountsLooks(Good):
    def salience(self, subject: Subject) -> float | None:
        known = super().salience(subject)
        if known is None:
            return None
        self.reads[subject.topic] = self.reads.get(subject.topic, 0) + 1
        return known + self.reads[subject.topic]


@breaks("maintains-at-a-simulated-time")
class WantsADate(Good):
    def maintain(self, at: str) -> None:
        self.opened()
        time.strptime(at, "%Y-%m-%d")


@breaks("forks-answer-alike")
class ForgetfulFork(Good):
    def fork(self) -> Memory:
        twin = super().fork()
        assert isinstance(twin, Good)
        twin.entries = [e for e in twin.opened() if e["topic"] != "Old Mill"]
        return twin


@breaks("forks-leave-alone")
class ShallowFork(Good):
    def fork(self) -> Memory:
        self.opened()
        return copy.copy(self)


@breaks("erases-a-subject")
class KeepsHistory(Good):
    def erase(self, tenant: str, subject: Subject | None) -> None:
        mine = self.of(tenant)
        if subject is not None:
            gone = [e for e in mine if e["topic"] == subject.topic][-1:]
            self.entries = [e for e in self.opened() if e not in gone]
        else:
            super().erase(tenant, subject)


@breaks("erases-a-tenant")
class ErasesEverything(Good):
    def erase(self, tenant: str, subject: Subject | None) -> None:
        if subject is None and tenant == "acme":
            self.entries = [e for e in self.opened() if e["tenant"] == "acme2"]
        else:
            super().erase(tenant, subject)


@breaks("begins-anew-after-erasure")
class Banned(Good):
    def __init__(self) -> None:
        super().__init__()
        self.banned: set[str] = set()

    def erase(self, tenant: str, subject: Subject | None) -> None:
        super().erase(tenant, subject)
        if subject is None:
            self.banned.add(tenant)

    def keep(self, turn: Utterance) -> None:
        if turn.tenant not in self.banned:
            super().keep(turn)


@breaks("erases-what-never-was")
class MustExist(Good):
    def erase(self, tenant: str, subject: Subject | None) -> None:
        if not self.of(tenant):
            raise KeyError(tenant)
        super().erase(tenant, subject)


@breaks("recovers-what-it-holds")
class ArchiveOnly(Good):
    def recover(self, subject: Subject) -> Sequence[Item]:
        return [item for item in super().history(subject) if item.valid_to]


@breaks("tells-its-size")
class Negative(Good):
    def size_bytes(self) -> int:
        return -len(self.opened()) - 1
