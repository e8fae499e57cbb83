"""The store on SQLite: what it refuses, and what an erasure leaves."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from steeltrap.reference_system.memory import Memory
from steeltrap.reference_system.statements import Fact
from steeltrap.reference_system.stores import DamagedStore, ForeignFile, StoreError, StoreInUse
from steeltrap.reference_system.stores.native import NativeStore

AT = "2026-01-05T09:00"
SECRET = "the vault code is QX-4471"


def tell(memory: Memory, tenant: str, *values: str) -> None:
    for number, value in enumerate(values):
        fact = Fact(f"Topic {number}", "matter", value)
        memory.ingest(tenant, at=AT, turn=f"t{number}", statements=[fact])


def files(folder: Path) -> dict[str, bytes]:
    """The files of a folder; the lock file is empty."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}


def refused(path: Path, error: type[StoreError]) -> str:
    """Opening it is refused with every file as it was; what was said."""
    before = files(path.parent)
    with pytest.raises(error) as caught:
        NativeStore(path)
    assert before == files(path.parent)
    return str(caught.value)


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A store of some size that was closed."""
    path = tmp_path / "m.db"
    with Memory.open(path) as memory:
        tell(memory, "acme", *(f"value {number} " * 40 for number in range(60)))
    return path


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Copies of the files of a store that is open: a main file and a log."""
    path = tmp_path / "open" / "m.db"
    path.parent.mkdir()
    memory = Memory.open(path)
    tell(memory, "acme", *(f"value {number} " * 40 for number in range(60)))
    memory.checkpoint()
    tell(memory, "acme", *(f"other {number} " * 40 for number in range(60)))
    shutil.copytree(path.parent, tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    memory.close()
    return tmp_path / "killed" / "m.db"


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("Dear diary,"),
        lambda path: path.write_bytes(b"LBUG" + bytes(4096)),
        lambda path: sqlite3.connect(path).execute("CREATE TABLE theirs(x)").connection.close(),
    ],
    ids=["text", "graph", "other SQLite"],
)
def test_a_foreign_file_is_refused(make: Callable[[Path], object], tmp_path: Path) -> None:
    """What is no store of this kind is refused, named, and left byte for byte as it is."""
    path = tmp_path / "m.db"
    make(path)
    assert str(path) in refused(path, ForeignFile)


def test_another_version_is_refused(closed: Path) -> None:
    """A store of a later format is refused with both versions."""
    (closed.parent / "m.db.seal").unlink()
    db = sqlite3.connect(closed)
    db.execute("PRAGMA user_version = 7")
    db.close()
    assert "version 7" in refused(closed, ForeignFile)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_truncated_file_is_refused(closed: Path, sealed: bool) -> None:
    """A file that has lost its end is refused, with its seal or without."""
    if not sealed:
        (closed.parent / "m.db.seal").unlink()
    closed.write_bytes(closed.read_bytes()[:-9000])
    refused(closed, DamagedStore)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
def test_a_changed_byte_is_refused(closed: Path, share: float) -> None:
    """A store that was closed is known by its seal: one byte that is another is enough."""
    content = bytearray(closed.read_bytes())
    content[int(share * len(content))] ^= 0xFF
    closed.write_bytes(content)
    refused(closed, DamagedStore)


def test_overwritten_pages_are_refused_after_a_kill(killed: Path) -> None:
    """A store that was not closed is read through in a copy before it is opened."""
    content = bytearray(killed.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xa5" * 4096 * 3
    killed.write_bytes(content)
    refused(killed, DamagedStore)


def test_what_was_killed_is_taken_up(killed: Path) -> None:
    """Without damage a store that was not closed has all that was committed."""
    with Memory.open(killed) as memory:
        assert [] == memory.check()
        assert 60 == len(memory.active("acme"))
        assert all(item.value.startswith("other") for item in memory.active("acme"))


def test_garbage_at_the_end_of_the_log_is_left_out(killed: Path) -> None:
    """A commit that was cut off in the log is not there, and those before it are."""
    wal = killed.with_name("m.db-wal")
    wal.write_bytes(wal.read_bytes()[:-1000] + b"\x5a" * 1000)
    with Memory.open(killed) as memory:
        assert [] == memory.check()
        assert 60 == len(memory.active("acme"))


def test_a_second_opener_is_refused(closed: Path) -> None:
    """One at a time: the second is told so, and gets it once the first is done."""
    with Memory.open(closed), pytest.raises(StoreInUse, match="open already"):
        NativeStore(closed)
    NativeStore(closed).close()


@pytest.mark.parametrize("what", ["tenant", "topic", "field"])
def test_erased_text_is_in_no_file(what: str, tmp_path: Path) -> None:
    """After an erasure no byte of a value, title or turn can be found in the folder."""
    path = tmp_path / "m.db"
    with Memory.open(path) as memory:
        tell(memory, "other", *(f"value {number}" for number in range(300)))
        fact = Fact("Vault", "secret", SECRET)
        for number in range(20):
            memory.ingest("acme", at=AT, turn=f"turn-of-the-vault-{number}", statements=[fact])
            fact = Fact("Vault", "secret", f"{SECRET} {number}")
        memory.checkpoint()
        assert any(SECRET.encode() in content for content in files(tmp_path).values())
        named = {"tenant": (), "topic": ("Vault",), "field": ("Vault", "secret")}[what]
        found = memory.erase("acme", *named)
        assert (1, 1, 20, 0) == (found.topics, found.fields, found.entries, found.edges)
        for trace in (SECRET, "Vault", "turn-of-the-vault"):
            assert not any(trace.encode() in content for content in files(tmp_path).values())
        assert [] == memory.check()
    assert not any(b"Vault" in content for content in files(tmp_path).values())


def test_power_durability_is_a_setting(tmp_path: Path) -> None:
    """Each commit is flushed to the disk if the store is asked to outlive the loss of power."""
    levels = {}
    for number, durability in enumerate(("process", "power")):
        store = NativeStore(tmp_path / f"{number}.db", durability=durability)  # type: ignore[arg-type]
        levels[durability] = store._db.execute("PRAGMA synchronous").fetchone()[0]
        store.close()
    assert {"process": 1, "power": 2} == levels
