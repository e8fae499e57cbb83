"""Files that were made to do harm, wherever a command reads one."""

from __future__ import annotations

import gzip
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard

RUN = ("run", "system=flat", "script=revision-chain", "script.turns=12")
LIMIT_MB = 2600
"""Of address space; what is imported takes most of it."""

DEEP = b"[" * 100_000
POISON: dict[str, bytes] = {
    "deep": DEEP,
    "deep objects": b'{"a":' * 100_000,
    "no UTF-8": b'{"format":"\xff\xfe\x80"}',
    "NUL": b"\x00" * 4096,
    "too large a number": b"1e999999",
    "many digits": b"9" * 100_000,
    "empty": b"",
    "a number": b"7",
    "null": b"null",
    "text": b'"text"',
    "list": b"[]",
    "object": b"{}",
    "half a letter": b'{"format":"\\ud800"}',
    "not JSON": b"!!python/object/apply:os.system ['touch canary']",
    "target": b'{"_target_":"os.system","command":"touch canary"}',
    "interpolation": b'{"format":"${oc.env:HOME}"}',
}
"""What may stand in place of a file, or of a line of one."""


FEW = ("deep", "no UTF-8", "NUL", "object", "deep inside", "half a letter inside")
EVERY = [pytest.param(False, id="few"), pytest.param(True, id="every", marks=pytest.mark.slow)]
"""Whether all poison is tried, or what is most unlike each other."""


def poison(good: bytes, every: bool) -> dict[str, bytes]:
    """What is tried in place of something good."""
    whole = POISON | inside(good)
    return whole if every else {name: whole[name] for name in FEW}


def inside(good: bytes) -> dict[str, bytes]:
    """A good line with one thing put into it that does not belong there."""
    start = good[:-1] if good.endswith(b"}") else good.rstrip()[:-1]
    return {
        "deep inside": start + b',"x":' + DEEP + b"]" * 100_000 + b"}",
        "no UTF-8 inside": start + b',"x":"\xff"}',
        "half a letter inside": start + b',"x":"\\ud800"}',
        "twice": start + b"," + start[1:] + b"}",
        "a huge number inside": start + b',"x":1e999999}',
    }


KINDS: dict[str, tuple[str, ...]] = {
    "spec.json": ("score", "runs"),
    "record.json": ("report", "runs"),
    "script.jsonl": ("score", "runs"),
    "history.jsonl": ("score", "runs"),
    "violations.jsonl": ("compare", "baseline.json", "runs"),
}
"""Files of a run, and a command that reads each."""


@pytest.fixture(scope="session")
def finished(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a baseline of it and a script."""
    folder = tmp_path_factory.mktemp("finished") / "work"
    folder.mkdir()
    commands(folder, *RUN)
    commands(folder, "baseline", "runs", "--to", "baseline.json")
    commands(folder, "script", "make", *RUN[2:], "out=script.jsonl")
    return folder


@pytest.fixture
def place(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "work"))


def cell(place: Path) -> Path:
    (found,) = place.rglob("record.json")
    return found.parent


def refused(
    commands: Any, place: Path, words: tuple[str, ...], file: Path | None, **more: Any
) -> str:
    """A command ends with a sentence that names the file, in bounded memory, and did nothing else."""
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    shims = [("memory", {"mb": more.pop("mb", LIMIT_MB)})]
    ended = commands(place, *words, shims=shims, code=None, **more)
    assert not (place / "canary").exists()
    assert not (cell(place) / "canary").exists()
    if ended.code == 0:
        return ""
    assert ended.code in (1, 2), ended
    said = [line for line in ended.err.splitlines() if line.startswith("steeltrap: ")]
    assert 1 == len(said), ended
    if file is not None:
        assert file.name in " ".join(ended.err.split()) or "of the history" in ended.err, ended
    assert len(ended.err) < 5000, ended.err[:5000]
    assert before == {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    return str(said[0])


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize(
    "kind", [*list(KINDS)[:4], pytest.param("violations.jsonl", marks=pytest.mark.slow)]
)
def test_a_file_of_a_run_that_is_none_is_refused(
    commands: Any, place: Path, kind: str, every: bool
) -> None:
    """Whatever stands in place of a file of a run, or of one of its lines, is refused by a sentence
    with the file; nothing of it is carried out, and nothing else is touched."""
    file = cell(place) / kind
    good = file.read_bytes()
    words = KINDS[kind]
    lines = good.splitlines()
    for name, evil in poison(lines[0] if kind.endswith("l") else good, every).items():
        file.write_bytes(evil + b"\n")
        said = refused(commands, place, words, file)
        # what a file holds beside its own fields may be passed over
        assert said or name in (*inside(b"{}"), "empty"), (kind, name)
        if kind.endswith("l") and len(lines) > 2:
            file.write_bytes(b"\n".join([*lines[:2], evil, *lines[2:]]) + b"\n")
            said = refused(commands, place, words, file)
            assert said or name in ("empty", *inside(b"{}")), (kind, name)
            assert not said or f"{kind}:3:" in said or kind == "violations.jsonl", (name, said)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("script.jsonl", ("script", "check", "script.jsonl")),
        ("script.jsonl", ("script", "show", "script.jsonl")),
        (
            "script.jsonl",
            ("run", "system=flat", "script=file", "script.path=script.jsonl", "runs=new"),
        ),
        ("baseline.json", ("compare", "baseline.json", "runs")),
    ],
)
def test_a_file_that_somebody_gives_is_refused(
    commands: Any, place: Path, file: str, words: tuple[str, ...], every: bool
) -> None:
    """Scripts and baselines from elsewhere are data: no more is done with them than to refuse them."""
    path = place / file
    good = path.read_bytes()
    lines = good.splitlines()
    for name, evil in poison(lines[0] if file.endswith("l") else good, every).items():
        path.write_bytes(evil + b"\n")
        said = refused(commands, place, words, path)
        assert said or name in inside(b"{}") or words[1] == "show", name
        if file.endswith("l"):
            path.write_bytes(b"\n".join([lines[0], evil, *lines[1:]]) + b"\n")
            said = refused(commands, place, words, path)
            assert said or name in inside(b"{}"), name
            assert not said or f"{file}:" in said, said


@pytest.mark.parametrize("kind", ["script.jsonl", "history.jsonl"])
def test_a_line_without_end_does_not_fill_the_memory(commands: Any, place: Path, kind: str) -> None:
    """A line of a gigabyte is refused when it has become longer than any line is."""
    file = cell(place) / kind
    with file.open("r+b") as stream:
        stream.seek(1_000_000_000)
        stream.write(b"x")
    assert refused(commands, place, ("score", "runs"), file)


@pytest.fixture(scope="session")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of which each is a gigabyte when it is unpacked."""
    folder = tmp_path_factory.mktemp("bombs")
    packer = zstandard.ZstdCompressor(level=1)
    with (folder / "bomb.zst").open("wb") as out, packer.stream_writer(out) as into:
        for _ in range(1 << 10):
            into.write(b"0" * (1 << 20))
    with gzip.open(folder / "bomb.gz", "wb", compresslevel=1) as into:
        for _ in range(1 << 10):
            into.write(b"0" * (1 << 20))
    return folder


def test_a_compressed_history_that_has_no_end_is_refused(
    commands: Any, place: Path, bombs: Path
) -> None:
    """A few kilobytes that unpack to a gigabyte are refused before they have filled the memory."""
    plain = cell(place) / "history.jsonl"
    plain.unlink()
    packed = plain.with_name("history.jsonl.zst")
    shutil.copy(bombs / "bomb.zst", packed)
    assert refused(commands, place, ("score", "runs"), packed)
    for evil in (b"", b"not zstd", lzma.compress(b"{}"), gzip.compress(b"{}")):
        packed.write_bytes(evil)
        assert refused(commands, place, ("score", "runs"), packed)


DATASETS = (
    "locomo",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("longmemeval", "beam", "memoryagentbench", "halumem")
    ),
)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("name", DATASETS)
def test_public_data_that_is_none_is_refused(
    commands: Any, place: Path, bombs: Path, name: str, every: bool
) -> None:
    """Files given as public data are refused by a sentence, unchecked ones too: by their form, their
    size when unpacked, or what they hold."""
    file = place / "data.json"
    words = ("run", "system=flat", f"script={name}", "runs=new", "++script.check=false")
    deep = (DEEP + b"]" * 100_000, b'[{"a":' + DEEP + b"]" * 100_000 + b"}]")
    for evil in (*POISON.values(), *deep) if every else (POISON["no UTF-8"], deep[1]):
        for packed in (evil, gzip.compress(evil)):
            file.write_bytes(packed)
            assert refused(commands, place, (*words, f"script.path={file}"), None)
    bomb = place / "data.json.gz"
    shutil.copy(bombs / "bomb.gz", bomb)
    assert refused(commands, place, (*words[:-1], f"script.path={bomb}"), bomb)
    if every:
        assert refused(commands, place, (*words, f"script.path={bomb}"), bomb)


@pytest.mark.parametrize(
    ("name", "words"),
    [("../out", "name=../out: write the name of one folder"), ("a\x1b[2J", ""), ("a\nb", "")],
)
def test_names_lead_nowhere_else(commands: Any, work: Path, name: str, words: str) -> None:
    """A name of a script or an experiment makes no path, and reaches no terminal as it is."""
    ended = commands(work, *RUN, f'name="{name}"', code=None)
    assert words in ended.err
    assert "\x1b" not in ended.out + ended.err
    assert {"runs"} >= {path.name for path in work.iterdir()}
    assert {"work"} >= {
        path.name for path in work.parent.iterdir() if not path.name.startswith(".")
    }


def test_links_out_of_the_folder_are_not_written_through(
    commands: Any, place: Path, tmp_path: Path
) -> None:
    """Where a file of a run is a link to one elsewhere, that one stays as it is."""
    other = tmp_path / "other"
    for kind in ("record.json", "violations.jsonl"):
        other.write_bytes(b"mine")
        file = cell(place) / kind
        file.unlink()
        file.symlink_to(other)
    commands(place, "score", "runs", code=None)
    assert b"mine" == other.read_bytes()


def test_settings_carry_out_nothing_of_data(commands: Any, place: Path) -> None:
    """What stands in a stored spec is shown and compared, and is not composed, looked up or made."""
    spec = cell(place) / "spec.json"
    text = spec.read_text()
    assert '"flat"' in text
    for evil in (
        "flat window_turns=${oc.env:HOME}", "flat _target_=os.system", "os:system", "../flat",
        "flat +system._target_=pathlib.Path.touch", "flat hydra.run.dir=canary",
    ):  # fmt: skip
        spec.write_text(text.replace('"flat"', f'"{evil}"', 1))
        refused(commands, place, ("shrink", str(cell(place)), "no-such-name"), None)
        refused(commands, place, ("report", "runs"), None)
