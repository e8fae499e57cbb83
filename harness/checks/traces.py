"""Traces: after an erasure nothing may tell that what is gone ever was.

From the last erasure on, everything that the memory showed is held against the twin in which
there was nothing to erase, place by place. What is shown more than there is a trace; so is another
order, score, source, time or salience of what is shown in both. Ids may differ.

**What is shown less** was lost beside it: other units that went with what was erased. That is a
loss and no trace, and it is counted apart. A list of limited length is then filled up from further
down and what remains may rank otherwise; so in such a list only texts that the twin never showed
count as more, and where anything was lost, order and scores are not judged.

**Chance.** A place at which repeats of this very script differ as often as the twin does tells
nothing.

**One cause, one name.** What is left behind shows in several places at once: a step is one
opportunity, and is named by the first of them. A step at which what was erased was served or
listed by name has been counted there (`reads.Beyond`), and is not counted again.

Files are searched when it happens (`harness.remains`); `Files` judges what was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Final, Literal, get_args

from steeltrap.harness.checks.sheet import Sheet
from steeltrap.harness.checks.sighting import Compared, Comparison, Sighting
from steeltrap.harness.history import Left, Remains
from steeltrap.harness.memory import Item
from steeltrap.harness.record import Effect
from steeltrap.harness.script import Audit, Erasure, Gauge, Step, Turn
from steeltrap.harness.verdict import Violation

__all__ = ["FILES", "LOST", "PLACES", "Files", "compare"]

Place = Literal[
    "served", "listing", "history", "recovered", "provenance", "validity", "order", "scores",
    "salience", "size",
]  # fmt: skip
PLACES: Final[tuple[Place, ...]] = get_args(Place)
"""Where a trace may show in what a memory says."""
LOST: Final = "lost beside it"
FILES: Final = "files"
_WANTED: Final = "as if it had never been"


def compare(of: Comparison) -> Compared:
    """Compare what was shown after the erasure with what is shown where nothing was to erase."""
    erased = max((i for i, step in enumerate(of.script.steps) if _erases(step, of)), default=0)
    after = {step: seen for step, seen in of.here.items() if seen.i > erased}
    found = _Difference(after, of.there)
    repeats = [_Difference(after, run) for run in of.again]
    compared = Compared("trace", opportunities=len(found.steps))
    shown: dict[str, str] = {}
    for place in PLACES:
        told = found.told(place)
        chance = [repeat.told(place) for repeat in repeats]
        null = max(map(len, chance), default=None)
        if found.tested(place):
            compared.effects.append(_effect(of, place, found.tested(place), len(told), null))
        if len(told) > (null or 0):
            for step, what in told.items():
                if not any(step in repeat for repeat in chance):
                    shown.setdefault(step, f"{place}: {what}")
    compared.violations = [_violation(of, after[step], what) for step, what in shown.items()]
    compared.effects.append(_loss(of, found, repeats))
    return compared


def _erases(step: object, of: Comparison) -> bool:
    return isinstance(step, Erasure) and of.spec.name in step.unless


def _effect(of: Comparison, what: str, n: int, differing: int, null: int | None) -> Effect:
    return Effect(
        twin=of.spec.name, about=of.spec.about, what=what, n=n, differing=differing, null=null
    )


def _loss(of: Comparison, found: _Difference, repeats: Sequence[_Difference]) -> Effect:
    null = max((len(repeat.lost) for repeat in repeats), default=None)
    effect = _effect(of, LOST, len(found.steps), len(found.lost), null)
    effect.value = len({what for lost in found.lost.values() for what in lost})
    effect.measure = "things that are not there any more"
    return effect


def _violation(of: Comparison, seen: Sighting, told: str) -> Violation:
    gone = of.spec.gone
    turns = [s.id for s in of.script.steps if isinstance(s, Turn) and of.spec.name in s.unless]
    return Violation(
        "trace", "beyond", seen.i, turns[0] if turns else "", gone if "/" in gone else "", _WANTED,
        told, tuple(turns[:1]), seen.step.family,
    )  # fmt: skip


# ---------------------------------------------------------------- two runs


class _Difference:
    """What one run shows otherwise than another at the steps that both did.

    Args:
        here: of one run, by step.
        there: of the other.

    Attributes:
        steps: those that can be compared.
        lost: step -> texts, sources and saliences that only the other run shows.
    """

    def __init__(self, here: dict[str, Sighting], there: dict[str, Sighting]) -> None:
        self.steps = [step for step in here if step in there]
        self.lost: dict[str, list[str]] = {}
        self._places: dict[Place, dict[str, str]] = {}
        self._known = _texts(here), _texts(there)
        for step in self.steps:
            self._lists(step, here[step], there[step])
        for step in self.steps:
            self._closely(step, here[step], there[step])

    def tested(self, place: Place) -> int:
        """At how many steps a place could be compared."""
        return len(self._places.get(place, ()))

    def told(self, place: Place) -> dict[str, str]:
        """The steps at which it shows more, or otherwise, with what."""
        return {step: what for step, what in self._places.get(place, {}).items() if what}

    def _enter(self, place: Place, step: str, told: str) -> None:
        row = self._places.setdefault(place, {})
        row[step] = row.get(step) or told

    def _miss(self, step: str, what: Sequence[str]) -> None:
        if what:
            self.lost.setdefault(step, []).extend(what)

    # ------------------------------------------------------------ what is there

    def _lists(self, step: str, here: Sighting, there: Sighting) -> None:
        """Texts that are shown more, and texts that are lost."""
        known_here, known_there = self._known
        for place, limited, mine, theirs in _both(here, there):
            ours, others = _texts_of(mine), _texts_of(theirs)
            more, less = ours - others, others - ours
            if limited:
                less = _beyond(less, others, known_here)
                if less or len(mine) <= len(theirs):
                    more = _beyond(more, ours, known_there)
            self._enter(place, step, "; ".join(_short(text) for text in more))
            self._miss(step, list(less))
        if isinstance(here.step, Gauge):
            larger = [a > b for a, b in zip(here.size, there.size, strict=True)]
            told = "{} items, {} tokens, where there would be {} and {}".format(*here.size, *there.size)  # fmt: skip
            self._enter("size", step, told if any(larger) else "")

    # ------------------------------------------------------------ how it is there

    def _closely(self, step: str, here: Sighting, there: Sighting) -> None:
        """What is shown in both, in all but its text."""
        for place, _, mine, theirs in _both(here, there):
            pairs = _pairs(mine, theirs)
            items = [(mine[a], theirs[b]) for a, b in pairs]
            self._sources(step, items)
            changed = [a.text for a, b in items if _times(a) != _times(b)]
            self._enter("validity", step, "; ".join(map(_short, changed)))
            if not self.lost:
                there_in = [b for _, b in pairs]
                told = "" if there_in == sorted(there_in) else "the others stand in another order"
                self._enter("order", step, told)
            if place == "served" and here.scores and there.scores and not self.lost:
                close = all(_close(here.scores[a], there.scores[b]) for a, b in pairs)
                self._enter("scores", step, "" if close else "the others have other scores")
        self._saliences(step, here, there)

    def _sources(self, step: str, items: Sequence[tuple[Item, Item]]) -> None:
        named = [(set(a.sources), set(b.sources)) for a, b in items if a.sources is not None and b.sources is not None]  # fmt: skip
        if named:
            more = sorted({turn for a, b in named for turn in a - b})
            self._enter("provenance", step, ", ".join(more) and f"from {', '.join(more)}")
            self._miss(step, sorted({f"source {turn}" for a, b in named for turn in b - a}))

    def _saliences(self, step: str, here: Sighting, there: Sighting) -> None:
        theirs = {one.unit: one for one in there.salience}
        for one in here.salience:
            other = theirs.get(one.unit)
            if other is None or other.before is None or other.after is None:
                continue
            if one.before is None or one.after is None:
                self._miss(step, [f"salience of {one.unit}"])
                continue
            same = _close(one.before, other.before) and _close(one.after, other.after)
            told = f"{one.unit} has {one.before:g}, where it would have {other.before:g}"
            self._enter("salience", step, "" if same else told)


def _both(here: Sighting, there: Sighting) -> Iterator[tuple[Place, bool, list[Item], list[Item]]]:
    """The lists that a step shows: place, whether its length is limited, and each run's."""
    if isinstance(here.step, Gauge):
        if here.step.full:
            yield "listing", False, here.served, there.served
    elif isinstance(here.step, Audit):
        # Without a history of its own it was asked for one, and what it served is its answer.
        yield "history", True, here.given or here.served, there.given or there.served
        yield "recovered", True, here.recovered, there.recovered
    else:
        yield "served", True, here.served, there.served


def _texts(run: dict[str, Sighting]) -> Counter[str]:
    """Everything that a run has shown, each text as often as it stood in one list at most."""
    known: Counter[str] = Counter()
    for seen in run.values():
        for items in (seen.served, seen.given, seen.recovered):
            for text, count in _texts_of(items).items():
                known[text] = max(known[text], count)
    return known


def _texts_of(items: Sequence[Item]) -> Counter[str]:
    return Counter(item.text for item in items)


def _beyond(some: Counter[str], shown: Counter[str], known: Counter[str]) -> Counter[str]:
    """Those of some texts that are shown more often than they are known."""
    return Counter({text: count for text, count in some.items() if shown[text] > known[text]})


def _pairs(mine: Sequence[Item], theirs: Sequence[Item]) -> list[tuple[int, int]]:
    """Places of the items with the same text in two lists, in the order of the first."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(theirs):
        places.setdefault(item.text, []).append(place)
    return [(n, places[item.text].pop(0)) for n, item in enumerate(mine) if places.get(item.text)]


def _times(item: Item) -> tuple[str | None, str | None, bool]:
    return item.valid_from, item.valid_to, item.review


def _close(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def _short(text: str, chars: int = 80) -> str:
    """A text in quotes, cut where it is long."""
    line = " ".join(text.split())
    return f"'{line}'" if len(line) <= chars else f"'{line[:chars]}…'"


# ---------------------------------------------------------------- files


@dataclass(slots=True)
class _Searched:
    """What was searched for after the erasures of one twin, and what was found at any time."""

    gone: str
    step: Erasure
    i: int
    things: int = 0
    left: set[tuple[str, str]] = field(default_factory=set)
    """Each thing that was found, with the kind of it: `text` or `vector`."""


class Files:
    """Whether the files still hold what was erased: looked at after each erasure and at the end.

    Args:
        sheet: where `trace` is counted.
    """

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._searched: list[_Searched] = []

    def look(self, i: int, step: Step, remains: Remains | None, turns: int) -> None:
        """Take in what a step left in the files.

        Args:
            i: place of the step in the script.
            step: an erasure that says what must be gone, or the last of all.
            remains: what the search found; None where there was none.
            turns: taken in so far.
        """
        if remains is None or not remains.files:
            why = "its files were not searched" if remains is None else "it writes no files"
            self._sheet.block("trace", f"what is left on disk cannot be seen: {why}")
            return
        if not isinstance(step, Erasure):
            for one in self._searched:
                self._judge(one, i, [left for left in remains.left if self._owner(left) is one], turns)  # fmt: skip
            return
        one = _Searched(step.unit or step.tenant, step, i, remains.things)
        self._searched.append(one)
        if not self._judge(one, i, remains.left, turns):
            self._sheet.test(("trace",), turns)

    def _judge(self, one: _Searched, i: int, left: Sequence[Left], turns: int) -> bool:
        """Whether something was found that had not been found before: a trace."""
        new = [each for each in left if _kind(each) not in one.left]
        one.left |= {_kind(each) for each in new}
        if not new:
            return False
        files = dict.fromkeys(each.file for each in new)
        shown = "; ".join(f"{_short(each.what, 40)} as {each.how}" for each in new[:3])
        more = f" and {len(new) - 3} more" if len(new) > 3 else ""
        found = Violation(
            "trace", "beyond", i, one.step.id, one.gone if "/" in one.gone else "",
            "nothing of it in any file", f"files: {', '.join(files)}: {shown}{more}",
            family=one.step.family,
        )  # fmt: skip
        self._sheet.test(("trace",), turns, found)
        return True

    def _owner(self, left: Left) -> _Searched | None:
        """The erasure that should have removed it; of a text of the memory's own, by what it holds."""
        text = left.what.casefold()
        exactly = [one for one in self._searched if left.what in one.step.gone]
        holding = (one for one in self._searched if any(gone.casefold() in text for gone in one.step.gone))  # fmt: skip
        return next(iter(exactly), None) or next(holding, None)

    def effects(self) -> list[Effect]:
        """What was found in the files, by twin."""
        by_twin: dict[str, list[_Searched]] = {}
        for one in self._searched:
            for twin in one.step.unless:
                by_twin.setdefault(twin, []).append(one)
        return [
            Effect(
                twin=twin, about="existing", what=FILES, n=sum(one.things for one in own),
                differing=sum(len(one.left) for one in own), measure="texts, values and vectors",
            )
            for twin, own in by_twin.items()
        ]  # fmt: skip


def _kind(left: Left) -> tuple[str, str]:
    return left.what, "vector" if left.vector else "text"
