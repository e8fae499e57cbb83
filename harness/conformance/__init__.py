"""The contract of an adapter as checks that any memory can be put to, in and outside of pytest.

```python
for check in CHECKS.values():
    put(check, MyMemory, Path("scratch") / check.name)   # raises Broken or NotApplicable
```
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from steeltrap.harness.conformance import abilities, asking, lives
from steeltrap.harness.conformance.life import Broken, Make, NotApplicable, Remark

__all__ = ["CHECKS", "Broken", "Check", "Make", "NotApplicable", "Remark", "put"]


class Check(NamedTuple):
    """One rule of the contract."""

    name: str
    rule: str
    """In one sentence."""
    run: Callable[[Make, Path], None]


CHECKS: Final = {
    check.name: check
    for module in (lives, asking, abilities)
    for check in (
        Check(run.__name__.replace("_", "-"), str(run.__doc__).split("\n", 1)[0], run)
        for run in module.CHECKS
    )
}
"""Every check by its name, in the order in which a maker would look at them."""


def put(check: Check, make: Make, folder: Path) -> None:
    """Put a memory to a check.

    Args:
        check: one of `CHECKS`.
        make: gives a new memory, not yet opened; is called more than once.
        folder: of this check alone, and new; the memory's files go below it.

    Raises:
        Broken: the memory does not keep to the contract; the message says what happened, what
            is due and what to do. `Remark` where that is allowed, and worth knowing.
        NotApplicable: the memory has nothing that the check could look at.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        check.run(make, folder)
    except (Broken, NotApplicable, KeyboardInterrupt):
        raise
    except BaseException as error:  # also SystemExit, and pytest's skip: no pass for either
        raise Broken(
            f"{type(error).__name__}: {error}",
            check.rule,
            "look at the line that raised it",
        ) from error
