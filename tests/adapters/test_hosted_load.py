"""Clients of hosted services under load, against doubles on loopback.

This puts the client's end to the test: what it makes of faults, and whether many threads keep what
is told apart. It says nothing about the services themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doubles import lives, mem0_platform, zep
from doubles.service import Fault

from steeltrap.harness.load import LoadSettings, apply, judge, planned
from steeltrap.harness.memory import claims_concurrency
from steeltrap.harness.remote import Remote

SETTINGS = LoadSettings(seconds=1.0, tenants=4, traced=0.0)


def _mem0(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Callable[[], Remote], str]:
    monkeypatch.setenv("MEM0_API_KEY", mem0_platform.KEY)
    double = mem0_platform.Mem0Double(polls=1)

    def made() -> Remote:
        target = "steeltrap.adapters.mem0_platform.Mem0Platform"
        return lives.remote("mem0-platform", target, "MEM0_API_KEY", double.url, threads=8)

    return double, made, "POST /v3/memories/add/"


def _zep(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Callable[[], Remote], str]:
    monkeypatch.setenv("ZEP_API_KEY", zep.KEY)
    double = zep.ZepDouble(polls=1)

    def made() -> Remote:
        target = "steeltrap.adapters.zep.Zep"
        return lives.remote("zep", target, "ZEP_API_KEY", double.url, threads=8)

    return double, made, "POST .*/messages"


@pytest.mark.parametrize("service", [_mem0, _zep])
@pytest.mark.parametrize("faulty", [pytest.param(False, marks=pytest.mark.slow), True])
def test_what_is_acknowledged_is_kept_once_whatever_the_service_does(
    service: Callable[..., Any], faulty: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Too many requests, errors before and after the deed, and broken connections, while many
    threads ask: nothing acknowledged is lost, nothing is told twice, and no tenant sees another's.
    """
    double, made, telling = service(monkeypatch)
    plan = planned(SETTINGS, 60)
    with double:
        memory = made()
        assert claims_concurrency(memory)
        with lives.life(memory, tmp_path):
            if faulty:
                double.faults += [
                    Fault(telling, 429, {"retry-after": "1"}, times=3),
                    Fault(telling, 500, times=3),
                    Fault(telling, 500, done=True, times=3),
                    Fault(telling, cut=True, done=True, times=2),
                ]
            trace = apply(memory, plan, limit=20, threads=8, patience_s=20)
        found = judge(plan, trace, copies=1)
    assert not double.refused
    assert not found.unknown
    ended = [done.type for done in trace.done if done.operation.kind == "write"]
    assert ended.count("info") == (8 if faulty else 0)
    assert ended.count("fail") == 0
    wrong = {name: n for name, n in found.counts.items() if n and name != "superseded-active"}
    assert wrong == {}, found.examples
    assert found.opportunities["C1-quiet"] > 10
