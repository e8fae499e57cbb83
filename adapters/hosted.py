"""What adapters of hosted services share: what an answer means, patience, and cleaning up."""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from time import monotonic, sleep
from typing import Any, ClassVar, Generic, TypeVar

from steeltrap.adapters.crowd import Turnstiles
from steeltrap.harness.memory import MemoryFault

__all__ = [
    "Busy",
    "Guests",
    "Hosted",
    "Missing",
    "Names",
    "Pause",
    "Unsure",
    "ask",
    "await_all",
    "instant",
    "key_of",
    "minute",
    "steady",
    "verdict",
]

T = TypeVar("T")
C = TypeVar("C")
U = TypeVar("U")


class Missing(MemoryFault):
    """The service does not know what was asked for."""


class Busy(MemoryFault):
    """The service was asked too often, and did nothing."""

    def __init__(self, words: str, wait_s: float | None) -> None:
        super().__init__(words)
        self.wait_s = wait_s
        """How long it wants to be left alone; None: it does not say."""


class Unsure(RuntimeError):
    """Nobody knows whether the service did what was asked of it."""


def key_of(service: str, variable: str) -> str:
    """The key of a service from the environment.

    Raises:
        MemoryFault: there is none.
    """
    key = os.environ.get(variable, "").strip()
    if not key:
        raise MemoryFault(f"{service}: {variable} is not set; put a key of the service there")
    return key


def verdict(service: str, status: int, words: str, wait_s: float | None = None) -> Exception:
    """What an HTTP status says of the deed that was asked for.

    Args:
        service: whose answer it is.
        status: 429 and other 4xx: certainly not done; 408, 5xx and a 2xx that cannot be read: unknown.
        words: the service's own, or what is wrong with its answer.
        wait_s: what it says about when to come again.
    """
    said = f"{service}: {status}: {words}"
    if status == 429:
        return Busy(said, wait_s)
    if status == 404:
        return Missing(said)
    if 400 <= status < 500 and status != 408:
        return MemoryFault(said)
    return Unsure(said)


class Pause:
    """Waits that double, within a limit, by a clock that nobody can set.

    Args:
        limit_s: of all waits together, with what happens between them.
        first_s: the first one.
        longest_s: they grow no longer than this.
    """

    def __init__(self, limit_s: float, first_s: float, longest_s: float) -> None:
        self._end = monotonic() + limit_s
        self._first_s = self._next_s = first_s
        self._longest_s = longest_s

    def restart(self) -> None:
        """Let the next wait be as short as the first; the limit stays."""
        self._next_s = self._first_s

    def take(self, wished_s: float | None = None) -> bool:
        """Wait, for as long as is wished; False where the limit does not allow it."""
        left_s = self._end - monotonic()
        wait_s = min(self._next_s, left_s) if wished_s is None else wished_s
        if left_s <= 0 or wait_s > left_s:
            return False
        sleep(wait_s)
        self._next_s = min(2 * self._next_s, self._longest_s)
        return True


def ask(call: Callable[[], T], read: Callable[[Exception], Exception], patience_s: float) -> T:
    """Call a service, again where it was too busy, but never where it may have acted.

    Args:
        call: asks once.
        read: what an exception of the client means: `Busy`, `Missing`, another `MemoryFault`
            (nothing was done), `Unsure`, or the exception itself.
        patience_s: how long to go on asking a busy service.

    Raises:
        MemoryFault: nothing was done.
        Unsure: it is not known.
    """
    pause = Pause(patience_s, first_s=1.0, longest_s=60.0)
    while True:
        try:
            return call()
        except Exception as error:
            meant = read(error)
            if isinstance(meant, Busy) and pause.take(meant.wait_s):
                continue
            if meant is error:
                raise
            raise meant from error


def await_all(
    service: str,
    jobs: dict[str, str],
    look: Callable[[str], str | None],
    *,
    limit_s: float,
    first_s: float,
) -> None:
    """Wait until all jobs have ended, the oldest first, and forget them.

    Args:
        service: whose jobs they are.
        jobs: what each is, by its id; empty afterwards, also after a failure.
        look: asks for a job's state: None: goes on; empty: ended well; else what became of it.
        limit_s: how long to wait at most for all of them.
        first_s: the first wait for each; they double up to 10 s.

    Raises:
        Unsure: some failed or never ended; each is named.
    """
    problems = []
    pause = Pause(limit_s, first_s, 10.0)
    for job, what in list(jobs.items()):
        state = _look(look, job)
        while state is None and pause.take():
            state = _look(look, job)
        if state is None:
            state = f"did not end within {limit_s:g} s"
        jobs.pop(job, None)  # who else waits for it may have seen its end
        pause.restart()
        if state:
            problems.append(f"{what} ({job}) {state}")
    if problems:
        raise Unsure(f"{service}: " + "; ".join(problems))


def _look(look: Callable[[str], str | None], job: str) -> str | None:
    try:
        return look(job)
    except MemoryFault as fault:
        return f"could not be asked for: {fault}"
    except Unsure:
        return None  # asking again does no harm


class Guests:
    """Users that a run made at a service, and has to take away again.

    Their names stand in a file before they are made, so that a run that was killed is cleaned up
    by the next one in its folder. Names are unique to a run: two runs never meet.

    Args:
        path: the file.
        remove: takes one away; a user that is not there is no error.
    """

    def __init__(self, path: Path, remove: Callable[[str], None]) -> None:
        self._path = path
        self._remove = remove
        self._run = secrets.token_hex(6)
        self._made = 0
        self._lock = threading.Lock()

    def name(self, tenant: str) -> str:
        """A new name for a tenant's user: letters, digits and hyphens."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", tenant)[:40].strip("-")
        with self._lock:
            self._made += 1
            name = f"steeltrap-{self._run}-{self._made}-{plain}".rstrip("-")
            with self._path.open("a", encoding="utf-8") as file:
                file.write(name + "\n")
        return name

    def clear(self) -> None:
        """Take all away, as far as that is possible; who stays is named in the log and the file."""
        if not self._path.exists():
            return
        left = []
        for name in self._path.read_text(encoding="utf-8").splitlines():
            try:
                self._remove(name)
            except Exception as error:
                left.append(name)
                logging.getLogger(__name__).warning("the user %s stays: %s", name, error)
        if left:
            self._path.write_text("".join(f"{name}\n" for name in left), encoding="utf-8")
        else:
            self._path.unlink()


class Names:
    """Our names of a service's things, in order of first sight: its own are random."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._lock = threading.Lock()

    def of(self, theirs: str, kind: str) -> str:
        """Our name: what kind of thing it is, and a number."""
        with self._lock:
            return self._given.setdefault(theirs, f"{kind}{len(self._given)}")


class Hosted(ABC, Generic[C, U]):
    """The life of an adapter of a service: its client, its users, its work in the background.

    `open` makes `_client` and `_guests`; the rest is the same for all.

    Args:
        base_url: where the service is; None: its maker's address.
        timeout_s: of one call.
        patience_s: how long to go on asking when the service says that it is asked too often.
        settle_s: how long `settle` waits at most; a worker has to be given more time than that.
        poll_s: the first wait between two looks at it.
    """

    name: ClassVar[str]
    """Of the system, for messages."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        timeout_s: float = 60.0,
        patience_s: float = 300.0,
        settle_s: float = 1800.0,
        poll_s: float = 0.5,
    ) -> None:
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._settle_s = settle_s
        self._poll_s = poll_s
        self._client: C | None = None
        self._guests: Guests | None = None
        self._users: dict[str, U] = {}
        """By tenant."""
        self._turnstiles = Turnstiles()
        """A tenant's user is made once, whoever asks for it first."""
        self._jobs: dict[str, str] = {}
        """What the service still works at: what it is, by its id."""

    def close(self) -> None:
        """Take the users away that were made, as far as that is possible."""
        if self._guests is not None:
            self._guests.clear()
        if self._client is not None:
            self._release(self._client)
        self._client = self._guests = None
        self._users = {}
        self._jobs = {}

    def settle(self) -> None:
        """Wait until all that was taken in or deleted since has been worked through.

        Raises:
            Unsure: a part of it failed or did not end; it is named once, and then given up.
        """
        self._opened()
        await_all(self.name, self._jobs, self._look, limit_s=self._settle_s, first_s=self._poll_s)

    def _release(self, client: C) -> None:
        """Close what a client holds; nothing, where it needs no closing."""

    @abstractmethod
    def _look(self, job: str) -> str | None:
        """A job's state; see `await_all`."""

    @abstractmethod
    def _meant(self, error: Exception) -> Exception:
        """What an exception of the client says of the deed that was asked for; see `ask`."""

    def _ask(self, call: Callable[[C], T]) -> T:
        client = self._opened()
        return ask(lambda: call(client), self._meant, self._patience_s)

    def _opened(self) -> C:
        if self._client is None:
            raise MemoryFault(
                f"{self.name}: not open; call open(folder) first, and nothing after close()"
            )
        return self._client


def steady(
    found: Iterable[T], score: Callable[[T], float | None], age: Callable[[T], Any]
) -> list[T]:
    """What was found in the service's order; of equal scores that stand together the oldest first.

    Services put equals in order by ids that are random.
    """
    runs = groupby(found, key=score)
    return [one for told, run in runs for one in (run if told is None else sorted(run, key=age))]


def minute(spelled: str | None) -> str | None:
    """A time of a service as scripts spell it; None stays None."""
    return None if spelled is None else f"{instant(spelled):%Y-%m-%dT%H:%M}"


def instant(spelled: str) -> datetime:
    """A time as a service or a script spells it, in UTC.

    Raises:
        Unsure: it is no time.
    """
    try:
        at = datetime.fromisoformat(spelled)
    except ValueError:
        raise Unsure(f"'{spelled}' is no time in ISO 8601") from None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
