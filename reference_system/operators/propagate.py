"""Propagation along extension edges (C3): breadth first, each field once, halting where no
policy fires. Association edges are never walked.

A change goes out from the field that was spoken of; that field keeps what was said, so a cycle
ends where it began. A field that somebody spoke of after the change stands, and so does one
that comes out as it was; nothing beyond them moves. An edge obliges from when it was told.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from steeltrap.reference_system.rules import RuleError, derive, same_value
from steeltrap.reference_system.scenes import Walk
from steeltrap.reference_system.state import EXTENSION, Edge, Entry, Field
from steeltrap.reference_system.transition import Draft

__all__ = ["doubt", "propagate"]


def propagate(draft: Draft, origin: Field, cause: Entry) -> int:
    """Re-evaluate what follows from a change.

    Args:
        draft: the transition under way.
        origin: the field that changed.
        cause: the entry that changed it.

    Returns:
        How many fields were changed or marked.
    """
    reached = {origin.id}
    walk: list[tuple[Field, str | None, tuple[str, ...]]] = [(origin, cause.value, ())]
    hops = {origin.id: 0}
    changed = 0
    for source, value, sources in walk:
        for edge in draft.view.leaving(source.id):
            if edge.kind != EXTENSION or edge.order > cause.order:
                continue
            target = draft.view.survivor(edge.target)
            if target.id in reached:
                _compare(draft, origin, source, value, target, edge)
                continue
            reached.add(target.id)
            hops[target.id] = hops[source.id] + 1
            if target.cause > cause.order:
                continue
            new = _step(draft, source, value, target, edge, hops[target.id], cause, sources)
            changed += new is not None
            if new is not None and new.state == "set":
                walk.append((new, new.value, new.sources))
    return changed


def _compare(
    draft: Draft, origin: Field, source: Field, value: str | None, target: Field, edge: Edge
) -> None:
    """Say where a second way to a field would give it another value; the first way stands."""
    if target.id in (origin.id, source.id) or value is None or edge.rule is None:
        return
    with suppress(RuleError):
        other = derive(edge.rule, value)
        if not same_value(other, target.value or ""):
            name = draft.title(target)
            draft.note(
                f"{name} would be {other} by way of {draft.title(source)}; it stays {target.value}"
            )


def _step(
    draft: Draft, source: Field, value: str | None, target: Field, edge: Edge, hop: int,
    cause: Entry, sources: tuple[str, ...],
) -> Field | None:  # fmt: skip
    """One edge: what a policy says of it. None where nothing changes."""
    scene = Walk(draft, source, value, target, edge, hop)
    firing = draft.first("dependency_changed", scene, draft.title(target))
    if firing is None or firing.action == "halt":
        return None
    if firing.action == "propagate" and edge.rule is not None and value is not None:
        try:
            derived = derive(edge.rule, value)
        except RuleError as error:
            draft.note(f"{draft.title(target)}: {error}")
        else:
            trail = (*sources, edge.turn)
            return _follow(draft, source, target, derived, cause, trail, firing.policy)
    return doubt(draft, source, target, cause, firing.policy)


def _follow(
    draft: Draft, source: Field, target: Field, value: str, cause: Entry, sources: tuple[str, ...],
    policy: str,
) -> Field | None:  # fmt: skip
    """The value that a rule gives becomes the target's."""
    if target.state == "set" and target.holds(draft.at) and same_value(target.value or "", value):
        return None
    if cause.op == "corrected" and target.seq and draft.view.is_one(target.via, source):
        entry = draft.write(
            target, "void", turn=cause.turn, said_by=cause.said_by, policy=policy, about=target.seq
        )
        target = msgspec.structs.replace(target, entries=entry.seq)
    entry = draft.write(
        target, "derived", turn=cause.turn, said_by=cause.said_by, policy=policy, value=value,
        valid_from=max(cause.valid_from, target.valid_from), sources=sources, via=source.id,
    )  # fmt: skip
    target = msgspec.structs.replace(
        target, state="set", value=value, seq=entry.seq, valid_from=entry.valid_from, until=None,
        turn=entry.turn, said_by=entry.said_by, sources=sources, via=source.id, cause=cause.order,
        entries=entry.seq, order=entry.order, level=0, tokens=draft.tokens(target, value),
    )  # fmt: skip
    draft.view.put_field(target)
    draft.note(f"{draft.title(target)} = {value}, from {draft.title(source)}")
    return target


def doubt(draft: Draft, source: Field, target: Field, cause: Entry, policy: str) -> Field | None:
    """The target's value waits until somebody has looked."""
    if not target.holds(draft.at):
        return None
    entry = draft.write(
        target, "doubted", turn=cause.turn, said_by=cause.said_by, policy=policy, about=target.seq,
        via=source.id,
    )  # fmt: skip
    target = msgspec.structs.replace(target, state="review", entries=entry.seq, order=entry.order)
    draft.view.put_field(target)
    draft.note(f"{draft.title(target)} waits for review, since {draft.title(source)} changed")
    return target
