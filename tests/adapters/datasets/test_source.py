"""What all loaders share: cards, finding files, and reading what may be hostile."""

from __future__ import annotations

import gzip
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.adapters.datasets import beam, halumem, locomo, longmemeval, memoryagentbench, source
from steeltrap.adapters.datasets.source import Card, DatasetError, KnownFile, Scripts
from steeltrap.harness.script import Header, Script, ScriptError

CARDS = ("beam", "halumem", "locomo", "longmemeval", "memoryagentbench")
LOADERS: dict[str, Any] = {
    "beam": beam.scripts,
    "halumem": halumem.scripts,
    "locomo": locomo.scripts,
    "longmemeval": longmemeval.scripts,
    "memoryagentbench": memoryagentbench.scripts,
}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_says_what_must_be_known(name: str) -> None:
    """Name, paper, source and licence stand on each card; hashes are hashes; files have sizes."""
    card = source.card(name)
    assert all((card.name, card.paper, card.source, card.licence, card.files))
    for file in card.files.values():
        assert file.bytes > 0
        assert all(len(known) == 64 and int(known, 16) >= 0 for known in file.sha256)
    for defect in card.defects:
        assert defect.kind
        assert defect.about
        assert len(defect.questions) == len(set(defect.questions))


def card(**files: KnownFile) -> Card:
    return Card("Invented", "none", "a shelf", "free", {"data.json": KnownFile("", 1000), **files})


def scripts_of(count: int) -> Scripts:
    return Scripts(count, lambda seed: Script(Header(name="made", seed=seed), []))


def test_scripts_are_made_when_they_are_asked_for() -> None:
    """A list of scripts has a length, indexes and parts, and makes none before it is asked."""
    made: list[int] = []

    def make(seed: int) -> Script:
        made.append(seed)
        return Script(Header(name="made", seed=seed), [])

    several = Scripts(5, make)
    assert (len(several), made) == (5, [])
    assert [several[1].header.seed, several[-1].header.seed] == [1, 4]
    assert made == [1, 4]
    assert [script.header.seed for script in several[1:4:2]] == [1, 3]
    with pytest.raises(IndexError):
        several[5]
    assert [script.header.seed for script in scripts_of(2)] == [0, 1]


def test_an_error_of_a_data_set_is_one_of_a_script() -> None:
    """So that one that shows when a script is made later ends the command like one that is read."""
    assert issubclass(DatasetError, ScriptError)


def test_a_file_is_found_in_a_folder_gzipped_or_not(tmp_path: Path) -> None:
    """The first way of which all files are there is taken; a missing one is named."""
    (tmp_path / "b.json.gz").write_bytes(b"")
    (tmp_path / "c.json").write_bytes(b"")
    about = card()
    found = source.find(tmp_path, about, [["a.json"], ["b.json", "c.json"]])
    assert [path.name for path in found] == ["b.json.gz", "c.json"]
    with pytest.raises(DatasetError, match=r"does not hold a\.json or d\.json with c\.json.*shelf"):
        source.find(tmp_path, about, [["a.json"], ["d.json", "c.json"]])


def test_copies_with_equal_records_have_one_identity(tmp_path: Path) -> None:
    """Each listed hash is taken, and the first stands for all of them."""
    (tmp_path / "data.json").write_bytes(b"[2]")
    first = "e" * 64
    own = source.read(tmp_path / "data.json", card(), ["data.json"], check=False).identity
    about = card(**{"data.json": KnownFile("", 10, {first: "the hub's", own: "repackaged"})})
    known = source.read(tmp_path / "data.json", about, ["data.json"], check=True)
    assert (known.identity, known.name) == (first, "data.json")


def test_a_file_that_is_not_known_is_refused_unless_asked_for(tmp_path: Path) -> None:
    """The message has both hashes and the way round."""
    path = tmp_path / "data.json"
    path.write_bytes(b"[1]")
    about = card(**{"data.json": KnownFile("", 10, {"a" * 64: "ours"})})
    with pytest.raises(DatasetError, match=rf"sha256 [0-9a-f]{{64}}, expected {'a' * 64}.*false"):
        source.read(path, about, ["data.json"], check=True)
    with pytest.raises(DatasetError, match="and none is known"):
        source.read(path, card(), ["data.json"], check=True)
    assert source.records(source.read(path, about, ["data.json"], check=False))


def test_a_zip_bomb_is_stopped(tmp_path: Path) -> None:
    """What unzips to more than the known file could have is refused before it fills the memory."""
    bomb = tmp_path / "data.json.gz"
    bomb.write_bytes(gzip.compress(b" " * 50_000_000))
    with pytest.raises(DatasetError, match="more than 1000 bytes unzipped"):
        source.read(bomb, card(), ["data.json"], check=True)


def test_a_large_plain_file_is_refused(tmp_path: Path) -> None:
    """The same holds for a file that is not zipped."""
    path = tmp_path / "data.json"
    path.write_bytes(b" " * 1001)
    with pytest.raises(DatasetError, match="more than 1000 bytes"):
        source.read(path, card(), ["data.json"], check=True)


HOSTILE: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "empty-list": b"[]",
    "no-json": b"no json",
    "deep": b"[" * 200_000,
    "deep-objects": b'[{"a":' * 100_000,
    "deep-record": b'[{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
    "not-utf-8": b'[{"question_id":"\xff\xfe","sample_id":"\xff","uuid":"\xff","context":"\xff"}]',
    "surrogate": b'[{"question_id":"\\ud800"}]',
    "wrong-type": b'[1, "two", null]',
    "object": b'{"a": 1}',
    "lines-torn": b'{"a": 1}\n{"a"',
    "torn-gzip": gzip.compress(b"[" + b'{"a":1},' * 5000 + b"{}]")[:60],
    "gzip-in-name-only": b"\x1f\x8bnothing of the kind",
    "bytes": bytes(range(256)),
}


@pytest.mark.parametrize("loader", CARDS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_an_error_that_names_them(tmp_path: Path, loader: str, kind: str) -> None:
    """Whatever a file holds, there is a sentence with its name, and no other exception."""
    path = tmp_path / "hostile.json"
    content = HOSTILE[kind]
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"hostile\.json"):
        list(LOADERS[loader](path, check=False))


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    """A folder without the data, or a thing that is no file, is named."""
    for loader in LOADERS.values():
        with pytest.raises(DatasetError, match="does not hold"):
            loader(tmp_path)
    with pytest.raises(DatasetError, match="not a file"):
        source.read(tmp_path, card(), ["data.json"], check=False)


def test_names_in_records_are_one_printable_word() -> None:
    """What reaches terminals and pages cannot carry escapes or markup."""
    for name in ("\x1b[31m", "<b>", "a b", "", "x" * 101):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(name, source.Name)


# ---------------------------------------------------------------- from elsewhere


def test_without_the_package_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror and the hub need `datasets`; a copy of one's own does not."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    for place in ("https://mirror.example/", "https://mirror.example/a.json", "hub"):
        with pytest.raises(DatasetError, match=r"needs the package 'datasets'.*steeltrap\[data\]"):
            longmemeval.scripts(place)


@pytest.mark.parametrize("address", ["http://mirror.example/a.json", "ftp://127.0.0.1/a.json"])
def test_a_mirror_is_reached_by_https_or_at_home(address: str) -> None:
    """Nothing is fetched in the clear from another machine."""
    with pytest.raises(DatasetError, match="a mirror is reached by https"):
        locomo.scripts(address)


def test_a_password_in_an_address_is_not_repeated() -> None:
    """Messages show an address without user and password."""
    with pytest.raises(DatasetError, match=r"^http://mirror\.example/a\.json: ") as told:
        locomo.scripts("http://me:secret@mirror.example/a.json")
    assert "secret" not in str(told.value)


def test_what_is_not_on_the_hub_says_so() -> None:
    """Data that the hub has in no form that is read here is to be had elsewhere."""
    with pytest.raises(DatasetError, match="not on the hub in the form that is read here"):
        beam.scripts("hub")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A server on this machine and the folder that it serves."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    pytest.importorskip("aiohttp", reason="fetching by http needs aiohttp")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", folder
    server.shutdown()


def test_a_mirror_s_file_is_fetched_and_checked(mirror: tuple[str, Path]) -> None:
    """A file from a mirror is checked like any other, and a missing one is named."""
    address, folder = mirror
    (folder / "other.json").write_text(json.dumps([]))
    with pytest.raises(DatasetError, match="not the known file"):
        locomo.scripts(f"{address}other.json")
    with pytest.raises(DatasetError, match=r"nothing\.json: cannot be fetched"):
        locomo.scripts(f"{address}nothing.json")
