"""Ops, units and expectations in the words that people read: on the console, in pages, in reports."""

from __future__ import annotations

from steeltrap.harness import values
from steeltrap.harness.script import Audit, Expect, Op, Past, Probe, field_of, topic_of

__all__ = ["due_words", "expected_words", "history_words", "op_words", "unit_words"]


def unit_words(unit: str) -> str:
    """`deadline of Website Redesign`; a topic alone stays as it is."""
    return f"{field_of(unit)} of {topic_of(unit)}" if unit.count("/") > 1 else topic_of(unit)


def op_words(op: Op) -> str:
    """What an op does, without its name: `deadline of Atlas = 20 April 2026 by colleague`."""
    words: list[str] = []
    if op.unit:
        words.append(unit_words(op.unit))
    if op.value:
        words.append(f"= {values.display(op.value)}")
    if op.target:
        rule = f", {op.rule.kind}" if op.rule else ""
        words.append(f"-> {unit_words(op.target)}{rule}")
    if op.source != "owner":
        words.append(f"by {op.source}")
    if op.valid_at:
        words.append(f"since {op.valid_at}")
    if op.until:
        words.append(f"until {op.until}")
    if op.importance != "normal":
        words.append(f"({op.importance})")
    return " ".join(words)


def expected_words(expect: Expect) -> str:
    """The right answer."""
    value = values.display(expect.value) if expect.value else "nothing"
    match expect.state:
        case "set":
            return value
        case "unset":
            return "nothing is set"
        case "review":
            return f"needs review (was {value})"


def history_words(history: list[Past]) -> str:
    """A true history, oldest first."""
    held = (values.display(past.value) if past.value else "nothing" for past in history)
    return " → ".join(held) or "none"


def due_words(step: Probe | Audit) -> str:
    """What a question or an audit should give; empty where only evidence is asked for."""
    if isinstance(step, Audit):
        return history_words(step.history)
    return expected_words(step.expect) if step.expect else ""
