"""What a system may take: time for a step and for a run, memory, and how often it is started again."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["HUNG_S", "Limits"]

HUNG_S: Final = 1800.0
"""An operation of a worker that gave no answer for so long is taken for hung, where nothing else is
said."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one system in one run.

    A system in this process cannot be stopped: one that is given a limit of a step or of memory
    runs in a worker.
    """

    step_s: float | None = None
    """An operation that gave no answer for so long is taken for hung; None: `HUNG_S`."""
    memory_mb: float | None = None
    """Resident memory of all its processes together, in 10**6 bytes."""
    run_s: float | None = None
    """A run that took so long ends there, and is scored as far as it came."""
    restarts: int = 3
    """How often it may be started again in one run."""

    @property
    def apart(self) -> bool:
        """Whether they can only be kept in a worker."""
        return self.step_s is not None or self.memory_mb is not None
