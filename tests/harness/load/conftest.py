from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness.load import Findings, LoadSettings, Trace, apply, judge, planned

Loaded = Callable[..., tuple[Trace, Findings]]

_SPEC = importlib.util.spec_from_file_location(
    "load_memories", Path(__file__).with_name("memories.py")
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MEMORIES: Any = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MEMORIES
_SPEC.loader.exec_module(_MEMORIES)


@pytest.fixture
def memories() -> Any:
    """The module of memories that lies beside this file."""
    return _MEMORIES


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """Puts a short load to a memory, and judges it."""

    def run(
        memory: Any, *, rate: float = 400, threads: int = 12, limit: int = 10, **settings: Any
    ) -> tuple[Trace, Findings]:
        chosen = {"seconds": 0.5, "tenants": 4, "traced": 0.0} | settings
        plan = planned(LoadSettings(**chosen), rate)
        memory.open(tmp_path)
        try:
            trace = apply(memory, plan, limit=limit, threads=threads, patience_s=5)
        finally:
            memory.close()
        return trace, judge(plan, trace, copies=1)

    return run
