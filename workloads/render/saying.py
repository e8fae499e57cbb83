"""An op on its way into words: what is said about which unit, in which section of wordings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from steeltrap.harness.script import Op
from steeltrap.workloads.render.reference import Reference

__all__ = ["NAMED", "Saying", "lacks", "same_topic", "section_of"]

NAMED: Final = ("depend", "associate", "instruct", "noise")
"""Ops that always name their topics, and in English."""
VALUELESS: Final = ("retract", "depend", "associate", "expire")


@dataclass(frozen=True, slots=True)
class Saying:
    """One op on its way into words."""

    op: Op
    section: str
    unit: Reference
    language: str
    varied: bool
    short: bool
    """The topic is left out."""
    old: str | None
    """The value before this one, where it is another one."""

    @property
    def quoted(self) -> bool:
        """Somebody else than the owner says it."""
        return self.op.source != "owner" and self.op.op != "rumour"


def lacks(op: Op) -> str:
    """Which part is missing that the op speaks of."""
    needed = {
        "unit": op.unit,
        "value": op.value or op.op in VALUELESS,
        "target": op.target or op.op not in ("depend", "associate"),
        "rule": op.rule or op.op != "depend",
    }
    return next((part for part, there in needed.items() if not there), "")


def section_of(op: Op, at: str, before: str | None) -> str:
    """The section of wordings for an op."""
    if op.rule:
        return f"depend.{op.rule.kind}"
    if op.op == "rumour":
        return f"rumour.{'colleague' if op.source == 'colleague' else 'hearsay'}"
    if op.op == "expire" and op.value is None:
        return "lapse"
    if op.valid_at and op.valid_at < at:
        return "late" if before else "since"
    return op.op


def same_topic(a: str, b: str | None) -> bool:
    """Whether two units have one topic; a bare topic, as in `associate`, is no unit."""
    return b is not None and b.count("/") > 1 and a.split("/")[:2] == b.split("/")[:2]
