"""EverOS' own HTTP server, at the script's time; a program that is run by its path.

    ENVIRONMENT/bin/python -P .../adapters/everos/server.py

It is told where it stands by EverOS' environment variables, listens on a free port of loopback,
writes that port to standard output, and ends with its standard input. What is added to the package:

- the day under which an entry is filed is that of the last request's `X-Now`, not of the clock;
- ids that are drawn at random are counted, and what scores alike is ordered, so that two runs
  agree;
- `POST /idle` waits for the strategies that run in the background, `POST /indexed` for the index,
  as `everos cascade sync` does; each names what was given up.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import socket
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any

_now = datetime(2000, 1, 1, tzinfo=UTC)
_given_up: list[str] = []
_ALIKE_MAX = 1000
"""Results that are looked at, so that it is not by chance which of those alike are cut off."""


def _set_clock() -> None:
    """Put the script's time under what files entries; storage and schedules keep their clock."""
    dates: Any = import_module("everos.component.utils.datetime")
    dates.script_time = lambda: _now
    # Others have taken the function by name, so what it does is changed, not what it is.
    dates.get_now_with_timezone.__code__ = (lambda: script_time()).__code__  # type: ignore[name-defined]  # noqa: F821


def _read_milliseconds() -> None:
    """The package takes times before September 2001 for seconds, though it asks for milliseconds."""
    dates: Any = import_module("everos.component.utils.datetime")
    dates._MS_THRESHOLD = 0


def _count_ids() -> None:
    for name in ("everos.service._boundary", "everos.infra.persistence.sqlite.repos.cluster"):
        numbers = itertools.count(1)
        module: Any = import_module(name)
        module.uuid = SimpleNamespace(uuid4=functools.partial(_id, numbers))


def _id(numbers: itertools.count[int]) -> uuid.UUID:
    """The next number in the digits that the package keeps of an id."""
    return uuid.UUID(int=next(numbers) << 80)


def _order_equals() -> None:
    """What scores alike stands in the index as it happens to lie; here the lower id comes first."""
    recall: Any = import_module("everos.memory.search.recall.episode").EpisodeRecaller
    for name in ("sparse_recall", "dense_recall"):
        setattr(recall, name, _ordered(getattr(recall, name)))
    facts: Any = import_module("everos.memory.search.recall.atomic_fact").AtomicFactRecaller
    looked_up = facts.facts_for_episodes

    async def facts_for_episodes(self: Any, *args: Any, **more: Any) -> Any:
        found = await looked_up(self, *args, **more)
        return {episode: sorted(each, key=_rank) for episode, each in found.items()}

    facts.facts_for_episodes = facts_for_episodes


def _ordered(recall: Any) -> Any:
    async def ordered(self: Any, query: Any, where: Any, *, limit: int) -> Any:
        found = await recall(self, query, where, limit=max(limit, _ALIKE_MAX))
        return sorted(found, key=_rank)[:limit]

    return ordered


def _rank(one: Any) -> tuple[float, str]:
    return -round(one.score, 6), one.id


def _limit_retries() -> None:
    """How often a chat is tried again is nothing that the package can be told."""
    openai: Any = import_module("openai")
    retries = int(os.environ["STEELTRAP_RETRIES"])
    openai.AsyncOpenAI = functools.partial(openai.AsyncOpenAI, max_retries=retries)


def _share_words() -> None:
    """The word list of the keyword search is worked out once, not for each memory."""
    words: Any = import_module("jieba")
    words.dt.tmp_dir = os.environ["STEELTRAP_CACHE"]


def _application() -> Any:
    app = import_module("everos.entrypoints.api.app").create_app()
    engine = import_module("everos.service.memorize")._get_engine()
    engine.wait_for_event = functools.partial(engine.wait_for_event, poll_interval=0.01)
    engine.on_dead_letter(lambda run: _given_up.append(f"{run.strategy_name}: {run.error}"))
    app.add_api_route("/idle", functools.partial(_idle, engine), methods=["POST"])
    app.add_api_route("/indexed", functools.partial(_indexed, app), methods=["POST"])
    return app


async def _idle(engine: Any) -> dict[str, Any]:
    """Wait for the strategies that are at work."""
    idle = await engine.wait_idle(timeout=float(os.environ["STEELTRAP_PATIENCE_S"]))
    given_up, _given_up[:] = list(_given_up), []
    return {"done": idle, "given_up": given_up}


async def _indexed(app: Any) -> dict[str, Any]:
    """Have the index follow all files."""
    end = time.monotonic() + float(os.environ["STEELTRAP_PATIENCE_S"])
    cascade = app.state.lifespan_data["cascade"]
    cascade._worker._optimize_min_interval = 0.0  # by the clock otherwise, once a minute
    await cascade.sync_once()
    while (left := await cascade.queue_summary()).pending and time.monotonic() < end:
        await asyncio.sleep(0.01)
        await cascade.drain_once()
    failed = left.failed_permanent + left.failed_retryable
    return {"done": left.pending == 0, "given_up": [f"{failed} files"] if failed else []}


Receive = Callable[[], Awaitable[Any]]


def _timed(app: Any) -> Any:
    """Take the time from each request."""

    async def timed(scope: Any, receive: Receive, send: Any) -> None:
        global _now
        if told := dict(scope.get("headers", ())).get(b"x-now"):
            _now = datetime.fromisoformat(told.decode()).replace(tzinfo=UTC)
        await app(scope, receive, send)

    return timed


def _end_with_input(server: Any) -> None:
    while os.read(0, 1 << 16):
        pass
    server.should_exit = True


async def _serve(answers: int) -> None:
    uvicorn = import_module("uvicorn")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(_timed(_application()), log_config=None, lifespan="on"))
    threading.Thread(target=_end_with_input, args=(server,), daemon=True).start()
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        os.write(answers, b"%d\n" % listening.getsockname()[1])
    await serving


def main() -> None:
    """Serve until standard input ends; what is printed goes to standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    _limit_retries()
    _set_clock()
    _read_milliseconds()
    _count_ids()
    _share_words()
    _order_equals()
    logging = import_module("everos.core.observability.logging")
    logging.configure_logging(level="CRITICAL")
    asyncio.run(_serve(answers))


if __name__ == "__main__":
    main()
