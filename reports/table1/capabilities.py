"""How each of the paper's four capabilities is measured (its sections 2.1 to 2.4).

A mark is given for what was seen and never for silence: what was put to no test is unknown, and a
memory that keeps everything neither retains by relevance nor attenuates because nothing was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from steeltrap.harness.record import Dose, Record
from steeltrap.harness.stats import mean_interval, rate_interval
from steeltrap.harness.verdict import Tally
from steeltrap.reports.table1.families import IN_PART, NOT, SUPPLIED, UNKNOWN
from steeltrap.reports.table1.mechanisms import choice, choice_words, followed, followed_words
from steeltrap.reports.words import percent

__all__ = ["CAPABILITIES", "Finding", "attenuation", "propagation", "retention", "retrieval"]


class Finding(NamedTuple):
    """What was measured of one capability."""

    mark: str
    violations: int = 0
    opportunities: int = 0
    why: str = ""
    """What was seen, in words."""
    mechanism: str = ""
    """By what, where that was tried."""
    low: float | None = None
    high: float | None = None
    """95% interval of the rate, over runs."""


def retention(records: Sequence[Record]) -> Finding:
    """Relevance-driven retention: active memory is bounded, and by relevance (section 2.1).

    Bounded: never over the bound (`over-bound`), in runs that told more than the bound allows, so
    that a memory which keeps everything would have been over it. By relevance: of units that were
    alike, those that were read more outlived the others under pressure, or those that matter did
    (the survival trend of doses, or the effect of use or importance in `retention`, has its
    interval above nought), and nothing vital went while something trivial stayed
    (`inverted-retention`). Supplied: all of it. In part: relevance had a part in it, but the memory
    was over the bound, or something vital went. Not supplied: what it put away went by age, size or
    time alone, or it was over the bound and put nothing away. A memory that had room for everything
    chose nothing, and is unknown.
    """
    pressed = [record for record in records if _told_more(record)]
    over, inverted = _tally(pressed, "C5", "over-bound"), _tally(records, "C5", "inverted-retention")  # fmt: skip
    chosen = choice(records)
    mechanism = choice_words(chosen) if chosen else ""
    bounded = None if not over.opportunities else not over.violations
    relevant, chose = _chose_by_relevance(records)
    if inverted.violations:
        relevant, chose = relevant or False, f"{_rated(inverted)} vital gone before trivial"
    if bounded is None:
        listed = any(r.outcome.footprint for r in records)
        why = "never told more than the bound" if listed else "what is active cannot be listed"
        return Finding(UNKNOWN, why=why, mechanism=mechanism)
    # bounds of other scripts are other bounds: the rate is of the one that it had to choose under
    chose_there = [r for r in pressed if r.outcome.dose or r.outcome.retention] or pressed
    over = _tally(chose_there, "C5", "over-bound")
    why = f"{_rated(over)} over the bound" + (f"; {chose}" if chose else "")
    mark = UNKNOWN if bounded and relevant is None else NOT
    if relevant:
        mark = SUPPLIED if bounded and not inverted.violations else IN_PART
    return _seen(mark, why, chose_there, lambda r: _tally([r], "C5", "over-bound"), mechanism)


def _told_more(record: Record) -> bool:
    """Whether more was told than the bound allows, so that a memory that keeps all is over it."""
    gauges = record.outcome.footprint
    over = bool(_tally([record], "C5", "over-bound").violations)
    return over or bool(gauges and record.outcome.ingested_tokens > gauges[-1][4])


def _chose_by_relevance(records: Sequence[Record]) -> tuple[bool | None, str]:
    """Whether relevance decided, and words for it where the mechanism does not say it."""
    tried = [_by_doses(records), _by_kinds(records)]
    known = [found for found in tried if found[0] is not None]
    if not known:
        return tried[0]
    return next((found for found in known if found[0]), known[0])


def _by_doses(records: Sequence[Record]) -> tuple[bool | None, str]:
    doses = _judged_doses(records)
    if not doses:
        return None, "choice not tested"
    if not _away(doses):
        return (False, "put nothing away") if _pressed(records) else (None, "never had to choose")
    trends = [v for r in records if r.outcome.dose for v in r.outcome.dose.trends.get("survival", ())]  # fmt: skip
    interval = mean_interval(trends)
    low = interval.low if interval else 0.0
    return low > 0, f"survival by reads {sum(trends) / max(len(trends), 1):+.2f}"


def _by_kinds(records: Sequence[Record]) -> tuple[bool | None, str]:
    found = choice(records)
    if found is None or not found.waited:
        return None, "never had to choose"
    return any(s.low > 0 for s in found.sways if s.factor in ("vital", "read")), ""


def propagation(records: Sequence[Record]) -> Finding:
    """Dependency-aware propagation: what depends on a changed fact is re-evaluated (section 2.2).

    Counted are dependents that were asked for after an update of their source, by how many edges
    away they are. Supplied: none was missed, over one edge or more than one, and nothing was
    propagated wrongly, to what does not depend, or without end. In part: some were reached, or
    they were marked for review and not worked out. Not supplied: every one was missed, or got
    another value than its rule gives. Where no chain of two edges was tested a memory that reached
    all the others is unknown.
    """
    near, far = _missed(records, lambda hop: hop == 1), _missed(records, lambda hop: hop > 1)
    missed, asked = near.violations + far.violations, near.opportunities + far.opportunities
    seen = followed(records)
    mechanism = followed_words(seen) if seen else ""
    if not asked:
        return Finding(UNKNOWN, why="no dependent was asked for")
    wrong = sum(
        _tally(records, "C3", name).violations
        for name in ("wrong-propagation", "spurious-propagation", "runaway")
    )
    why = f"{_rated(Tally(asked, missed))} missed" + (f"; {wrong} wrong" if wrong else "")
    if near.violations < near.opportunities and 0 < far.opportunities == far.violations:
        why += "; one edge only"
    astray = _tally(records, "C3", "wrong-propagation").violations
    mark = NOT if missed + astray == asked else IN_PART
    if not missed and not wrong and not (seen and seen.marked):
        mark = SUPPLIED if far.opportunities else UNKNOWN
        why += "" if far.opportunities else "; no chain was tested"
    return _seen(mark, why, records, lambda r: _missed([r], lambda _: True), mechanism)


def attenuation(records: Sequence[Record]) -> Finding:
    """Graded attenuation: what matters less is put away by degrees and can be had back (section 2.3).

    Seen where doses are given, or what decides is tried: under pressure some units are put away
    while others stay, by importance or use ("unlike tiering, which moves whole entries by capacity"),
    and what was put away was had back when it is asked for (`unrecoverable`, in all runs). Supplied: both. In part: by capacity or time alone, all at once, or some of it was lost. Not supplied: nothing
    was put away though the memory was over the bound, or all that was is gone: one that keeps
    everything attenuates nothing, and one that deletes does not attenuate. Unknown: it had room
    for everything, or what is put away cannot be asked for.
    """
    tried = [r for r in records if _judged_doses([r]) or r.outcome.retention]
    lost = _tally(records, "C5", "unrecoverable")
    if not tried:
        seen = f"{_rated(lost)} lost for good; " if lost.violations else ""
        return Finding(UNKNOWN, lost.violations, lost.opportunities, f"{seen}degrees not tested")
    away, n, back = _put_away(tried)
    if not away:
        pressed = _pressed(tried)
        why = f"put away 0/{n}" + ("" if pressed else "; never had to")
        return Finding(NOT if pressed else UNKNOWN, lost.violations, lost.opportunities, why)
    if back is None:
        return Finding(UNKNOWN, 0, 0, f"put away {away}/{n}; not observable whether for good")
    why = f"put away {away}/{n}, had back {back}"
    graded = away < n and bool(_chose_by_relevance(tried)[0])
    why += "" if graded else "; by capacity or time alone"
    whole = SUPPLIED if graded and not lost.violations else IN_PART
    return _seen(
        whole if back else NOT, why, records, lambda r: _tally([r], "C5", "unrecoverable"), ""
    )


def retrieval(records: Sequence[Record]) -> Finding:
    """State-modifying retrieval: a read raises what was read (section 2.4).

    C6: supplied where every opportunity showed it (salience that rises, twins that differ in what
    was read, doses that are answered), in part where some did, not supplied where none did.
    """
    verdicts = [r.outcome.verdicts["C6"] for r in records if "C6" in r.outcome.verdicts]
    tested = [verdict for verdict in verdicts if verdict.opportunities]
    if not tested:
        return Finding(UNKNOWN, why="no read was judged")
    counted = Tally(sum(v.opportunities for v in tested), sum(v.violations for v in tested))
    why = f"{_rated(counted)} without effect, or a wrong one"
    if counted.violations:
        mark = NOT if counted.violations == counted.opportunities else IN_PART
    else:
        mark = SUPPLIED if all(v.validity == "held" for v in tested) else UNKNOWN
    return _seen(mark, why, records, _reads, "")


def _reads(record: Record) -> Tally:
    verdict = record.outcome.verdicts.get("C6")
    return Tally(verdict.opportunities, verdict.violations) if verdict else Tally()


CAPABILITIES: Final[dict[str, Callable[[Sequence[Record]], Finding]]] = {
    "Relevance-driven retention": retention,
    "Dependency-aware propagation": propagation,
    "Graded attenuation": attenuation,
    "State-modifying retrieval": retrieval,
}
"""The columns of the paper's table."""


def _seen(
    mark: str, why: str, records: Sequence[Record], count: Callable[[Record], Tally], mechanism: str
) -> Finding:
    """A finding with its counts, and their interval over runs."""
    each = [count(record) for record in records]
    violations, opportunities = [t.violations for t in each], [t.opportunities for t in each]
    low, high = rate_interval(violations, opportunities) or (None, None)
    return Finding(mark, sum(violations), sum(opportunities), why, mechanism, low, high)


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
    """Whether a memory was over its bound where it had to choose, so that something had to go."""
    tried = (r for r in records if r.outcome.dose or r.outcome.retention)
    return bool(_tally(tried, "C5", "over-bound").violations)


def _put_away(records: Sequence[Record]) -> tuple[int, int, int | None]:
    """Units that were put away where it had to choose, of how many, and those that were had back;
    None where nothing can be recovered, or nobody looked."""
    doses = _judged_doses(records)
    kept = [row for r in records for row in r.outcome.retention if row.when == "waited"]
    away = _away(doses) + sum(row.n - row.left for row in kept)
    backs = [row.back for row in kept if row.back is not None]
    lost = _tally([r for r in records if r.outcome.dose], "C5", "unrecoverable")
    if lost.opportunities:
        backs.append(max(0, _away(doses) - lost.violations))
    n = sum(dose.n for dose in doses) + sum(row.n for row in kept)
    return away, n, sum(backs) if backs else None


def _away(doses: Sequence[Dose]) -> int:
    return sum(dose.n - (dose.left or 0) for dose in doses)
