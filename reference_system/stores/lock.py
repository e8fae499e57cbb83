"""One opener at a time: a lock file beside the store.

The lock belongs to the open file, so it is released when its holder closes it or dies, however it
dies, and a second object of the same process is kept out like another process. The lock file is
never removed: who removes it could let in two openers, each with a file of that name.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from steeltrap.reference_system.stores.base import StoreInUse

__all__ = ["Lock"]


class Lock:
    """Holds a store for one opener until `release`.

    Args:
        path: the store; its lock file is `<path>.lock`.

    Raises:
        StoreInUse: somebody else has it open.
    """

    def __init__(self, path: Path) -> None:
        beside = path.with_name(path.name + ".lock")
        self._file: int | None = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise StoreInUse(
                f"{path} is open already, here or in another process; one writes at a time: "
                f"close it there, or wait until it is closed"
            ) from None

    def release(self) -> None:
        """Let the next one in; a second call does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
