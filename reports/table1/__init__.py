"""The paper's Table 1 beside what was measured: which memory supplies which of four capabilities.

`families` has the rows and the words of Table 1 of "Is Agent Memory a Database?", `capabilities`
how each column is measured, `mechanisms` by what a memory puts away and over what it propagates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from steeltrap.harness.record import Record
from steeltrap.reports.facts import distinct, made_to_fail
from steeltrap.reports.figures import Figure, matrix
from steeltrap.reports.numbers import by_system, once
from steeltrap.reports.table import Numbers, Table, crossed
from steeltrap.reports.table1.capabilities import (
    CAPABILITIES,
    Finding,
    attenuation,
    propagation,
    retention,
    retrieval,
)
from steeltrap.reports.table1.families import (
    FAMILIES,
    IN_PART,
    NOT,
    OTHERS,
    SUPPLIED,
    UNKNOWN,
    Family,
    base,
    family_of,
)
from steeltrap.reports.table1.mechanisms import propagation_table, retention_table
from steeltrap.reports.words import share, spans

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CAPABILITIES", "FAMILIES", "Family", "Finding", "attenuation", "family_of", "figure_1",
    "mechanisms", "of_families", "propagation", "retention", "retrieval", "table_1",
]  # fmt: skip

Variants = dict[str, list[Record]]
"""What was set differently, in words (nothing: as it comes) -> the runs."""
_BOUNDED: Final = ("Relevance-driven retention", "Graded attenuation")
"""Capabilities that need a bound to be seen."""
_BEST: Final = (SUPPLIED, IN_PART, NOT, UNKNOWN)


def table_1(records: Sequence[Record]) -> Table | None:
    """The paper's table with what was measured, a row for each system; None where nothing tests it.

    A system that was run with several settings, such as with a bound and without, is one row: each
    cell has the best that any of them showed, and says which. Runs with failings of the ideal
    model, or with faults, say something of the model and are left out.
    """
    plain = [record for record in records if not made_to_fail(record)]
    if not any(r.outcome.verdicts for r in plain):
        return None
    systems = _by_base(plain)
    numbers = [
        row
        for family in (*FAMILIES, OTHERS)
        for row in _rows(family, {s: own for s, own in systems.items() if family_of(s) == family})
    ]
    scripts = ", ".join(distinct(record.spec.script for record in plain))
    notes = [
        "Each cell: what was measured, with violations/opportunities and the 95% interval over "
        "runs; by what, where that was tried; then the paper's words. !: the measurement "
        "contradicts them.",
        f"Measured on: {scripts}{_asked(plain)}. Unknown: put to no test. Keeping everything is neither retention "
        "by relevance nor attenuation.",
        "What stands below Generative Agents is no row of the paper's table.",
    ]
    return crossed(
        "table-1", "Table 1 of the paper, measured", numbers, _said,
        down={"family": "family", "system": "system"}, across="capability", notes=notes, once=True,
    )._replace(across=False)  # fmt: skip


def mechanisms(records: Sequence[Record], *, brief: bool = False) -> list[Table]:
    """By what each system puts away, and over what it propagates, settings apart; what was tried.

    Args:
        records: finished cells.
        brief: in words alone, to fit a console.
    """
    plain = [record for record in records if not made_to_fail(record)]
    systems = {
        " ".join([system, variant]).strip(): own
        for system, variants in _by_base(plain).items()
        for variant, own in variants.items()
    }
    ranks = {name: rank for rank, family in enumerate(FAMILIES) for name in family.systems}
    ordered = {s: systems[s] for s in sorted(systems, key=lambda s: (ranks.get(base(s), -1), s))}
    found = (retention_table(ordered, brief=brief), propagation_table(ordered, brief=brief))
    return [table for table in found if table]


def of_families(records: Sequence[Record], *, brief: bool = False) -> list[Table]:
    """What is of all runs: Table 1, and the mechanisms behind it.

    Args:
        records: finished cells.
        brief: marks and rates of the systems that were run, to fit a console.
    """
    first = table_1(records)
    first = _brief(first) if first and brief else first
    return [table for table in (first, *mechanisms(records, brief=brief)) if table]


def _brief(table: Table) -> Table:
    """The marks alone, a `!` where one contradicts the paper, with their rates."""
    return crossed(
        table.name, table.title, [row for row in table.numbers if row["mark"]],
        lambda row: f"{row['mark']}{' !' if row['agrees'] == 'no' else ''}\n{share(row['rate'])}",
        down={"system": "system"}, across="capability",
        head=lambda capability: str(capability).split()[-1],
        notes=[
            "Rates: over the bound, missed, lost for good, reads without effect. !: the measurement "
            "contradicts the paper. In whole, with mechanisms and the paper's words: report.md.",
        ],
    )  # fmt: skip


def _by_base(records: Sequence[Record]) -> dict[str, Variants]:
    """The runs by system, and within it by what was set differently."""
    found: dict[str, Variants] = {}
    for name, own in by_system(records).items():
        words = _without_dials(name)
        variant = words[len(base(words)) :].strip()
        found.setdefault(base(words), {}).setdefault(variant, []).extend(own)
    return {
        system: {variant: once(own) for variant, own in variants.items()}
        for system, variants in found.items()
    }


def _asked(records: Sequence[Record]) -> str:
    """Readers and limits, where runs of several are taken together."""
    several = (
        ("read by", distinct(record.spec.reader for record in records)),
        ("items a query", distinct(str(record.spec.limit) for record in records)),
    )
    return "".join(f"; {what}: {', '.join(found)}" for what, found in several if len(found) > 1)


def _without_dials(name: str) -> str:
    """The name of a system without dials of the ideal model, which are all at nought here."""
    return " ".join(part for part in name.split(" ") if not re.match(r"model\.\w+=0(\.0)?$", part))


def _rows(family: Family, systems: dict[str, Variants]) -> list[Numbers]:
    if not systems and not family.name:
        return []
    return [
        {
            "group": family.group,
            "family": family.name or family.group,
            "system": system,
            "capability": capability,
            **_measured(_best(capability, variants), agree),
            "paper": words,
        }
        for system, variants in (systems or {"not run": {}}).items()
        for capability, words, agree in zip(CAPABILITIES, family.words, family.agree, strict=True)
    ]


def _best(capability: str, variants: Variants) -> tuple[str, Finding] | None:
    """The best that was found with any settings, and which; as it comes, where that is no worse.

    Settings that were not run on all that the system was run on as it comes are only heard where they
    are to the point: under a bound.
    """
    plain = {record.spec.script for record in variants.get("", [])}
    heard = {
        variant: own
        for variant, own in sorted(variants.items())
        if capability in _BOUNDED or plain <= {record.spec.script for record in own}
    }
    found = [(variant, CAPABILITIES[capability](own)) for variant, own in heard.items()]
    return min(found, key=lambda one: _BEST.index(one[1].mark)) if found else None


def _measured(best: tuple[str, Finding] | None, agree: Sequence[str]) -> dict[str, object]:
    with_, finding = best or ("", Finding(""))
    judged = bool(agree) and finding.mark not in ("", UNKNOWN)
    return {
        "mark": finding.mark,
        "with": with_.replace("\n", " "),
        "rate": finding.violations / finding.opportunities if finding.opportunities else None,
        "low": finding.low,
        "high": finding.high,
        "violations": finding.violations if best else None,
        "opportunities": finding.opportunities if best else None,
        "seen": finding.why,
        "mechanism": finding.mechanism,
        "agrees": ("yes" if finding.mark in agree else "no") if judged else "",
    }


def _said(row: Numbers) -> str:
    paper = [f"paper: {row['paper']}"] if row["paper"] else []
    if not row["mark"]:
        return "\n".join(paper)
    mark = row["mark"] + (" !" if row["agrees"] == "no" else "")
    set_ = [f"with {row['with']}"] if row["with"] else []
    mechanism = [row["mechanism"]] if row["mechanism"] else []
    return "\n".join([mark, *set_, *row["seen"].split("; "), *spans(row), *mechanism, *paper])


def figure_1(records: Sequence[Record]) -> Figure | None:
    """The same as a figure: a matrix of words and signs."""
    table = table_1(records)
    if table is None:
        return None
    caption = (
        "The paper's Table 1, measured: what each family and system supplies of four capabilities, "
        "and what the paper says of it (grey)."
    )
    return Figure("table-1", "Table 1, measured", caption, _marks(table), matrix)


def _marks(table: Table) -> pd.DataFrame:
    """The table as a matrix is drawn: row, column, mark (yes, some, no, unknown), words, beside."""
    import pandas as pd

    signs = {SUPPLIED: "yes", IN_PART: "some", NOT: "no", UNKNOWN: "unknown", "": ""}
    return pd.DataFrame(
        [
            {
                "row": row["family"] if row["system"] == "not run" else row["system"],
                "column": row["capability"],
                "mark": signs[row["mark"]],
                "words": row["mechanism"] or row["seen"] or "not run",
                "beside": f"paper: {row['paper']}" if row["paper"] else "",
            }
            for row in table.numbers
        ]
    )
