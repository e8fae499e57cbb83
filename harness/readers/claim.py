"""One thing that a served text says about one unit."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

__all__ = ["LONG_AGO", "Claim", "Meaning", "Stated"]

Meaning = Literal["states", "withdraws", "past", "echo", "rumour", "injected", "rule"]

LONG_AGO: Final = "0000"
"""When a value held of which it is only known that another came after it."""


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """One thing that an item says about one unit."""

    unit: str
    value: str | None
    meaning: Meaning
    """states: holds it for true; past: says that it held once; the rest as the sentence was meant."""
    at: str | None = None
    """Since when, by the system's own account."""
    closed: str | None = None
    """Until when, by the system's own mark."""
    until: str | None = None
    """Until when, by the sentence itself."""
    review: bool = False
    target: str | None = None
    """rule: the dependent unit."""
    disowns: str | None = None
    """The value that a correction declared to have never been true."""

    def open_at(self, at: str) -> bool:
        """Whether the item holds this for true at an instant."""
        return (
            self.meaning in ("states", "withdraws")
            and (self.closed is None or self.closed > at)
            and (self.until is None or self.until > at)
        )


class Stated(msgspec.Struct, array_like=True, gc=False):
    """What a plain sentence claims of a unit."""

    first: int
    """When it was first stated, among all that was."""
    last: int
    claim: Claim
    """As it was meant the last time."""

    def again(self, number: int, claim: Claim) -> None:
        """The same sentence is stated, or was stated, at another time."""
        if number >= self.last:
            self.last, self.claim = number, claim
        self.first = min(self.first, number)
