"""The contract, put to every system that has a configuration: in this process, in a worker, hosted.

A new file in `configs/system` is tried here without another line. Systems in environments of their
own are tried where those are installed: by a few checks, and by all of them with `-m slow`; hosted
ones against a double of their service.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doubles import mem0_platform, mirix, zep

from steeltrap.harness.conformance import CHECKS, Broken, NotApplicable, put
from steeltrap.harness.conformance.said import SCRIPT
from steeltrap.harness.environments import EnvironmentMissing, find
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import Memory, Told
from steeltrap.harness.models import UsesModels
from steeltrap.harness.settings import Settings, cells

CONFIGURED = sorted(
    path.name.removesuffix(".yaml")
    for path in (importlib.resources.files("steeltrap.configs") / "system").iterdir()
    if path.name.endswith(".yaml")
)
NEED_MORE = {
    "command": "it is no memory but a way to start one",
    "ideal": "it is told the truth of a script",
    "gem-told": "it is told the ops of a script",
    "oracle-database": "it needs an Oracle database, which has no double",
}
"""Configurations of what no check can be put to."""
VARIANTS = {
    "flat, 40 turns": "system=flat system.window_turns=40",
    "flat, 20000 tokens": "system=flat system.window_tokens=20000",
    "vector, 40 turns": "system=vector system.capacity_turns=40",
    "vector-db, 40 entries": "system=vector-db system.capacity=40",
    "rdf, no marks": "system=rdf system.on_update=nothing",
    "summary, 10 tokens": "system=summary system.trigger_tokens=10 system.keep_tokens=2",
}
"""Settings that make another memory of a system."""
SYSTEMS = {name: f"system={name}" for name in CONFIGURED if name not in NEED_MORE} | VARIANTS

DOUBLES: dict[str, tuple[Callable[[], Any], dict[str, str]]] = {
    "zep": (zep.ZepDouble, {"ZEP_API_KEY": zep.KEY}),
    "mem0-platform": (mem0_platform.Mem0Double, {"MEM0_API_KEY": mem0_platform.KEY}),
    "mirix-client": (mirix.MirixDouble, {"MIRIX_API_KEY": mirix.KEY}),
}
"""Of hosted systems: a double of the service, and the variables that it wants."""
CHECKOUTS = {"memstate": Path(__file__).parent / "doubles" / "memstate"}
"""Of what lies in a checkout of a user: a double of one."""
FEW = (
    "begins-empty", "faults-while-not-open", "well-formed-replies", "nothing-found-is-empty",
    "keeps-tenants-apart", "erases-a-tenant",
)  # fmt: skip
"""Checks for which a worker is started in every run of the suite."""

FEWER = ("well-formed-replies", "keeps-tenants-apart", "erases-a-tenant")
"""The same where a system's own tests are many: its package takes seconds to start."""

ITS_OWN_BUDGET = "what it holds is its own budget, which Query.limit does not cut"
HISTORY_STAYS = "the package keeps the history of what it deletes"
KNOWN: dict[tuple[str, str], str] = {
    ("flat", "keeps-to-the-limit"): ITS_OWN_BUDGET,
    ("flat-window", "keeps-to-the-limit"): ITS_OWN_BUDGET,
    ("flat, 40 turns", "keeps-to-the-limit"): ITS_OWN_BUDGET,
    ("flat, 20000 tokens", "keeps-to-the-limit"): ITS_OWN_BUDGET,
    ("summary", "keeps-to-the-limit"): ITS_OWN_BUDGET,
    ("summary, 10 tokens", "keeps-to-the-limit"): ITS_OWN_BUDGET,
    ("mem0", "erases-a-tenant"): HISTORY_STAYS,
    ("mem0", "erases-a-subject"): HISTORY_STAYS,
    ("mem0-classic", "erases-a-tenant"): HISTORY_STAYS,
    ("mem0-classic", "erases-a-subject"): HISTORY_STAYS,
    ("mem0-classic-graph", "erases-a-tenant"): HISTORY_STAYS,
    ("mem0-classic-graph", "erases-a-subject"): HISTORY_STAYS,
    ("letta", "erases-a-subject"): "git keeps what was deleted from a file",
    (
        "mem0",
        "history-oldest-first",
    ): "it adds and closes nothing: both values stand in its history",
    (
        "memos-capped",
        "erases-what-never-was",
    ): "its scheduler pages at each question, so asking twice differs",
}
"""What a system does not keep to, and why it is left so."""


def _remote(name: str) -> bool:
    """Whether a system has an environment of its own, by its file alone: to compose them all takes
    longer than many a test."""
    text = (importlib.resources.files("steeltrap.configs") / "system" / f"{name}.yaml").read_text()
    others = re.findall(r"^  - ([a-z][\w-]*)$", text, re.MULTILINE)
    return "\nenvironment: " in text or any(map(_remote, others))


def _cases() -> Iterator[Any]:
    for name, asked in SYSTEMS.items():
        remote = name not in VARIANTS and _remote(name)
        quick = CHECKS if not remote else FEW if name in DOUBLES else FEWER
        for check in CHECKS:
            marks = [] if check in quick else [pytest.mark.slow]
            yield pytest.param(asked, check, id=f"{name}-{check}", marks=marks)


@functools.lru_cache(maxsize=2)
def _composed(*options: str) -> Settings:
    (settings,) = cells(options)
    return settings


NAMES = {asked: name for name, asked in SYSTEMS.items()}


@pytest.fixture(scope="module")
def gateways() -> Iterator[Callable[[str, Settings], Gateway | None]]:
    """An ideal model for each system, which lives as long as its checks."""
    with contextlib.ExitStack() as stack:
        made: dict[str, Gateway | None] = {}

        def of(name: str, settings: Settings) -> Gateway | None:
            if name not in made:
                made[name] = stack.enter_context(settings.gateway(SCRIPT))
            return made[name]

        yield of


@contextlib.contextmanager
def maker(settings: Settings, gateway: Gateway | None) -> Iterator[Callable[[], Memory]]:
    """Gives new memories of a system, connected to its model, and closed in the end."""
    with contextlib.ExitStack() as made:

        def make() -> Memory:
            memory = made.enter_context(contextlib.closing(settings.memory()))
            if gateway is not None and isinstance(memory, UsesModels):
                gateway.begin()
                memory.connect(gateway.models)
            return memory

        yield make


@pytest.mark.parametrize(("asked", "check"), list(_cases()))
def test_keeps_to_the_contract(
    asked: str,
    check: str,
    gateways: Callable[[str, Settings], Gateway | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each system passes each check that can be put to it, but for what is known and said."""
    name, options = NAMES[asked], asked.split()
    with contextlib.ExitStack() as stack:
        if name in DOUBLES:
            double, variables = DOUBLES[name]
            for key, value in variables.items():
                monkeypatch.setenv(key, value)
            options.append(f"system.base_url={stack.enter_context(double()).url}")
        if name in CHECKOUTS:
            options.append(f"system.checkout={CHECKOUTS[name]}")
        settings = _composed(*options)
        if settings.environment:
            try:
                find(settings.environment)
            except EnvironmentMissing as missing:
                pytest.skip(str(missing))
        make = stack.enter_context(maker(settings, gateways(name, settings)))
        broken = (name, check) in KNOWN
        with pytest.raises(Broken) if broken else contextlib.nullcontext():
            try:
                put(CHECKS[check], make, tmp_path)
            except NotApplicable as reason:
                pytest.skip(f"not applicable: {reason}")


@pytest.mark.parametrize("name", list(NEED_MORE))
def test_what_is_left_out_needs_more(name: str) -> None:
    """What is told a script is left out, and nothing else in this process."""
    if name not in ("command", "oracle-database"):
        (settings,) = cells([f"system={name}"])
        assert isinstance(settings.memory(), Told)
