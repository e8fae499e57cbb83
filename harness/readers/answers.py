"""The readers (benchmark contract, section 6).

`Oracle` never makes a reading mistake: it knows how each sentence of the script was meant, takes
the system's own marks and times into account, and where two claims stay equal it says so.
`Top1` takes the first item that speaks of the unit at its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from msgspec.structs import replace

from steeltrap.harness.readers.claim import LONG_AGO, Claim
from steeltrap.harness.script import Probe

__all__ = ["Answer", "Oracle", "Reader", "Top1"]

EVER_AFTER = "9999"
"""Later than any time of a script."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader makes of what was served."""

    kind: Literal["value", "unset", "review", "ambiguous", "missing"]
    """review: the value is marked as waiting for re-evaluation."""
    values: tuple[str, ...] = ()
    """The value; for ambiguous, all that stayed equal, in the order served."""

    @property
    def value(self) -> str | None:
        """The value answered, or None."""
        return self.values[0] if self.kind in ("value", "review") else None


MISSING = Answer("missing")


class Reader(Protocol):
    """Turns claims into an answer."""

    def read(self, probe: Probe, claims: Sequence[Claim]) -> Answer:
        """The answer to a probe of one unit.

        Args:
            probe: what was asked.
            claims: every claim served, in the order served.
        """


class Top1:
    """The first item that speaks of the unit is the answer, however it was meant."""

    def read(self, probe: Probe, claims: Sequence[Claim]) -> Answer:
        """See `Reader`."""
        for claim in claims:
            if claim.unit == probe.unit and claim.meaning != "rule":
                if claim.value is None:
                    return Answer("unset")
                return Answer("review" if claim.review else "value", (claim.value,))
        return MISSING


class Oracle:
    """Knows what every sentence of the script meant, and believes the system's marks and times."""

    def read(self, probe: Probe, claims: Sequence[Claim]) -> Answer:
        """See `Reader`."""
        about = [claim for claim in claims if claim.unit == probe.unit]
        disowned = {claim.disowns for claim in about if claim.disowns}
        about = [claim for claim in about if claim.value not in disowned or claim.value is None]
        match probe.ask:
            case "previous":
                return self._previous(about, probe.at)
            case "as-of":
                return self._as_of(about, probe.of or probe.at)
            case _:
                return self._current(about, probe.at)

    def _current(self, claims: list[Claim], at: str) -> Answer:
        held = [claim for claim in claims if claim.open_at(at)]
        if not held:
            said = any(claim.meaning in ("states", "withdraws") for claim in claims)
            return Answer("unset") if said else MISSING
        return _latest(held)

    def _previous(self, claims: list[Claim], at: str) -> Answer:
        """What held before the value that holds now; where nothing holds now, what held last."""
        told = [c for c in claims if c.meaning in ("states", "past") and c.value is not None]
        if not told:
            return MISSING
        told = _present_last(told)
        if all(claim.at for claim in told):
            ordered = _in_order(told)
            held = any(claim.open_at(at) for claim in told) and len(ordered) > 1
            return Answer("value", (ordered[-2] if held else ordered[-1],))
        closed = [claim for claim in told if claim.closed or claim.meaning == "past"]
        return _only(closed or told)

    def _as_of(self, claims: list[Claim], of: str) -> Answer:
        """What held at an instant in the past."""
        told = [c for c in claims if c.meaning in ("states", "past") and c.value is not None]
        if not told:
            return MISSING
        began = {claim.value for claim in told if claim.at}
        if all(claim.at or claim.value in began for claim in told):
            told = _present_last(told)
        if not all(claim.at for claim in told):
            return _only(told)
        dated = [claim for claim in told if claim.at != LONG_AGO]
        if not dated:
            return MISSING
        by_then = [c for c in dated if (c.at or "") <= of and (c.closed is None or c.closed > of)]
        return _latest(by_then) if by_then else Answer("unset")


def _present_last(claims: list[Claim]) -> list[Claim]:
    """One value without a time among others with theirs is what holds now, and so the latest."""
    undated = [claim for claim in claims if not claim.at]
    if not all(claim.meaning == "states" and not claim.closed for claim in undated):
        return claims
    if len({claim.value for claim in undated}) != 1 or len(undated) == len(claims):
        return claims
    return [claim if claim.at else replace(claim, at=EVER_AFTER) for claim in claims]


def _in_order(claims: list[Claim]) -> list[str]:
    """The values that held one after another, by the times given."""
    ordered: list[str] = []
    for claim in sorted(claims, key=lambda claim: claim.at or ""):
        if claim.value is not None and (not ordered or ordered[-1] != claim.value):
            ordered.append(claim.value)
    return ordered


def _latest(claims: list[Claim]) -> Answer:
    """The one value, or the latest by the times given; otherwise there is nothing to choose by."""
    if all(claim.at for claim in claims):
        last = max(claim.at or "" for claim in claims)
        claims = [claim for claim in claims if claim.at == last]
    return _only(claims)


def _only(claims: list[Claim]) -> Answer:
    values = tuple(dict.fromkeys(claim.value for claim in claims))
    if len(values) > 1:
        return Answer("ambiguous", tuple(value for value in values if value is not None))
    if values[0] is None:
        return Answer("unset")
    return Answer("review" if all(claim.review for claim in claims) else "value", (values[0],))
