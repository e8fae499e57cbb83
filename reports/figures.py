"""Figures of a comparison, made from stored records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import CONDITIONS
from steeltrap.reports.facts import distinct
from steeltrap.reports.tables import Grid, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curves", "curves", "draw", "table"]

DIALS: Final = ("missed", "wrong_host", "overlooked", "invented")
_LABELS: Final = {
    "missed": "share of facts missed",
    "wrong_host": "share of facts put to another topic",
    "overlooked": "share of contradictions overlooked",
    "invented": "facts invented for each that was told",
}
_FEWEST: Final = 3
"""Points that make a curve."""


class Curves(NamedTuple):
    """Rates of several systems against one dial of the ideal model."""

    dial: str
    shares: list[float]
    rates: dict[str, dict[str, list[float | None]]]
    """What is measured -> system -> a rate for each share; None where nothing was observed."""


def curves(records: Sequence[Record]) -> Curves | None:
    """The rates against the one dial that differs between records; None where none or several do."""
    ideal = [record for record in records if record.spec.model.get("name") == "ideal"]
    turned = [dial for dial in DIALS if len(_values(ideal, dial)) >= _FEWEST]
    if len(turned) != 1 or any(len(_values(ideal, d)) > 1 for d in DIALS if d not in turned):
        return None
    dial = turned[0]
    shares = _values(ideal, dial)
    points: dict[tuple[str, float], list[Record]] = {}
    for record in ideal:
        points.setdefault((_system(record, dial), record.spec.model[dial]), []).append(record)
    systems = distinct(system for system, _ in points)
    rates = {
        what: {system: [rate(points.get((system, s), [])) for s in shares] for system in systems}
        for what, rate in _MEASURES.items()
    }
    return Curves(dial, shares, rates)


def table(found: Curves) -> Grid:
    """The same numbers in words."""
    rows = [
        [what, system, *("-" if rate is None else percent(rate) for rate in rates)]
        for what, systems in found.rates.items()
        for system, rates in systems.items()
    ]
    header = ["", "system", *(f"{share:g}" for share in found.shares)]
    return Grid(f"Against the {_LABELS[found.dial]}", header, rows, [])


def draw(found: Curves, path: Path) -> None:
    """Draw the curves, a panel for each measure, as an SVG that is the same for the same records."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "steeltrap", "font.size": 8}):
        figure = Figure(figsize=(2.1 * len(found.rates), 2.3), layout="constrained")
        for axes, (what, systems) in zip(
            figure.subplots(1, len(found.rates), squeeze=False)[0], found.rates.items(), strict=True
        ):
            _panel(axes, what, systems, found.shares)
        figure.supxlabel(_LABELS[found.dial])
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


_MARKERS: Final = "osD^vPX*"


def _panel(
    axes: Axes, what: str, systems: dict[str, list[float | None]], shares: list[float]
) -> None:
    for marker, (system, rates) in zip(_MARKERS * len(systems), systems.items(), strict=False):
        seen = [(share, 100 * rate) for share, rate in zip(shares, rates, strict=True) if rate is not None]  # fmt: skip
        axes.plot(*zip(*seen, strict=True) if seen else ((), ()), marker=marker, ms=3.5, lw=1.2, label=system)  # fmt: skip
    axes.set_title(f"{what}, %", fontsize=8)
    axes.set_ylim(0, None if what != "recall" else 103)
    axes.spines[["top", "right"]].set_visible(False)


# ---------------------------------------------------------------- numbers


def _values(records: Sequence[Record], dial: str) -> list[float]:
    return sorted({record.spec.model.get(dial, 0.0) for record in records})


def _system(record: Record, dial: str) -> str:
    """The system's name without the setting of the dial."""
    parts = record.spec.system.split(" ")
    return " ".join(part for part in parts if not part.startswith(f"model.{dial}="))


def _rate(condition: str) -> Callable[[Sequence[Record]], float | None]:
    """Violations over opportunities, pooled over seeds."""

    def rate(records: Sequence[Record]) -> float | None:
        verdicts = [record.outcome.verdicts[condition] for record in records]
        opportunities = sum(verdict.opportunities for verdict in verdicts)
        violations = sum(verdict.violations for verdict in verdicts)
        return violations / opportunities if opportunities else None

    return rate


def _recall(records: Sequence[Record]) -> float | None:
    found = [r.outcome.recall for r in records if r.outcome.recall is not None]
    return sum(found) / len(found) if found else None


_MEASURES: Final[dict[str, Callable[[Sequence[Record]], float | None]]] = {
    **{condition: _rate(condition) for condition in CONDITIONS if condition != "C6"},
    "recall": _recall,
}
