"""How numbers are said in a table."""

from __future__ import annotations

from steeltrap.harness.stats import Interval
from steeltrap.reports.table import Numbers

__all__ = ["counts", "number", "of", "percent", "share", "size", "span", "spans", "spelled"]


def spelled(text: str) -> str:
    """Text of which all can be seen: what does not print, as what commands a terminal, is spelled
    out; lines stay lines."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def percent(share: float) -> str:
    """A share in percent; what is not nought or all is never written so."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{100 * share:.1f}%"


def span(interval: Interval | None) -> dict[str, float | None]:
    """An interval as numbers: `low` and `high`."""
    low, high = interval or (None, None)
    return {"low": low, "high": high}


def spans(row: Numbers) -> list[str]:
    """An interval in percent; nothing for one seed, or where all agree."""
    if row["low"] is None or row["low"] == row["high"]:
        return []
    return [f"{100 * row['low']:.1f}–{100 * row['high']:.1f}"]


def of(violations: int, opportunities: int, *, blocked: bool = False) -> dict[str, object]:
    """Counts as numbers, with the rate where there was an opportunity."""
    return {
        "rate": violations / opportunities if opportunities else None,
        "violations": violations,
        "opportunities": opportunities,
        "observable": bool(opportunities) or not blocked,
    }


def counts(row: Numbers) -> str:
    """Violations over opportunities; `-` where nothing was put to the test."""
    if row["opportunities"]:
        return f"{row['violations']}/{row['opportunities']}"
    return "-" if row["observable"] else "not obs."


def number(value: float | None) -> str:
    """With two digits; nothing where it is not known."""
    return "" if value is None else f"{value:.2f}"


def share(value: float | None) -> str:
    """In percent; nothing where it is not known."""
    return "" if value is None else percent(value)


def size(value: float) -> str:
    """A size of any magnitude, three digits of it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
