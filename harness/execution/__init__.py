"""Where the cells of a sweep run: in processes of this machine, on Ray, or as jobs of Slurm.

A cell owns its folder and nothing else, so where it runs makes no difference to what it finds. An
execution gets jobs, and gives each with what became of it, in the order in which they end. None of
them knows a cell's content; all of them call `apart`, and the store keeps a finished cell from
being run twice and lets a half-finished one go on.
"""

from steeltrap.harness.execution.cells import Failed, Ran, RunOne
from steeltrap.harness.execution.sweep import sweep

__all__ = ["Failed", "Ran", "RunOne", "sweep"]
