"""A conversation in lines that people read in the log of a test: who said what, what was due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steeltrap.harness.script import Audit, Erasure, Gauge, Pause, Probe, Script, Step, Turn
from steeltrap.harness.verdict import Violation
from steeltrap.harness.wording import unit_words

__all__ = ["dialogue", "spoken"]

_LONGEST: Final = 160
"""Characters of a text that are shown."""
_FIRST, _LAST = 5, 7
"""Of a long conversation the first and the last lines are shown."""
_BESIDE: Final = {
    "reading": "a second run asked about the other of the two instead, and was the same otherwise",
    "asking": "in a second run the other tenant asked about something else",
    "telling": "in a second run the other tenant did not say that",
    "existing": "in a second run what was erased had never been",
    "observing": "in a second run nobody asked on the way",
}
"""What a twin of the conversation differed in."""


def dialogue(script: Script, violation: Violation, only: Sequence[str] | None = None) -> str:
    """A conversation up to what it shows: `user: …`, `asked: …`, `due: …`, `answered: …`.

    Args:
        script: the conversation.
        violation: as it shows it.
        only: the ids of the steps that are told of; by default all.
    """
    shown = script.steps[violation.step]
    steps = [step for step in script.steps[: violation.step] if only is None or step.id in only]
    tenants = {step.tenant for step in (*steps, shown) if isinstance(step, Turn | Probe)}
    lines = [line for step in steps for line in _lines(step, named=len(tenants) > 1)]
    if len(lines) > _FIRST + _LAST + 1:
        left_out = len(lines) - _FIRST - _LAST
        lines[_FIRST:-_LAST] = [f"  … {left_out} more lines …"]
    lines += _lines(shown, named=len(tenants) > 1) or ["looked: at what its state lists"]
    if only is None and script.header.twins:
        lines.append(f"({_BESIDE[script.header.twins[0].about]})")
    if violation.expected:
        lines.append(f"due: {spoken(violation.expected)}")
    gave = "answered" if isinstance(shown, Probe) else "showed"
    lines.append(f"{gave}: {spoken(violation.observed) or 'nothing'}")
    return "\n".join(lines)


def _lines(step: Step, *, named: bool) -> list[str]:
    of = f" of {spoken(step.tenant)}" if named and isinstance(step, Turn | Probe) else ""
    match step:
        case Turn():
            return [f"{step.role}{of}: {spoken(step.text)}"]
        case Probe():
            return [f"asked{of}: {spoken(step.text)}"]
        case Audit():
            return [f"looked up: the history of {spoken(unit_words(step.unit))}"]
        case Pause():
            return ["(time for maintenance)"]
        case Erasure():
            what = unit_words(step.unit) if step.unit else f"everything of {step.tenant}"
            return [f"erased: {spoken(what)}"]
        case Gauge():
            return []


def spoken(text: str) -> str:
    """A text on one line, cut where it is long, that no terminal or CI takes for more than text."""
    shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
    plain = "".join(each if each.isprintable() else _escaped(each) for each in shortened)
    return plain.replace("##[", "## [")  # a workflow command wherever it stands in a line


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode() if character != "\n" else " ⏎ "
