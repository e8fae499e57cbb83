"""The house: links, wheel, imports, what tracked files may not hold, and the README's commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOMS = ("adapters", "configs", "harness", "reference_system", "reports", "workloads")
DATA = ("values", "script", "history", "memory", "verdict", "record")


def tracked(root: Path) -> list[Path]:
    """Files of the checkout that are under version control, links left out."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = (root / name for name in listed.stdout.decode().split("\0") if name)
    return [path for path in files if path.is_file() and not path.is_symlink()]


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_reached_through_a_relative_link(root: Path, room: str) -> None:
    """`.src/steeltrap/<room>` leads to the folder at the top and holds wherever it is cloned to."""
    link = root / ".src" / "steeltrap" / room
    assert link.is_symlink()
    assert Path("../..") / room == link.readlink()
    assert (root / room / "__init__.py").samefile(link / "__init__.py")


def test_wheel_holds_only_the_package(root: Path, tmp_path: Path) -> None:
    """A wheel has `steeltrap/` and its own metadata, each module, each setting, and no bare room."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=root,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    held = zipfile.ZipFile(wheel).namelist()
    assert {"steeltrap"} == {
        name.split("/")[0] for name in held if ".dist-info/" not in name.split("/")[0] + "/"
    }
    wanted = [
        f"steeltrap/{path.relative_to(root)}" for room in ROOMS for path in tracked(root / room)
    ]
    assert sorted(set(wanted) - set(held)) == []
    assert {"steeltrap/__init__.py", "steeltrap/py.typed"} <= set(held)


def test_no_bare_imports(root: Path) -> None:
    """Rooms are imported as `steeltrap.<room>`: `adapters` alone is somebody else's package."""
    bare = re.compile(rf"^\s*(?:from|import)\s+(?:{'|'.join(ROOMS)})\b", re.MULTILINE)
    found = [
        path for path in tracked(root) if path.suffix == ".py" and bare.search(path.read_text())
    ]
    assert found == []


def test_data_modules_need_only_msgspec(root: Path) -> None:
    """What a worker of another environment imports stands on the standard library and msgspec.

    msgspec takes typing_extensions along where it finds it.
    """
    asked = (
        "import sys; before = set(sys.modules)\n"
        + "\n".join(f"import steeltrap.harness.{name}" for name in DATA)
        + "\nnew = {name.split('.')[0] for name in set(sys.modules) - before}"
        "\nprint(sorted(new - set(sys.stdlib_module_names) - {'typing_extensions'}))"
    )
    said = subprocess.run(
        [sys.executable, "-c", asked],
        env={"PYTHONPATH": str(root / ".src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "['msgspec', 'steeltrap']"


def test_lock_has_hashes_and_no_addresses(root: Path) -> None:
    """The lock names versions and hashes, and leaves open from where they are fetched."""
    lines = (root / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if "://" in line or line.startswith("-")] == []
    names = [line for line in lines if re.match(r"\w", line)]
    assert len(names) > 40
    assert all("==" in line and line.endswith("\\") for line in names)


def test_tracked_files_hold_no_machine_and_no_registry(root: Path) -> None:
    """No path of the machine that it was written on, and no host of a package registry."""
    hosts = "|".join(("py" + r"pi\.org", "python" + r"hosted\.org", "npm" + r"js\.(?:org|com)"))
    machine = "|".join(
        re.escape("/" + name + "/") for name in ("wo" + "rk", "ro" + "ot", "ho" + "me")
    )
    banned = re.compile(rf"{hosts}|(?<![\w.\]}})]){machine}".encode())
    found = {
        f"{path.relative_to(root)}: {match[0].decode()}"
        for path in tracked(root)
        for match in banned.finditer(path.read_bytes())
    }
    assert set() == found


def test_makefile_has_two_commands(root: Path) -> None:
    """`make run` and `make test` are all that a newcomer has to know."""
    targets = re.findall(r"^([\w.][\w./]*):(?!=)", (root / "Makefile").read_text(), re.MULTILINE)
    assert [t for t in targets if not t.startswith(".")] == ["run", "test"]


def commands(root: Path) -> list[str]:
    """Every `steeltrap …` and `make …` line of the README's shell blocks."""
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    lines = (line.split("#")[0].strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line.split(" ")[0] in ("steeltrap", "make")]


def test_readme_commands_exist(root: Path) -> None:
    """Each command of the README is one that the program or the Makefile knows."""
    from steeltrap.harness.cli import parser

    written = commands(root)
    assert {"make run", "make test"} <= set(written)
    assert len(written) > 5
    for line in written:
        program, *words = shlex.split(line)
        if program == "steeltrap" and words[-1] != "--help":
            parser().parse_args(sorted(words, key=lambda word: "=" in word))


def block(root: Path, language: str, holding: str) -> str:
    """The one block of the README in a language that holds some words."""
    found = re.findall(rf"```{language}\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    (only,) = (text for text in found if holding in text)
    return str(only)


def test_readme_script_is_in_order(root: Path, tmp_path: Path) -> None:
    """The script that the README shows passes the check, and gets its truth."""
    from steeltrap.harness.script import Audit, Expect, Probe
    from steeltrap.workloads.check import check

    path = tmp_path / "mine.jsonl"
    path.write_text(block(root, "json", "steeltrap-script"))
    *_, probe, audit = check(path).steps
    assert isinstance(probe, Probe)
    assert Expect("set", "date:2026-04-20") == probe.expect
    assert isinstance(audit, Audit)
    assert ["t1", "t2"] == [past.source for past in audit.history]


def test_readme_names_every_op_and_kind(root: Path) -> None:
    """What can be written in a script is named in the README."""
    from steeltrap.harness.script import OPS
    from steeltrap.harness.values import KINDS

    text = (root / "README.md").read_text()
    assert [] == [name for name in (*OPS, *KINDS) if f"`{name}`" not in text]


def test_readme_memory_works(root: Path, tmp_path: Path) -> None:
    """The memory that the README shows is one, and serves the newest turn that shares a word."""
    from steeltrap.harness.memory import Memory, Query, Utterance

    room: dict[str, Any] = {}
    exec(block(root, "python", "class Mine"), room)
    mine = room["Mine"](keep=2)
    assert isinstance(mine, Memory)
    mine.open(tmp_path)
    for n, text in enumerate(("old deadline", "new deadline", "nothing")):
        mine.ingest(Utterance(f"t{n}", "2026-01-05T09:00", "acme", "s1", "user", text))
    (item,) = mine.retrieve(Query("p1", "2026-01-05T10:00", "acme", "deadline ?", 10))
    assert ("t1",) == item.sources
