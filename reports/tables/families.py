"""Families of scripts by system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import BEYOND, CONDITION_OF, CONDITIONS
from steeltrap.reports.facts import distinct
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed

__all__ = ["families"]


def families(records: Sequence[Record]) -> Table | None:
    """Families by systems: what came of the conditions that a family tests.

    None for a script of one family.

    Args:
        records: of one script.
    """
    systems = by_system(records)
    found = {system: _pooled(own) for system, own in systems.items()}
    order = distinct(family for r in records for family in r.outcome.by_family)
    tested = {family: _tested(family, found.values()) for family in order}
    rows = {family: keys for family, keys in tested.items() if keys}
    if len(rows) < 2:
        return None
    numbers = [
        {"family": family or "twins", "system": system, **_came_of(found[system].get(family, {}), keys)}
        for family, keys in rows.items()
        for system in systems
    ]  # fmt: skip
    return crossed(
        "families", "By family", numbers, _said,
        down={"family": "family"}, across="system", columns=[*systems],
        said={family or "twins": f"{family or 'twins'}\n{_labels(keys)}" for family, keys in rows.items()},
        notes=[
            "Violations/opportunities over the conditions below the family's name, and which of them "
            "were violated.",
            "unknown: one of them was never put to the test; missing: values that are set and were "
            "not answered.",
        ],
    )  # fmt: skip


def _pooled(records: Sequence[Record]) -> dict[str, dict[str, list[int]]]:
    """`Outcome.by_family` of several records together."""
    pooled: dict[str, dict[str, list[int]]] = {}
    for record in records:
        for family, found in record.outcome.by_family.items():
            rows = pooled.setdefault(family, {})
            for key, (part, whole) in found.items():
                before = rows.get(key, [0, 0])
                rows[key] = [before[0] + part, before[1] + whole]
    return pooled


def _tested(family: str, found: Iterable[dict[str, dict[str, list[int]]]]) -> list[str]:
    """The conditions and names of a family that any system was put to the test in."""
    rows = [(key, row[1]) for system in found for key, row in system.get(family, {}).items()]
    return distinct(key for key, whole in rows if whole and key != "missing")


def _labels(keys: Sequence[str]) -> str:
    """Conditions in order; names by their conditions, but those beyond the six as they are."""
    named = (key if key in CONDITIONS else CONDITION_OF.get(key, key) for key in keys)
    beyond = zip(keys, named, strict=True)
    return " ".join(distinct(key if name == BEYOND else name for key, name in beyond))


def _came_of(found: dict[str, list[int]], keys: Sequence[str]) -> Numbers:
    """One cell: how often the family's conditions were violated, and which of them."""
    rows = {key: found.get(key, [0, 0]) for key in keys}
    # A name stands beside its condition only where the condition is not counted as a whole.
    rows = {key: row for key, row in rows.items() if CONDITION_OF.get(key) not in rows}
    violated = [key for key, row in rows.items() if row[0]]
    untested = "held" if all(row[1] for row in rows.values()) else "unknown"
    return {
        "tested": _labels(keys),
        "validity": "violated" if violated else untested,
        "violated": _labels(violated),
        "violations": sum(row[0] for row in rows.values()),
        "opportunities": sum(row[1] for row in rows.values()),
        "missing": found.get("missing", [0])[0],
    }


def _said(row: Numbers) -> str:
    lines = [row["violated"] or row["validity"], f"{row['violations']}/{row['opportunities']}"]
    if row["missing"]:
        lines.append(f"{row['missing']} missing")
    return "\n".join(lines)
