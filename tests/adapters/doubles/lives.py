"""Lives of hosted systems in workers, against doubles of their services."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness import environments
from steeltrap.harness.history import Event
from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import Query, Subject, Utterance
from steeltrap.harness.remote import Remote
from steeltrap.harness.script import Script, Step

QUICK = {"poll_s": 0.01, "settle_s": 1.5, "patience_s": 3.0, "timeout_s": 1.0}
"""Settings with which a test does not wait for long."""


def python(name: str) -> Path:
    """The Python of a system's environment; the test is skipped where it is not installed."""
    try:
        return environments.find(name)
    except environments.EnvironmentMissing as missing:
        pytest.skip(str(missing))


def remote(
    name: str, target: str, variable: str, url: str, *, threads: int = 1, **settings: Any
) -> Remote:
    """A system in a worker, not yet opened."""
    node = {"_target_": target, "base_url": url, **QUICK, **settings}
    return Remote(
        node, python=python(name), passes=(variable,), limits=Limits(step_s=60), threads=threads
    )


@contextmanager
def life(made: Remote, folder: Path) -> Iterator[Remote]:
    """A system from opening to closing."""
    made.open(folder)
    try:
        yield made
    finally:
        made.close()


def nobody() -> str:
    """An address on loopback at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def turn(
    number: int, text: str, tenant: str, *, session: str = "s1", role: str = "user"
) -> Utterance:
    at = f"2026-01-{1 + number // 24:02d}T{number % 24:02d}:00"
    return Utterance(f"t{number}", at, tenant, session, role, text)


def query(text: str, tenant: str, limit: int = 10) -> Query:
    return Query("q1", "2026-03-01T12:00", tenant, text, limit)


def subject(topic: str, tenant: str) -> Subject:
    return Subject(tenant, topic, "deadline", f"What is the deadline of {topic}?")


def tell(memory: Remote, tenant: str, *texts: str) -> None:
    """Say some sentences, an hour apart, and wait until they have been worked through."""
    for number, text in enumerate(texts):
        memory.ingest(turn(number, text, tenant))
    memory.settle()


def driven(memory: Remote, script: Script, history: Path) -> list[str]:
    """What went wrong when a memory was driven through a script."""
    from steeltrap.harness.drive import drive

    wrong: list[str] = []

    def look(step: Step, event: Event) -> None:
        if event.type != "ok":
            wrong.append(f"{event.i} {type(step).__name__}: {event.type}: {event.error}")

    drive(memory, script, history, limit=20, on_event=look)
    return wrong
