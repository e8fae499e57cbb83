"""What a system may take: time for a step and for a run, memory, and how often it is started again."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

__all__ = ["HUNG_S", "START_S", "Limits", "amount"]

HUNG_S: Final = 1800.0
"""An operation of a worker that gave no answer for so long is taken for hung, where nothing else is
said."""
START_S: Final = 600.0
"""A worker that takes longer to start, and to open its memory, is taken for hung. It loads what its
system is made of then, so that a limit of a step, which may be short, does not apply."""

_Some = Annotated[float, msgspec.Meta(gt=0)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one system in one run.

    A system in this process cannot be stopped: one that is given a limit of a step or of memory
    runs in a worker.
    """

    step_s: _Some | None = None
    """An operation that gave no answer for so long is taken for hung; None: `HUNG_S`."""
    memory_mb: _Some | None = None
    """Resident memory of all its processes together, in 10**6 bytes."""
    answer_mb: _Some = 64.0
    """What a worker may answer at once, in 10**6 bytes: more is not taken in."""
    run_s: _Some | None = None
    """A run whose operations took so long ends there, and is scored as far as it came."""
    restarts: Annotated[int, msgspec.Meta(ge=0)] = 3
    """How often it may be started again in one run."""

    @property
    def apart(self) -> bool:
        """Whether they can only be kept in a worker."""
        return self.step_s is not None or self.memory_mb is not None


def amount(number: float) -> str:
    """A number as people read it: `1 234.5`."""
    return f"{number:,.10g}".replace(",", " ")
