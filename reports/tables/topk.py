"""Top-k recall beside prompt recall, by category, as the Oracle report has it (section 7.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steeltrap.harness.record import Evidence, Record
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed
from steeltrap.reports.tables.evidence import TOGETHER

__all__ = ["prompt_recall"]

_K: Final = 25
"""The largest k that is shown."""


def prompt_recall(records: Sequence[Record]) -> Table | None:
    """Recall among the first k items and with neighbours beside them; None where none were put."""
    rows = [
        (system, row)
        for system, own in by_system(records).items()
        for record in own
        for row in record.outcome.evidence
        if row.grain == "turn" and row.k and not (row.left_out or row.convention)
    ]
    if not any(row.window for _, row in rows):
        return None
    k = max((row.k for _, row in rows if row.k <= _K), default=min(row.k for _, row in rows))
    cells: dict[tuple[str, str, int], list[Evidence]] = {}
    for system, row in rows:
        if row.k == k:
            cells.setdefault((system, row.category, row.window), []).append(row)
    order = [system for system, _ in rows]
    keys = sorted(cells, key=lambda key: (order.index(key[0]), key[1] in TOGETHER, key))
    return crossed(
        "prompt-recall", f"Top-{k} recall and prompt recall", [_cell(*key, cells[key]) for key in keys],
        lambda row: f"{100 * row['recall']:.1f}\n{row['tokens']:,.0f}",
        down={"system": "system", "category": "category", "n": "questions"}, across="window",
        columns=sorted({window for _, _, window in cells}),
        head=lambda window: f"±{window}" if window else f"top {k}",
        notes=[
            f"Mean share of a question's evidence among the first {k} items, and with so many turns "
            "before and after each beside it (prompt recall), in percent; below, the mean tokens."
        ],
    )  # fmt: skip


def _cell(system: str, category: str, window: int, rows: Sequence[Evidence]) -> Numbers:
    n = sum(row.n for row in rows)
    return {
        "system": system, "category": category, "questions": n, "window": window,
        "recall": sum(row.n * row.recall for row in rows) / n,
        "tokens": sum(row.n * row.tokens for row in rows) / n,
    }  # fmt: skip
