"""The site, built once for all tests that look at it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def built(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site strictly."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(docs / "mkdocs.yml"),
         "-d", str(site)],
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = built(DOCS, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def docs() -> Iterator[Path]:
    """The folder of the documentation, whose modules can be imported."""
    sys.path.insert(0, str(DOCS))
    yield DOCS
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="session")
def dialogue(docs: Path) -> ModuleType:
    """The module that plays dialogues."""
    import dialogue

    return dialogue
