"""Histories on disk: compressed and plain read alike, and none is lost on the way from one to the other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from steeltrap.adapters.flat import Flat
from steeltrap.harness import history
from steeltrap.harness.drive import drive
from steeltrap.harness.history import (
    HistoryError,
    Reading,
    compress,
    expand,
    find,
    fingerprint,
    read_events,
    read_header,
    read_marked,
    stored,
)
from steeltrap.workloads.compose import ScriptSettings, compose


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of a short real run."""
    folder = tmp_path_factory.mktemp("recorded")
    memory = Flat(window_turns=20)
    memory.open(folder)
    script = compose(ScriptSettings(name="mixed", turns=40), 1)
    drive(memory, script, folder / "history.jsonl", limit=10)
    return folder / "history.jsonl"


@pytest.fixture
def plain(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(recorded, tmp_path / "history.jsonl"))


def test_a_compressed_history_reads_like_the_plain_one(recorded: Path, plain: Path) -> None:
    """Header, events, positions and fingerprint are the same, and so is the time of the last change."""
    os.utime(plain, ns=(5, 7))
    compress(plain)
    packed = stored(plain)
    assert [packed] == list(plain.parent.iterdir())
    assert packed.stat().st_size < recorded.stat().st_size / 2
    assert packed.stat().st_mtime_ns == 7
    assert read_header(recorded) == read_header(packed)
    assert list(read_marked(recorded)) == list(read_marked(packed))
    assert fingerprint(recorded) == fingerprint(packed)
    expand(packed)
    assert [plain] == list(plain.parent.iterdir())
    assert recorded.read_bytes() == plain.read_bytes()


def test_a_history_is_found_once_as_it_is_stored(plain: Path) -> None:
    """Plain, compressed, or both: whoever looks gets one, and of two the plain one."""
    assert [plain] == find(plain.parent, "*.jsonl")
    compress(plain)
    packed = plain.with_name("history.jsonl.zst")
    assert [packed] == find(plain.parent, "*.jsonl")
    plain.write_bytes(b"")
    plain.with_name("history.jsonl.zst.part").write_bytes(b"")
    assert [plain] == find(plain.parent, "*.jsonl")


_KILLED = """
import os, sys
from pathlib import Path
from steeltrap.harness import history

act, path, line = getattr(history, sys.argv[1]), Path(sys.argv[2]), 0
import zstandard

def killed_at(number):
    def watch(frame, kind, _):
        global line
        if frame.f_code.co_filename != history.__file__:
            return None
        if kind == "line":
            line += 1
            if line == number:
                os._exit(9)
        return watch
    return watch

number, status = 0, 1
while status:
    number += 1
    work = path.with_name(f"{number:04}")
    work.mkdir()
    for one in path.iterdir():
        os.link(one, work / one.name)
    child = os.fork()
    if not child:
        sys.settrace(killed_at(number))
        act(work / "history.jsonl")
        sys.settrace(None)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
print(number)
"""


@pytest.mark.parametrize("act", ["compress", "expand"])
def test_a_kill_between_any_two_lines_loses_nothing(plain: Path, act: str) -> None:
    """Wherever it is stopped, the whole history is read afterwards, and doing it again ends it."""
    digest, data = fingerprint(plain), plain.read_bytes()
    before = plain.parent / "before"
    before.mkdir()
    plain.rename(before / plain.name)
    if act == "expand":
        compress(before / plain.name)
    command = [sys.executable, "-c", _KILLED, act, str(before)]
    tried = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert tried > 20
    for folder in sorted(plain.parent.glob("[0-9]*")):
        assert digest == fingerprint(stored(folder / plain.name))
        # what goes on after the kill writes to the plain one, or compresses it
        getattr(history, act)(stored(folder / plain.name)) if act == "expand" else _again(folder)
        (left,) = (path for path in folder.iterdir() if path.suffix != ".part")
        assert digest == fingerprint(left)
        assert (left.suffix == ".zst") == (act == "compress")
        expand(left)
        assert data == (folder / plain.name).read_bytes()


def _again(folder: Path) -> None:
    """As a cell does it: what is compressed already is left alone."""
    for path in find(folder, "history.jsonl"):
        if path.suffix != ".zst":
            compress(path)


def test_what_is_cut_or_broken_is_refused(plain: Path) -> None:
    """No part of a compressed history is taken for the whole of it, and the message says what to do."""
    compress(plain)
    packed = stored(plain)
    data = packed.read_bytes()
    half = len(data) // 2
    assert zstandard.get_frame_parameters(data).has_checksum
    wrong = {
        "is cut short": [data[:-1], data[:-4], data[:half], data[:5], b""],
        "goes on behind its end": [data + b"{}", data + data],
        "is broken": [data[:half] + b"\0\0\0\0" + data[half + 4 :], data[:-4] + b"last", b"{}\n"],
    }
    for words, files in wrong.items():
        for file in files:
            packed.write_bytes(file)
            with pytest.raises(HistoryError, match=rf"history\.jsonl\.zst: {words}.*fresh=true"):
                fingerprint(packed)
            with pytest.raises(HistoryError, match=words):
                expand(packed)
            assert [packed] == list(plain.parent.iterdir())


def test_what_reads_otherwise_than_it_was_written_takes_no_place(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that loses what was written costs the copy, and not the history."""
    data = plain.read_bytes()
    real = history._unpacked

    def lost(path: Path) -> object:
        whole = zstandard.ZstdDecompressor().decompress(path.read_bytes())
        path.write_bytes(zstandard.ZstdCompressor().compress(whole[:-1]))
        return real(path)

    monkeypatch.setattr(history, "_unpacked", lost)
    with pytest.raises(HistoryError, match=r"reads otherwise than it was written; .* stays"):
        compress(plain)
    assert [plain] == list(plain.parent.iterdir())
    assert data == plain.read_bytes()


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gigabyte that was compressed into a few bytes is read a block at a time, and no further."""
    monkeypatch.setattr(history, "LONGEST_BYTES", 1 << 20)
    header = plain.read_bytes().split(b"\n")[0] + b"\n"
    packed = plain.with_name("bomb.jsonl.zst")
    packer = zstandard.ZstdCompressor().compressobj()
    with packed.open("wb") as out:
        out.write(packer.compress(header))
        for _ in range(1 << 10):
            out.write(packer.compress(bytes(1 << 20)))
        out.write(packer.flush())
    assert packed.stat().st_size < 1 << 17
    tracemalloc.start()
    try:
        with pytest.raises(HistoryError, match=r"bomb\.jsonl\.zst:2: longer than 1 MB"):
            list(read_events(packed))
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_a_reading_counts_all_steps_whoever_stops_before_the_end(recorded: Path) -> None:
    """The fingerprint is of the whole history, also where the events were wanted in part alone."""
    whole, part = Reading(recorded), Reading(recorded)
    events = list(whole)
    for event in part:
        if event.i == 3:
            break
    assert part.steps == 4
    assert whole.fingerprint() == part.fingerprint() == fingerprint(recorded)
    assert len(events) == whole.steps == part.steps


def test_a_fingerprint_leaves_the_events_as_they_are(recorded: Path) -> None:
    """Whoever is shown an event sees its times, though they are not in the fingerprint."""
    assert list(read_events(recorded)) == list(Reading(recorded))


def test_an_environment_without_zstandard_can_use_the_module() -> None:
    """A worker has msgspec and its system alone, and writes no compressed histories."""
    asked = "import sys; sys.modules['zstandard'] = None; import steeltrap.harness.history"
    subprocess.run([sys.executable, "-c", asked], check=True)
