"""Mutants: the ideal memory with exactly one defect each.

Each declares the violations that its defect must raise on the families that show it, all of
them and no other. A check that no mutant needs has not shown that it works.
"""

from __future__ import annotations

from steeltrap.adapters.mutants import (
    adaptation,
    beyond,
    bound,
    dependency,
    erased,
    leaks,
    provenance,
    reading,
    state,
)
from steeltrap.adapters.mutants.base import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS: dict[str, type[Mutant]] = {
    cls.name: cls
    for module in (reading, state, dependency, provenance, bound, adaptation, beyond, leaks, erased)
    for cls in vars(module).values()
    if isinstance(cls, type)
    and issubclass(cls, Mutant)
    and cls.__module__ == module.__name__
    and cls.name
}
"""Every mutant by name, in the order of the conditions that they break."""
