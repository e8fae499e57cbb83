"""Files: what an erasure left on disk is found byte by byte, and nothing else is."""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.embedders.base import Vectors
from steeltrap.adapters.mutants.erased import KeepsFiles
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import Event, fingerprint, read_events, read_header
from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Oracle
from steeltrap.harness.remains import Search
from steeltrap.harness.script import Erasure, Gauge, Header, Op, Pause, Probe, Script, Turn
from steeltrap.workloads.truth import annotate

EMBED = HashEmbedder().embed
SECRET = "The deadline of Atlas is 12 March 2026."
OTHER = "The deadline of Borealis is 24 April 2026."


def small() -> Script:
    """Two units are told and one of them is erased."""
    steps = [
        Turn(id="t1", at="2026-01-05T09:00", tenant="acme", session="s1", text=SECRET, unless=("w",),
             ops=[Op("tell", "acme/Atlas/deadline", "date:2026-03-12")]),
        Turn(id="t2", at="2026-01-05T09:05", tenant="acme", session="s1", text=OTHER,
             ops=[Op("tell", "acme/Borealis/deadline", "date:2026-04-24")]),
        Erasure(id="e1", at="2026-01-06T09:00", tenant="acme", unit="acme/Atlas/deadline", unless=("w",)),
        Probe(id="p1", at="2026-01-06T10:00", tenant="acme", ask="current", group="q1",
              text="When is the deadline of Borealis?", unit="acme/Borealis/deadline"),
        Pause(id="m1", at="2026-01-07T10:00"),
        Gauge(id="g1", at="2026-01-07T11:00", full=True),
    ]  # fmt: skip
    return annotate(Script(Header(name="small", tenants=["acme"]), steps))


def found(folder: Path, *, shown: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """What the search after the erasure finds: file, what, how."""
    made = small()
    remains = Search(folder, made, EMBED).after(2, [Item(text) for text in shown])
    assert remains is not None
    return [(left.file, left.what, left.how) for left in remains.left]


def by_letters(texts: list[str]) -> Vectors:
    """Vectors in which short texts too have many numbers."""
    return EMBED([" ".join(text) for text in texts])


ROW = EMBED([SECRET])[0]
WRITTEN: dict[str, bytes] = {
    "UTF-8": SECRET.encode(),
    "UTF-8 ": SECRET.upper().encode(),
    "UTF-16": SECRET.encode("utf-16"),
    "UTF-8 packed": zlib.compress(SECRET.encode()),
    "UTF-8 packed ": gzip.compress(SECRET.encode()),
    "float32": ROW.astype("<f4").tobytes(),
    "float16": ROW.astype("<f2").tobytes(),
    "float64": ROW.astype("<f8").tobytes(),
    "base64 of float32": base64.b64encode(ROW.tobytes()),
    "pickled float64": pickle.dumps([float(number) for number in ROW]),
    "float32 in a log of kuzu": b"".join(
        b"\x21\x0c\0\0\0\0\0\0" + number.astype("<f4").tobytes() for number in ROW
    ),
    "JSON numbers": json.dumps([float(number) for number in ROW]).encode(),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_what_is_left_is_found_however_it_is_written(how: str, tmp_path: Path) -> None:
    """Texts in every encoding, packed too, and vectors in every form, anywhere in a file."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "store.bin").write_bytes(b"\x00" * 1001 + WRITTEN[how] + b"\xff" * 77)
    assert ("deep/store.bin", SECRET, how.strip()) in found(tmp_path)


def test_escaped_text_is_found(tmp_path: Path) -> None:
    """A value is found in JSON, where what is no ASCII is escaped."""
    text = "Die Frist für Atlas ist der 12. März 2026."
    made = small()
    made.steps[0].text = text  # type: ignore[union-attr]
    made = annotate(made)
    (tmp_path / "log.jsonl").write_text(json.dumps({"said": text}))
    remains = Search(tmp_path, made).after(2, [])
    assert remains is not None
    assert ("JSON", text) in [(left.how, left.what) for left in remains.left]


def test_a_long_text_is_found_by_a_piece(tmp_path: Path) -> None:
    """A store breaks long texts up; any piece of one is enough."""
    made = small()
    made.steps[0].text = text = SECRET + " ".join(str(n * n) for n in range(500))  # type: ignore[union-attr]
    (tmp_path / "page").write_bytes(text[900:1500].encode())
    remains = Search(tmp_path, annotate(made)).after(2, [])
    assert remains is not None
    assert [left.what for left in remains.left] == [text]


def test_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read in blocks, and what lies across two is found."""
    monkeypatch.setattr("steeltrap.harness.remains._BLOCK_BYTES", 64)
    (tmp_path / "big").write_bytes(b"." * 50 + SECRET.encode() + b"." * 50)
    assert ("big", SECRET, "UTF-8") in found(tmp_path)


def test_what_others_said_is_no_trace(tmp_path: Path) -> None:
    """A value that stands in anybody else's text says nothing, and neither do their vectors."""
    made = small()
    made.steps[1].text = OTHER + " Not 12 March 2026."  # type: ignore[union-attr]
    made = annotate(made)
    (tmp_path / "log").write_text(made.steps[1].text)  # type: ignore[union-attr]
    live = [OTHER, "When is the deadline of Borealis?", "12 March 2026"]
    (tmp_path / "vectors").write_bytes(by_letters(live).tobytes())
    remains = Search(tmp_path, made, by_letters).after(2, [])
    assert remains is not None
    assert remains.left == []
    assert remains.things > 0


def test_a_summary_of_the_memory_is_searched_for_by_its_vector(tmp_path: Path) -> None:
    """A text of the memory's own that holds an erased value must not leave its vector behind."""
    summary = "Atlas: due 12 March 2026, launch open."
    (tmp_path / "v").write_bytes(EMBED([summary]).tobytes())
    assert ("v", summary, "float32") in found(tmp_path, shown=(summary, OTHER))
    assert not found(tmp_path, shown=(OTHER,))


@given(st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_chance_bytes_are_no_trace(data: bytes) -> None:
    """Bytes that have nothing to do with it are not taken for it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "noise").write_bytes(data + OTHER.encode())
        assert found(Path(folder)) == []


# ---------------------------------------------------------------- driven


class Tables(KeepsFiles):
    """Keeps what is said as rows of a SQLite table and deletes the rows of what is erased."""

    secure = True

    def rewrite(self) -> None:
        path = self.log.with_name("turns.db")
        new = not path.exists()
        db = sqlite3.connect(path, isolation_level=None)
        db.execute(f"PRAGMA secure_delete = {'ON' if self.secure else 'OFF'}")
        if new:
            db.execute("CREATE TABLE turn(id TEXT PRIMARY KEY, text TEXT, vector BLOB)")
        known = {row[0] for row in db.execute("SELECT id FROM turn")}
        here = {turn.id: turn.text for turn in self.heard}
        for name in known - set(here):
            db.execute("DELETE FROM turn WHERE id = ?", (name,))
        for name in here.keys() - known:
            vector = self.embedder.embed([here[name]])[0].tobytes()
            db.execute("INSERT INTO turn VALUES (?, ?, ?)", (name, here[name], vector))
        db.close()


class Careless(Tables):
    """Leaves deleted rows in the free space of their pages, as SQLite does by default."""

    secure = False


def driven(make: Callable[[], KeepsFiles], folder: Path, script: Script) -> Path:
    """The history of a memory whose files were searched."""
    memory, files = make(), folder / "memory"
    files.mkdir()
    memory.told(script)
    memory.open(files)
    history = folder / "history.jsonl"
    drive(memory, script, history, limit=10, search=Search(files, script, memory.embedder.embed))
    memory.close()
    return history


def traces(history: Path, script: Script) -> list[str]:
    able = read_header(history).capabilities
    scored = score(script, read_events(history), capabilities=able, reader=Oracle())
    return [v.observed for v in scored.violations if v.name == "trace"]


def test_a_deleted_row_is_found_unless_it_was_overwritten(tmp_path: Path) -> None:
    """SQLite without secure_delete leaves what was deleted in its pages, and with it nothing."""
    script = small()
    for name in ("careless", "careful"):
        (tmp_path / name).mkdir()
    careless = driven(Careless, tmp_path / "careless", script)
    left = traces(careless, script)
    assert len(left) == 1, "found after the erasure, and not counted again at the end"
    assert "turns.db" in left[0]
    careful = driven(Tables, tmp_path / "careful", script)
    assert traces(careful, script) == []
    searched = [event.remains for event in read_events(careful) if event.remains]
    assert all(remains.files and remains.things for remains in searched)


def test_what_is_on_disk_is_not_compared(tmp_path: Path) -> None:
    """Two runs that differ in their files alone have the same fingerprint."""
    script = small()
    prints = []
    for make in (Careless, Tables):
        (tmp_path / make.__name__).mkdir()
        prints.append(fingerprint(driven(make, tmp_path / make.__name__, script)))
    assert prints[0] == prints[1]


def test_it_is_searched_after_each_erasure_and_at_the_end(tmp_path: Path) -> None:
    """Each erasure that must leave nothing has a search, and so has the last step of all."""
    script = small()
    searched = [e.i for e in read_events(driven(Tables, tmp_path, script)) if e.remains]
    due = [i for i, s in enumerate(script.steps) if isinstance(s, Erasure) and s.gone]
    assert due
    assert searched == [*due, len(script.steps) - 1]


def test_what_comes_to_the_files_later_is_found_at_the_end(tmp_path: Path) -> None:
    """A log that is written at the next maintenance counts, and once only."""

    class Late(KeepsFiles):
        def begin(self) -> None:
            self.bin: list[str] = []

        def erase(self, tenant, subject):  # type: ignore[no-untyped-def]
            before = [turn.text for turn in self.heard]
            super().erase(tenant, subject)
            self.bin += [text for text in before if text not in [t.text for t in self.heard]]

        def maintain(self, at: str) -> None:
            super().maintain(at)
            self.log.with_name("backup").write_text("\n".join(self.bin))

    script = small()
    history = driven(Late, tmp_path, script)
    events: list[Event] = [event for event in read_events(history) if event.remains]
    assert not events[0].remains.left  # type: ignore[union-attr]
    left = traces(history, script)
    assert left
    assert all("backup" in told for told in left)
    assert len(left) <= sum(isinstance(s, Erasure) for s in script.steps)
