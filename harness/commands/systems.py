"""`steeltrap systems`: what can be run, where it runs, and whether it is installed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steeltrap.harness import environments
from steeltrap.harness.environments import EnvironmentFault, EnvironmentMissing
from steeltrap.harness.settings import System

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["doctor", "install", "listing"]


def listing(systems: Sequence[System], out: Console) -> None:
    """Print a line for each system: name, version, where it runs, what it is."""
    rows = [(one.name, _version(one), _where(one), one.about) for one in systems]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        out.print("  ".join([*cells, row[3]]), markup=False, highlight=False, soft_wrap=True)


def install(names: Sequence[str], systems: Sequence[System], out: Console) -> bool:
    """Install what systems need, one after another; says whether all is there.

    Args:
        names: of systems, or of environments.
        systems: all that there are.
        out: gets a line or two for each; uv's own progress goes to standard error.
    """
    done = True
    for environment in dict.fromkeys(_environment(name, systems) or name for name in names):
        if any(one.name == environment and not one.environment for one in systems):
            _say(out, f"{environment}: runs in this environment; nothing to install")
            continue
        try:
            environments.install(environment, functools.partial(_say, out))
        except EnvironmentFault as fault:
            _say(out, str(fault))
            done = False
    return done


def doctor(
    system: System, out: Console, *, node: Mapping[str, Any], passes: Sequence[str] = ()
) -> bool:
    """Look at a system's environment and at the system in it; says whether all is in order.

    Args:
        system: what is looked at.
        out: gets a line for each check.
        node: the settings of its adapter.
        passes: names of environment variables that it gets.
    """
    if not system.environment:
        _say(out, f"{system.name}: runs in this environment; nothing to look at")
        return True
    fine = True
    checks = environments.doctor(
        system.environment, node=node, packages=system.packages, passes=passes
    )
    for check in checks:
        fine &= check.ok
        _say(out, f"{'ok  ' if check.ok else 'FAIL'}  {check.what}: {check.words}")
    return fine


def _say(out: Console, line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _environment(name: str, systems: Sequence[System]) -> str:
    return next((one.environment for one in systems if one.name == name), "")


def _where(system: System) -> str:
    if not system.environment:
        return "in process"
    try:
        environments.find(system.environment)
    except EnvironmentMissing:
        return "own environment, not installed"
    except EnvironmentFault:
        return "own environment, unknown"
    return "own environment"


def _version(system: System) -> str:
    """The version that is pinned of the package that a system is."""
    if not system.environment or not system.packages:
        return ""
    try:
        return " or ".join(environments.pins(system.environment).get(system.packages[0], []))
    except EnvironmentFault:
        return ""
