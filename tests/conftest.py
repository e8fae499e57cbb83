"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("STEELTRAP_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("public data is not here: set STEELTRAP_DATA to its folder")
    return folder
