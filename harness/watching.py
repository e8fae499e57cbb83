"""Watches from outside how much memory a process and all that it has started hold."""

from __future__ import annotations

import contextlib
import os
import threading
from importlib import import_module
from subprocess import Popen
from typing import Any, Final

from steeltrap.harness.limits import amount

__all__ = ["Watch"]

_EVERY_S: Final = 0.2
"""Looking takes some 2 ms, more where many processes run."""


class Watch:
    """Looks at a steady rate, from its making to `stop`, and kills what holds more than it may.

    Pages that several of the processes share count once. A process that has left both the group
    and the descent of the first one is not seen.

    Args:
        process: leads a process group of its own; not reaped before `stop`.
        limit_mb: in 10**6 bytes; None: nothing is watched.
    """

    def __init__(self, process: Popen[bytes], limit_mb: float | None) -> None:
        self.broken = ""
        """What it used and may not, once it was killed for that."""
        self._pid = process.pid
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        if limit_mb is not None:
            psutil: Any = import_module("psutil")
            self._thread = threading.Thread(
                target=self._look, args=(psutil, limit_mb), name="memory watch", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Look no more; when this returns nobody is killed any more."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _look(self, psutil: Any, limit_mb: float) -> None:
        while not self._stopped.wait(_EVERY_S):
            own = _family(psutil, self._pid)
            used_mb = _used_mb(psutil, own, "rss")
            if used_mb > limit_mb:  # what is shared was counted for each; counting it once is slow
                used_mb = _used_mb(psutil, own, "pss")
            if used_mb > limit_mb and not self._stopped.is_set():
                self.broken = (
                    f"used {amount(round(used_mb))} MB, more than limits.memory_mb="
                    f"{amount(limit_mb)}, and was stopped"
                )
                for one in own:
                    with contextlib.suppress(psutil.Error):
                        one.kill()
                return


def _family(psutil: Any, pid: int) -> list[Any]:
    """A process, its descendants, and the members of its group, whose parents may have ended."""
    found: dict[int, Any] = {}
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(pid)
        found = {one.pid: one for one in (first, *first.children(recursive=True))}
    for other in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if other not in found and os.getpgid(other) == pid:
                found[other] = psutil.Process(other)
    return list(found.values())


def _used_mb(psutil: Any, processes: list[Any], what: str) -> float:
    """Resident memory; `pss`: where the system says which pages are shared, their parts of them."""
    total_bytes = 0
    for one in processes:
        with contextlib.suppress(psutil.Error):
            known = one.memory_info() if what == "rss" else one.memory_full_info()
            total_bytes += getattr(known, what, known.rss)
    return total_bytes / 1e6
