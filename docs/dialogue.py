"""The dialogues that explain violations: real scripts, played on the mutants that break on them.

Each file of `dialogues/` was shrunk from a family in which a mutant shows a violation, and says in
its notes which violation and which mutant. What a page shows of it is played when the site is
built, so it cannot say what does not happen.

    python docs/dialogue.py            shrinks all of them again
    python docs/dialogue.py leak       or some
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness import values
from steeltrap.harness.bench import Bench, limit_of
from steeltrap.harness.checks.scorer import Scorer
from steeltrap.harness.commands.shrink import MEANS, SHOWS
from steeltrap.harness.driver import Driver
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Memory, Told, capabilities
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Audit, Erasure, Gauge, Pause, Probe, Script, Step, Turn
from steeltrap.harness.shrink import Journal, Search, Target
from steeltrap.harness.verdict import Violation
from steeltrap.harness.wording import history_words, unit_words
from steeltrap.workloads.compose import ScriptSettings, compose

__all__ = ["CHOSEN", "FOLDER", "Chosen", "Play", "examined", "html", "play"]

FOLDER: Final = Path(__file__).parent / "dialogues"
LIMIT: Final = 10
LINES: Final = 10
"""A dialogue of more lines is shown abridged: its first ones and its end."""
LETTERS: Final = 150
"""Of a sentence; a paste is cut there."""


class Chosen(NamedTuple):
    """A dialogue: what it shows, and on which mutant."""

    name: str
    mutant: str


CHOSEN: Final[dict[str, Chosen]] = {
    stem: Chosen(name, mutant)
    for stem, name, mutant in (
        ("stale-read", "stale-read", "serves-first"),
        ("ambiguous-read", "ambiguous-read", "serves-both-timeless"),
        ("wrong-read", "wrong-read", "answers-with-rumour"),
        ("exposed-history", "exposed-history", "serves-history-unmarked"),
        ("history-denied", "history-denied", "denies-history"),
        ("superseded-active", "superseded-active", "lists-superseded"),
        ("resurrection", "resurrection", "resurrects-at-maintenance"),
        ("policy-breach", "policy-breach", "lists-rumours"),
        ("half-applied", "half-applied", "tears-turns"),
        ("missed-propagation", "missed-propagation", "never-propagates"),
        ("wrong-propagation", "wrong-propagation", "off-by-one-year"),
        ("spurious-propagation", "spurious-propagation", "propagates-over-associations"),
        ("runaway", "runaway", "cycle-never-settles"),
        ("lost-history", "lost-history", "overwrites-in-place"),
        ("lost-source", "lost-source", "drops-sources"),
        ("wrong-order", "wrong-order", "swaps-last-two"),
        ("invented-source", "invented-source", "credits-latest-turn"),
        ("over-bound", "over-bound", "keeps-noise"),
        ("unrecoverable", "unrecoverable", "deletes-trivial"),
        ("inverted-retention", "inverted-retention", "never-keeps-vital"),
        ("inert-retrieval", "inert-retrieval", "read-only"),
        ("inert-retrieval-by-twin", "inert-retrieval", "read-only-behind-glass"),
        ("wrong-direction", "wrong-direction", "reading-tires"),
        ("unread-favoured", "unread-favoured", "lifts-neighbours-more"),
        ("leak", "leak", "ignores-tenant"),
        ("leak-by-order", "leak", "shares-order"),
        ("trace", "trace", "keeps-erased"),
        ("trace-by-twin", "trace", "leaves-a-tombstone"),
        ("obeyed-injection", "obeyed-injection", "obeys-injection"),
        ("observer-effect", "observer-effect", "look-ups-count"),
    )
}
"""By file. Most violations have one; those that twins show as well have a second."""


# ---------------------------------------------------------------- playing


@dataclass
class Play:
    """What a memory made of a dialogue."""

    script: Script
    violations: list[Violation]
    """Twins included."""
    answers: dict[str, str] = field(default_factory=dict)
    """Step -> what the reader made of what was served."""
    verdicts: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    """Steps that failed, or of which nobody knows."""


@contextmanager
def _bench(make: Callable[[], Memory]) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder, Bench(make, Oracle(), Path(folder), limit=LIMIT) as bench:  # fmt: skip
        yield bench


def examined(make: Callable[[], Memory], script: Script) -> list[Violation]:
    """The violations that a memory shows on a script and its twins."""
    with _bench(make) as bench:
        return bench.run(script, [twin.name for twin in script.header.twins]).violations


def play(make: Callable[[], Memory], script: Script) -> Play:
    """Run a memory through a script, and keep what it was asked and gave."""
    played = Play(script, examined(make, script))
    memory = make()
    if isinstance(memory, Told):
        memory.told(script)
    with tempfile.TemporaryDirectory() as folder:
        memory.open(Path(folder))
        driver = Driver(memory, limit_of(script, LIMIT), None)
        scorer = Scorer(script.header, capabilities(memory), Oracle())
        for i, step in enumerate(script.steps):
            event = driver.do(i, step)
            scorer.observe(step, event)
            _keep(played, step, event, scorer)
        memory.close()
    return played


def _keep(played: Play, step: Step, event: Event, scorer: Scorer) -> None:
    if event.type != "ok":
        played.failed.add(step.id)
    if isinstance(step, Probe) and scorer.view and (finding := scorer.view.finding):
        played.answers[step.id] = finding.observed.removeprefix("missing") or "nothing"
        played.verdicts[step.id] = finding.verdict


# ---------------------------------------------------------------- telling


def html(played: Play) -> str:
    """The dialogue as a list of who and what; what goes wrong stands beside what is right."""
    script, violation = played.script, played.violations[0]
    several = len({getattr(step, "tenant", "") for step in script.steps} - {""}) > 1
    lines: list[str] = []
    for i, step in enumerate(script.steps[: violation.step + 1]):
        lines += _lines(step, played, several=several, ends=i == violation.step)
    lines += _ending(script, violation)
    if len(lines) > LINES:
        left_out = len(lines) - LINES + 1
        lines = [*lines[:4], _line("cut", "…", f"{left_out} lines more"), *lines[4 + left_out :]]
    return '<dl class="dialogue">\n' + "\n".join(lines) + "\n</dl>"


def _line(kind: str, who: str, words: str) -> str:
    return f'<div class="{kind}"><dt>{escape(who)}</dt> <dd>{escape(words)}</dd></div>'


def _lines(step: Step, played: Play, *, several: bool, ends: bool) -> list[str]:
    who = f"{step.tenant} " if several and step.tenant else ""
    there = " (not in the twin)" if step.unless else ""
    there += " (this turn fails)" if step.id in played.failed else ""
    match step:
        case Turn():
            return [_line("said", f"{who}says" if several else "said", _cut(step.text) + there)]
        case Pause():
            return [_line("happens", "pause", "maintenance may run")]
        case Erasure():
            what = f"the {unit_words(step.unit)}" if step.unit else f"all of {step.tenant}"
            return [_line("happens", "erased", f"{what}, for good{there}")]
        case Gauge():
            return [_line("happens", "looked at", "its listed state")] if ends else []
        case Audit():
            return [_line("happens", "looked up", f"the history of the {unit_words(step.unit)}")]
        case Probe():
            return _asked(step, played, who=who, ends=ends)


def _asked(probe: Probe, played: Play, *, who: str, ends: bool) -> list[str]:
    reads = probe.observe == "in-script"
    asks = f"{who}{'reads' if reads else 'asks'}" if who else "read" if reads else "asked"
    lines = [_line("asked", asks, probe.text)]
    if probe.swap is not None:
        lines.append(_line("twin", "in the twin", probe.swap.text))
    if probe.id in played.answers and not ends and not reads:
        kind = {"correct": "right", "unknown": "said"}.get(played.verdicts[probe.id], "wrong")
        lines.append(_line(kind, "it answers", played.answers[probe.id]))
    return lines


def _ending(script: Script, violation: Violation) -> list[str]:
    """What it gives beside what is right."""
    gives, right = violation.observed.removeprefix("ambiguous "), violation.expected
    step = script.steps[violation.step]
    if violation.name == "exposed-history":
        gives, right = f"{right}, and {gives}", f"{right}; what was before is marked as past"
    elif violation.condition == "C4" and isinstance(step, Audit):
        turns = [one.id for one in script.steps if isinstance(one, Turn)]
        sourced = (
            f"{values.display(past.value)}, from turn {turns.index(past.source) + 1}"
            for past in step.history
            if past.value
        )
        right = "; ".join(sourced) if "source" in violation.name else history_words(step.history)
    elif violation.condition == "C6" and "->" in gives:
        gives = f"salience {gives}"
    return [_line("wrong", "it gives", gives), _line("right", "right", right)]


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LETTERS else f"{words[:LETTERS]} … ({len(text):,} characters)"


# ---------------------------------------------------------------- shrinking


def shrunk(chosen: Chosen) -> Script:
    """The shortest conversation found in which a mutant shows a violation."""
    mutant = MUTANTS[chosen.mutant]
    family = mutant.families[0]
    script = compose(
        ScriptSettings(name=family, turns=mutant.turns, families={family: 1.0}), seed=0
    )
    twins = [twin.name for twin in script.header.twins]
    with _bench(mutant) as bench:
        alone = {violation.name for violation in bench.run(script).violations}
        found = next(v for v in bench.run(script, twins).violations if v.name == chosen.name)
        target = Target.of(script, found, twinned=chosen.name not in alone)
        search = Search(bench, MEANS, target, Journal(None, {}), LIMIT)
        small = search.run(script, found).script
    small.header.name = chosen.name
    small.header.notes |= {SHOWS: chosen.name, "system": chosen.mutant}
    return small


def main(stems: Sequence[str]) -> None:
    """Shrink dialogues again and write them."""
    for stem in stems or CHOSEN:
        shrunk(CHOSEN[stem]).write(FOLDER / f"{stem}.jsonl")


if __name__ == "__main__":
    main(sys.argv[1:])
