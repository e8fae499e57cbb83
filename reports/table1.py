"""The paper's Table 1 beside what was measured: which memory supplies which of four capabilities.

The words are those of Table 1 of "Is Agent Memory a Database?"; what each capability means stands
in its sections 2.1 to 2.4, and how it is measured at each function here. A mark is given for what
was seen and never for silence: what was put to no test is unknown, and a memory that keeps
everything neither retains by relevance nor attenuates because nothing was lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from steeltrap.harness.record import Dose, Record
from steeltrap.harness.stats import mean_interval
from steeltrap.harness.verdict import Tally
from steeltrap.reports.facts import distinct, made_to_fail
from steeltrap.reports.figures import Figure, matrix
from steeltrap.reports.numbers import by_system, once
from steeltrap.reports.table import Numbers, Table, crossed
from steeltrap.reports.words import percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CAPABILITIES", "FAMILIES", "Family", "Finding", "family_of", "figure_1", "table_1"]

SUPPLIED: Final = "supplied"
IN_PART: Final = "in part"
NOT: Final = "not supplied"
UNKNOWN: Final = "unknown"


class Family(NamedTuple):
    """A row of the paper's table."""

    group: str
    name: str
    words: tuple[str, str, str, str]
    """What the paper says of each capability."""
    strength: str
    """What it says the family contributes."""
    systems: tuple[str, ...] = ()
    """Systems here that belong to it."""
    agree: tuple[tuple[str, ...], ...] = ((NOT,), (NOT,), (NOT,), (NOT,))
    """Marks that agree with the words."""


_NONE: Final = "None"
_DATABASES: Final = "Database paradigms"
_AGENTS: Final = "Agent memory systems"
FAMILIES: Final = (
    Family(_DATABASES, "Relational", (_NONE, "Foreign key only", _NONE, _NONE), "Schema, ACID"),
    Family(_DATABASES, "Key-value / Document", (_NONE,) * 4, "Flexible or no schema"),
    Family(
        _DATABASES, "RDF / Property Graph", (_NONE, "Typed, entity-grain", _NONE, _NONE),
        "Typed structural relations",
    ),
    Family(_DATABASES, "Temporal DB", (_NONE,) * 4, "Versioned histories"),
    # Nearness is no dependency: "No DBMS re-evaluates dependent facts" (section 2.2).
    Family(
        _DATABASES, "Vector DB", (_NONE, "Geometric proximity", _NONE, _NONE),
        "Semantic similarity", ("vector", "vector-window", "hybrid"),
    ),
    Family(_AGENTS, "Tiered (MemGPT, MemOS)", (_NONE,) * 4, "Two-level paging"),
    Family(
        _AGENTS, "Fact-extraction (Mem0)", (_NONE,) * 4, "Atomic fact maintenance",
        ("mem0", "mem0-classic", "mem0-classic-graph", "mem0-platform"),
    ),
    # It invalidates the edge that was spoken of and "does not re-evaluate edges" beside it
    # (section 2.2), so one edge at most.
    Family(
        _AGENTS, "Graph-structured (Zep)", (_NONE, "Single-edge invalidation", _NONE, _NONE),
        "Bi-temporal edges", ("graphiti", "zep"), ((NOT,), (NOT, IN_PART), (NOT,), (NOT,)),
    ),
    Family(
        _AGENTS, "Consolidation-based (MIRIX, EverMemOS)",
        (_NONE, _NONE, "Foresight expiry", _NONE), "Typed components, scene consolidation",
    ),
    Family(_AGENTS, "RL-driven (Mem-α, Memory-R1)", (_NONE,) * 4, "Learned update policies"),
    Family(
        _AGENTS, "Generative Agents", ("Importance ranking", _NONE, _NONE, "Recency on access"),
        "Importance + reflection",
    ),
    # Not a row of the table: what sections 3 and 4 say of the paper's own proposal.
    Family(
        "The paper's proposal", "Governed Evolving Memory", ("By design",) * 4, "All four",
        ("gem", "gem-graph", "gem-told", "gem-words"), ((SUPPLIED,),) * 4,
    ),
)  # fmt: skip
_OTHERS: Final = Family("Not in the paper's table", "", ("",) * 4, "", (), ((),) * 4)


def family_of(system: str) -> Family:
    """The family of a system; what was set differently stands after a space."""
    base = system.split()[0]
    return next((family for family in FAMILIES if base in family.systems), _OTHERS)


class Finding(NamedTuple):
    """What was measured of one capability."""

    mark: str
    violations: int = 0
    opportunities: int = 0
    why: str = ""
    """What was seen, in words."""


# ---------------------------------------------------------------- how each is measured


def retention(records: Sequence[Record]) -> Finding:
    """Relevance-driven retention: active memory is bounded, and by relevance (section 2.1).

    Bounded: never over the bound (`over-bound`), in runs that told more than the bound allows, so
    that a memory which keeps everything would have been over it. By relevance: of units that were
    alike, those that were read more outlived the others under pressure (the survival trend of
    doses has its interval above nought), and nothing vital went while something trivial stayed
    (`inverted-retention`). Supplied: both. In part: one of them. A memory that put nothing away
    chose nothing: where it was over the bound relevance had no part in it, and where it had room
    for everything that is unknown.
    """
    pressed = [r for r in records if r.outcome.footprint and r.outcome.ingested_tokens > r.outcome.footprint[-1][4]]  # fmt: skip
    over, inverted = _tally(pressed, "C5", "over-bound"), _tally(records, "C5", "inverted-retention")  # fmt: skip
    bounded = None if not over.opportunities else not over.violations
    relevant, chose = _chose_by_relevance(records)
    if inverted.violations:
        relevant, chose = False, f"{_rated(inverted)} vital gone before trivial"
    if bounded is None:
        return Finding(UNKNOWN, why="never told more than the bound")
    why = f"{_rated(over)} over the bound; {chose}"
    return Finding(_both(bounded, relevant), over.violations, over.opportunities, why)


def _chose_by_relevance(records: Sequence[Record]) -> tuple[bool | None, str]:
    doses = _judged_doses(records)
    if not doses:
        return None, "choice not tested"
    if not _away(doses):
        return (False, "put nothing away") if _pressed(records) else (None, "never had to choose")
    trends = [v for r in records if r.outcome.dose for v in r.outcome.dose.trends.get("survival", ())]  # fmt: skip
    interval = mean_interval(trends)
    low = interval.low if interval else 0.0
    return low > 0, f"survival by reads {sum(trends) / max(len(trends), 1):+.2f}"


def propagation(records: Sequence[Record]) -> Finding:
    """Dependency-aware propagation: what depends on a changed fact is re-evaluated (section 2.2).

    Counted are dependents that were asked for after an update of their source, by how many edges
    away they are. Supplied: none was missed, over one edge or more than one, and nothing was
    propagated wrongly, to what does not depend, or without end. In part: some were reached; where
    only those over one edge were, it says so. Not supplied: every one was missed. Where no chain
    of two edges was tested a memory that reached all the others is unknown.
    """
    near, far = _missed(records, lambda hop: hop == 1), _missed(records, lambda hop: hop > 1)
    missed, asked = near.violations + far.violations, near.opportunities + far.opportunities
    if not asked:
        return Finding(UNKNOWN, why="no dependent was asked for")
    wrong = sum(
        _tally(records, "C3", name).violations
        for name in ("wrong-propagation", "spurious-propagation", "runaway")
    )
    why = f"{_rated(Tally(asked, missed))} missed"
    if missed == asked:
        return Finding(NOT, missed, asked, why)
    if not missed and not wrong:
        return Finding(SUPPLIED if far.opportunities else UNKNOWN, 0, asked, why + ("" if far.opportunities else "; no chain was tested"))  # fmt: skip
    if near.violations < near.opportunities and 0 < far.opportunities == far.violations:
        why += ": one edge only"
    return Finding(IN_PART, missed, asked, why + (f"; {wrong} wrong" if wrong else ""))


def attenuation(records: Sequence[Record]) -> Finding:
    """Graded attenuation: what matters less is put away by degrees and can be had back (section 2.3).

    Seen where doses are given: under pressure some units are put away while others that are alike
    stay (by degrees), and what was put away is had back when it is asked for (`unrecoverable`, in
    all runs). Supplied: both. In part: all at once, or some of it was lost. Not supplied: nothing
    was put away though the memory was over the bound, or all that was is gone: one that keeps
    everything attenuates nothing, and one that deletes does not attenuate. Unknown: it had room
    for everything, or what is put away cannot be asked for.
    """
    doses, lost = _judged_doses(records), _tally(records, "C5", "unrecoverable")
    if not doses:
        seen = f"{_rated(lost)} lost for good; " if lost.violations else ""
        return Finding(UNKNOWN, lost.violations, lost.opportunities, f"{seen}degrees not tested")
    away, n = _away(doses), sum(dose.n for dose in doses)
    if not away:
        pressed = _pressed(records)
        why = f"put away 0/{n}" + ("" if pressed else "; never had to")
        return Finding(NOT if pressed else UNKNOWN, lost.violations, lost.opportunities, why)
    gone = _tally([r for r in records if r.outcome.dose], "C5", "unrecoverable")
    if not gone.opportunities:
        return Finding(UNKNOWN, 0, 0, f"put away {away}/{n}; not observable whether for good")
    back = max(0, away - gone.violations)
    why = f"put away {away}/{n}, had back {back}"
    if not back:
        return Finding(NOT, lost.violations, lost.opportunities, why)
    whole = SUPPLIED if away < n and not lost.violations else IN_PART
    return Finding(whole, lost.violations, lost.opportunities, why)


def retrieval(records: Sequence[Record]) -> Finding:
    """State-modifying retrieval: a read raises what was read (section 2.4).

    C6: supplied where every opportunity showed it (salience that rises, twins that differ in what
    was read, doses that are answered), in part where some did, not supplied where none did.
    """
    verdicts = [r.outcome.verdicts["C6"] for r in records if "C6" in r.outcome.verdicts]
    tested = [verdict for verdict in verdicts if verdict.opportunities]
    if not tested:
        return Finding(UNKNOWN, why="no read was judged")
    violations, asked = (
        sum(v.violations for v in tested), sum(v.opportunities for v in tested),
    )  # fmt: skip
    why = f"{_rated(Tally(asked, violations))} without effect, or a wrong one"
    if violations:
        return Finding(NOT if violations == asked else IN_PART, violations, asked, why)
    sure = all(verdict.validity == "held" for verdict in tested)
    return Finding(SUPPLIED if sure else UNKNOWN, 0, asked, why)


CAPABILITIES: Final[dict[str, Callable[[Sequence[Record]], Finding]]] = {
    "Relevance-driven retention": retention,
    "Dependency-aware propagation": propagation,
    "Graded attenuation": attenuation,
    "State-modifying retrieval": retrieval,
}
"""The columns of the paper's table."""


def _both(one: bool, two: bool | None) -> str:
    """Two things are asked for; what was not tested is never taken for given."""
    if two is None:
        return UNKNOWN if one else NOT
    return SUPPLIED if one and two else IN_PART if one or two else NOT


def _tally(records: Iterable[Record], condition: str, name: str) -> Tally:
    verdicts = [r.outcome.verdicts[condition] for r in records if condition in r.outcome.verdicts]
    tallies = [verdict.names[name] for verdict in verdicts if name in verdict.names]
    return Tally(sum(t.opportunities for t in tallies), sum(t.violations for t in tallies))


def _rated(tally: Tally) -> str:
    share = percent(tally.violations / tally.opportunities)
    return f"{share} ({tally.violations}/{tally.opportunities})"


def _missed(records: Sequence[Record], at: Callable[[int], bool]) -> Tally:
    rows = [row for r in records for hop, row in r.outcome.missed_by_hop.items() if at(int(hop))]
    return Tally(sum(row[1] for row in rows), sum(row[0] for row in rows))


def _judged_doses(records: Sequence[Record]) -> list[Dose]:
    """Doses of which it was seen what was left after the pressure."""
    return [d for r in records if r.outcome.dose for d in r.outcome.dose.doses if d.left is not None]  # fmt: skip


def _pressed(records: Sequence[Record]) -> bool:
    """Whether a memory was over its bound where doses were given, so that something had to go."""
    return bool(_tally((r for r in records if r.outcome.dose), "C5", "over-bound").violations)


def _away(doses: Sequence[Dose]) -> int:
    return sum(dose.n - (dose.left or 0) for dose in doses)


# ---------------------------------------------------------------- the table


def table_1(records: Sequence[Record]) -> Table | None:
    """The paper's table with what was measured, a row for each system; None where nothing tests it.

    Runs with failings of the ideal model, or with faults, say something of the model and are
    left out.
    """
    plain = [record for record in records if not made_to_fail(record)]
    systems: dict[str, list[Record]] = {}
    for name, own in by_system(plain).items():
        systems.setdefault(_without_dials(name), []).extend(own)
    systems = {name: once(own) for name, own in systems.items()}
    if not any(r.outcome.verdicts for r in plain):
        return None
    numbers = [
        row
        for family in (*FAMILIES, _OTHERS)
        for row in _rows(family, {s: own for s, own in systems.items() if family_of(s) == family})
    ]
    scripts = ", ".join(distinct(record.spec.script for record in plain))
    notes = [
        "Each cell: what was measured, with violations/opportunities; then the paper's words. "
        "!: the measurement contradicts them.",
        f"Measured on: {scripts}{_asked(plain)}. Unknown: put to no test. Keeping everything is neither retention "
        "by relevance nor attenuation.",
        "Governed Evolving Memory is no row of the paper's table; it is what the paper proposes.",
    ]
    return crossed(
        "table-1", "Table 1 of the paper, measured", numbers, _said,
        down={"family": "family", "system": "system"}, across="capability", notes=notes, once=True,
    )._replace(across=False)  # fmt: skip


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


def _rows(family: Family, systems: dict[str, list[Record]]) -> list[Numbers]:
    if not systems and not family.name:
        return []
    return [
        {
            "group": family.group,
            "family": family.name or family.group,
            "system": system,
            "capability": capability,
            **_measured(measure(own) if own else None, agree),
            "paper": words,
        }
        for system, own in (systems or {"not run": []}).items()
        for (capability, measure), words, agree in zip(
            CAPABILITIES.items(), family.words, family.agree, strict=True
        )
    ]


def _measured(finding: Finding | None, agree: Sequence[str]) -> dict[str, object]:
    if finding is None:
        return {"mark": "", "rate": None, "violations": None, "opportunities": None, "seen": "", "agrees": ""}  # fmt: skip
    judged = bool(agree) and finding.mark != UNKNOWN
    return {
        "mark": finding.mark,
        "rate": finding.violations / finding.opportunities if finding.opportunities else None,
        "violations": finding.violations,
        "opportunities": finding.opportunities,
        "seen": finding.why,
        "agrees": ("yes" if finding.mark in agree else "no") if judged else "",
    }


def _said(row: Numbers) -> str:
    paper = [f"paper: {row['paper']}"] if row["paper"] else []
    if not row["mark"]:
        return "\n".join(paper)
    mark = row["mark"] + (" !" if row["agrees"] == "no" else "")
    return "\n".join([mark, *row["seen"].split("; "), *paper])


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
                "words": row["seen"] or "not run",
                "beside": f"paper: {row['paper']}" if row["paper"] else "",
            }
            for row in table.numbers
        ]
    )
