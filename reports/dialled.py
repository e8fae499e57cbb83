"""Runs along one dial of the ideal model: what its table and its figure are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from steeltrap.harness.record import Record
from steeltrap.reports.numbers import once

__all__ = ["DIALS", "Curves", "along_a_dial"]

DIALS: Final = {
    "missed": "share of facts missed",
    "wrong_host": "share of facts put to another topic",
    "overlooked": "share of contradictions overlooked",
    "invented": "facts invented for each that was told",
}
"""Each dial in words."""
_FEWEST: Final = 3
"""Points that make a curve."""


class Curves(NamedTuple):
    """Records of several systems along one dial."""

    dial: str
    shares: list[float]
    systems: dict[str, dict[float, list[Record]]]
    """System, without the setting of the dial -> share -> a record a seed."""

    def at(self, system: str, share: float) -> list[Record]:
        """The records of one point; one history under two names counts once."""
        return once(self.systems[system].get(share, []))


def along_a_dial(records: Sequence[Record]) -> Curves | None:
    """The records along the one dial that differs between them; None where none or several do."""
    ideal = [record for record in records if record.spec.model.get("name") == "ideal"]
    values = {dial: sorted({_share(record, dial) for record in ideal}) for dial in DIALS}
    turned = [dial for dial, found in values.items() if len(found) >= _FEWEST]
    if len(turned) != 1 or any(len(values[dial]) > 1 for dial in DIALS if dial not in turned):
        return None
    (dial,) = turned
    systems: dict[str, dict[float, list[Record]]] = {}
    for record in ideal:
        own = systems.setdefault(_system(record, dial), {})
        own.setdefault(_share(record, dial), []).append(record)
    return Curves(dial, values[dial], systems)


def _share(record: Record, dial: str) -> float:
    return float(record.spec.model.get(dial, 0.0))


def _system(record: Record, dial: str) -> str:
    """The system's name without the setting of the dial."""
    parts = record.spec.system.split(" ")
    return " ".join(part for part in parts if not part.startswith(f"model.{dial}="))
