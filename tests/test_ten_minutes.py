"""The page 'Judge your own memory in ten minutes' and what `steeltrap new` writes, done for real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from steeltrap.harness.commands.new import new
from steeltrap.harness.settings import SettingsError

_BLOCK = re.compile(r"^```(sh| \{\.sh \.norun\})\n(.*?)^```", re.DOTALL | re.MULTILINE)


def environment(site: Path | None = None) -> dict[str, str]:
    """With the programs of this environment first, and packages that are installed into `site`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    kept["COLUMNS"] = "100"
    if site:
        kept["PYTHONPATH"] = str(site)
    return kept


def install(package: Path, site: Path) -> None:
    """What `pip install .` does, without a registry: build the wheel and unpack it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(site)],
        cwd=package, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = site.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    wheel.unlink()


def test_the_commands_of_the_page_do_what_they_say(root: Path, tmp_path: Path) -> None:
    """Every block runs, in order and in one shell; only what needs a registry is done otherwise."""
    page = (root / "docs" / "pages" / "ten-minutes.md").read_text()
    blocks = [("norun" in info, text) for info, text in _BLOCK.findall(page)]
    assert [text for norun, text in blocks if norun and "pip install" not in text] == []
    assert len(blocks) > 8
    site = tmp_path / "site"
    script = ["set -euo pipefail"]
    for norun, text in blocks:
        if not norun:
            script.append(text)
        elif "-e" in text:
            script.append(
                f"{sys.executable} -m hatchling build -t wheel -d '{site}' >/dev/null 2>&1"
            )
            script.append(f"{sys.executable} -m zipfile -e '{site}'/*.whl '{site}'")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path, env=environment(site), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    made = tmp_path / "my-memory"
    assert (made / "memory.html").read_text().startswith("<!doctype html>")
    assert 0 < (made / "steeltrap-baseline.json").stat().st_size < 200_000
    assert len((made / "tests" / "memory" / "exposed-history.jsonl").read_text().splitlines()) < 12
    assert "exposed-history at" in done.stdout
    assert "not yet" in done.stdout


def test_the_page_names_every_option(root: Path) -> None:
    """Each option of the plugin stands in the page, with its name in an ini file."""
    from steeltrap.harness.pytest_plugin import _OPTIONS

    page = (root / "docs" / "pages" / "ten-minutes.md").read_text()
    for name in _OPTIONS:
        assert re.search(rf"`--{name.replace('_', '-')}[ `].*\| `{name}` \|", page), name


def test_a_new_package_is_well_kept(tmp_path: Path) -> None:
    """Under any name it is formatted, typed and free of the words of the template."""
    new("river-bed-2", tmp_path / "made", Console(quiet=True))
    made = [path for path in sorted((tmp_path / "made").rglob("*")) if path.is_file()]
    text = "\n".join(path.read_text() for path in made)
    assert not re.search(r"my.?memory", text, re.IGNORECASE)
    assert "class RiverBed2:" in text
    assert {".gitignore", "pyproject.toml", "README.md"} <= {path.name for path in made}
    assert (tmp_path / "made" / ".github" / "workflows" / "memory.yml").is_file()
    code = [str(path) for path in made if path.suffix == ".py"]
    for words in (["ruff", "check", "--isolated"], ["ruff", "format", "--check", "--isolated", "--line-length=100"]):  # fmt: skip
        done = subprocess.run([sys.executable, "-m", *words, *code], capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout


def test_a_new_package_is_installed_and_found(tmp_path: Path) -> None:
    """Installed beside steeltrap it is listed, and runs under its name with its settings."""
    new("river-bed", tmp_path / "made", Console(quiet=True))
    install(tmp_path / "made", tmp_path / "site")
    listed = _steeltrap(tmp_path, "systems")
    assert re.search(r"^river-bed +in process +Turns in SQLite", listed, re.MULTILINE)
    ran = _steeltrap(
        tmp_path, "run", "system=river-bed", "+system.keep_turns=30", "script=figure-1", "twins=0"
    )
    assert "river-bed keep_turns=30" in ran


def _steeltrap(folder: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "steeltrap", *words],
        cwd=folder, env=environment(folder / "site"), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my memory!", "'my memory!' cannot name a package: write lower-case letters"),
        ("../up", "cannot name a package"),
        ("", "cannot name a package"),
        ("flat", "there is a system 'flat' already"),
        ("class", "'class' is a word of Python's own"),
        ("json", "'json' is a word of Python's own"),
        ("test-memory", "pytest would take 'test_memory' for tests"),
        ("numpy", "a module 'numpy' can be imported here already"),
    ],
)
def test_a_name_that_cannot_be_had_is_refused(name: str, said: str, tmp_path: Path) -> None:
    """Nothing is written, and the message says what would do."""
    with pytest.raises(SettingsError, match=re.escape(said)):
        new(name, tmp_path / "made", Console(quiet=True))
    assert not (tmp_path / "made").exists()


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    """A folder that holds something, or a file of that name, stays as it is."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    for taken in (tmp_path / "full", tmp_path / "full" / "thesis.tex"):
        with pytest.raises(SettingsError, match="is there already; --to FOLDER"):
            new("river-bed", taken, Console(quiet=True))
    assert ["thesis.tex"] == [path.name for path in (tmp_path / "full").iterdir()]
