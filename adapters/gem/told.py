"""The reference system with a perfect interpreter: it is told what every sentence means.

So the engine is judged apart from whoever reads for it. What it is told are the ops, never what
is true: who outranks whom, what follows, what is current and what was, it finds out itself.
"""

from __future__ import annotations

from collections.abc import Callable

from steeltrap.adapters.gem.memory import Gem, item
from steeltrap.harness import values
from steeltrap.harness.memory import Item, Query, Utterance
from steeltrap.harness.script import Audit, Op, Probe, Script, Turn, field_of, topic_of
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Question,
    Statement,
    Withdrawal,
)

__all__ = ["ToldGem"]


class ToldGem(Gem):
    """`Gem` whose interpreter takes the ops from the script."""

    def told(self, script: Script) -> None:
        """Take the meaning of every sentence and question from the script."""
        self._turns = {step.id: step for step in script.steps if isinstance(step, Turn)}
        self._questions = {s.id: s for s in script.steps if isinstance(s, Probe | Audit)}

    def take_in(self, turn: Utterance) -> None:
        """Ingest what the turn's ops state."""
        found = [meaning(op) for op in self._turns[turn.id].ops]
        statements = [statement for statement in found if statement is not None]
        self.memory.ingest(turn.tenant, at=turn.at, turn=turn.id, statements=statements)

    def answer(self, query: Query) -> list[Item]:
        """What answers the question, by the units that it is about."""
        asked = asked_for(self._questions[query.id])
        answer = self.memory.retrieve(query.tenant, asked, at=query.at, limit=query.limit)
        return [item(served) for served in answer.served]


def asked_for(step: Probe | Audit) -> Question:
    """What a question of the script is about."""
    units = step.units if isinstance(step, Probe) and step.units else (step.unit,)
    places = tuple(place(unit) for unit in units if unit)
    if isinstance(step, Audit) or step.ask == "previous":
        return Question(step.text, places, "temporal")
    if step.ask == "as-of":
        return Question(step.text, places, "temporal", as_of=step.of or step.at)
    return Question(step.text, places)


def place(unit: str) -> Place:
    """A unit as a place in the memory."""
    return Place(topic_of(unit), field_of(unit))


def meaning(op: Op) -> Statement | None:
    """What an op states; None where it states nothing."""
    make = _MEANING.get(op.op)
    return make(op) if make else None


def _fact(op: Op, *, said_by: str = "", corrects: bool = False) -> Fact:
    where = place(op.unit or "")
    return Fact(
        where.topic, where.field, values.display(op.value or ""), said_by or op.source,
        valid_from=op.valid_at, until=op.until, corrects=corrects,
        tags=() if op.importance == "normal" else (op.importance,),
    )  # fmt: skip


def _withdrawal(op: Op) -> Withdrawal:
    where = place(op.unit or "")
    return Withdrawal(where.topic, where.field, op.source)


def _dependency(op: Op) -> Dependency:
    rule = Rule(op.rule.kind, op.rule.days, op.rule.times, op.rule.over) if op.rule else None
    return Dependency(place(op.unit or ""), place(op.target or ""), rule)


def _association(op: Op) -> Association:
    return Association((op.unit or "").split("/", 1)[1], (op.target or "").split("/", 1)[1])


_MEANING: dict[str, Callable[[Op], Statement]] = {
    "tell": _fact, "revise": _fact, "revert": _fact, "restate": _fact, "rumour": _fact,
    "expire": _fact, "correct": lambda op: _fact(op, corrects=True),
    "instruct": lambda op: _fact(op, said_by="content"), "retract": _withdrawal,
    "depend": _dependency, "associate": _association,
}  # fmt: skip
