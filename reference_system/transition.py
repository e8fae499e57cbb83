"""One transition: what is proposed, which policies spoke, and what became of it.

Every operator works on a `Draft`. What the draft proposes is held against P before it is
committed (the paper's algorithm 1, line 14); if a postcondition fails, nothing was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from steeltrap.reference_system.mirror import Mirror
from steeltrap.reference_system.policy import Firing, PolicySet
from steeltrap.reference_system.state import NEVER, Delta, Entry, Field, Topic, Written, key
from steeltrap.reference_system.view import View

__all__ = ["Draft", "Operator", "PolicyBreach", "Tools", "Transition", "sentence"]

Operator = Literal["ingest", "revise", "forget", "retrieve", "restore"]
SUMMARY_FIELDS_MAX = 12
"""A summary names so many fields: it is read to choose a topic, not to answer."""


class PolicyBreach(RuntimeError):
    """A transition was aborted because what it proposed breaks a policy; the state is as before."""

    def __init__(self, transition: Transition) -> None:
        self.transition = transition
        super().__init__(transition.explain())


@dataclass(frozen=True)
class Tools:
    """What operators need besides the state."""

    policies: PolicySet
    count: Callable[[str], int]
    """Tokens of a text."""
    embed: Callable[[Sequence[str]], NDArray[np.float32]] | None
    """Unit vectors of texts, shape (texts, dimension)."""
    shared_salience: bool = False
    """Whether one tenant's access counts for fields of the same name of every tenant."""


@dataclass
class Transition:
    """A transition that was committed, or refused by a postcondition."""

    operator: Operator
    tenant: str
    at: str
    firings: list[tuple[Firing, str]] = field(default_factory=list)
    """Every policy that fired, each with what it was about."""
    changes: list[str] = field(default_factory=list)
    """What changed, in words."""
    committed: bool = False

    def explain(self) -> str:
        """Which policies fired, about what and why, and what changed."""
        outcome = "committed" if self.committed else "refused, nothing was changed"
        lines = [f"{self.operator} for {self.tenant} at {self.at}: {outcome}"]
        for firing, subject in self.firings:
            reason = firing.options.get("reason")
            said = f"{firing.action}: {reason}" if reason else firing.action
            lines.append(
                f"  {firing.policy}: on {firing.event} of {subject}, {said} ({firing.because})"
            )
        lines += [f"  {change}" for change in self.changes]
        return "\n".join(lines)


def sentence(topic: str, field: str, value: str, *, note: bool = False) -> str:
    """The sentence by which a field is served and counted; a note speaks for itself."""
    return value if note else f"The {field} of {topic} is {value}."


class Draft:
    """A proposed transition under way."""

    def __init__(self, mirror: Mirror, tools: Tools, operator: Operator, tenant: str, at: str) -> None:  # fmt: skip
        numbers = mirror.orders.get(tenant, 0), mirror.numbers.get(tenant, 0)
        self.view = View(mirror, Delta(tenant, at, *numbers))
        self.tools = tools
        self.operator = operator
        self.tenant = tenant
        self.at = at
        self.half_life_days = float(tools.policies.setting("half_life_days"))
        self.transition = Transition(operator, tenant, at)
        self.served: list[tuple[str, float]] = []
        """Fields that were served, each with the salience that it had."""
        self.stored: dict[str, Field] = {}
        """Those fields as the store gave them when it wrote their salience."""
        self.looked_at: list[str] = []
        """Fields that forgetting has taken from its heap and that go back to it."""

    # ------------------------------------------------------------ policies

    def first(self, event: str, scene: object, subject: str) -> Firing | None:
        """The first policy that holds on an event, noted for `explain`."""
        firing = self.tools.policies.first(event, scene)
        if firing is not None:
            self.transition.firings.append((firing, subject))
        return firing

    def all(self, event: str, scene: object, subject: str) -> list[Firing]:
        """All policies that hold on an event, noted for `explain`."""
        firings = self.tools.policies.fire(event, scene)
        self.transition.firings += [(firing, subject) for firing in firings]
        return firings

    def note(self, change: str) -> None:
        """Say what changed."""
        self.transition.changes.append(change)

    # ------------------------------------------------------------ making records

    def new_topic(self, title: str) -> Topic:
        """Propose an empty topic."""
        view = self.view
        topic = Topic(view.new_id("t"), self.tenant, title, "", b"", (), view.next_order())
        view.put_topic(topic)
        self.note(f"new topic {title}")
        return topic

    def new_field(self, topic: Topic, name: str, about: str = "", tags: tuple[str, ...] = ()) -> Field:  # fmt: skip
        """Propose a field without a value."""
        view = self.view
        new = Field(
            id=view.new_id("f"), tenant=self.tenant, topic=topic.id, name=name, about=about,
            tags=tags, state="unset", value=None, seq=0, valid_from="", until=None, turn="",
            said_by="", sources=(), via="", cause=0, entries=0, mentions=0,
            order=view.next_order(), salience=NEVER, level=0, tokens=0,
        )  # fmt: skip
        view.put_field(new)
        self.refresh(topic.id)
        return new

    def refresh(self, topic_id: str, without: Collection[str] = ()) -> None:
        """Make a topic's summary and embedding anew, if its fields are others than before."""
        topic = self.view.topic(topic_id)
        names = []
        for known in self.view.fields_of(topic_id):
            if known.id in without or "note" in known.tags:
                continue
            names.append(known.name)
            if len(names) == SUMMARY_FIELDS_MAX:
                break
        summary = ", ".join(names)
        if summary == topic.summary:
            return
        vector = b""
        if self.tools.embed is not None:
            text = f"{topic.title}: {summary}"
            vector = self.tools.embed([text])[0].astype(np.float32).tobytes()
        order = self.view.next_order()
        self.view.put_topic(
            msgspec.structs.replace(topic, summary=summary, vector=vector, order=order)
        )

    def write(
        self, field: Field, op: Written, *, turn: str, said_by: str, policy: str,
        value: str | None = None, valid_from: str | None = None, until: str | None = None,
        sources: tuple[str, ...] = (), about: int = 0, via: str = "",
    ) -> Entry:  # fmt: skip
        """Propose one more line of a field's history."""
        entry = Entry(
            field=field.id, seq=field.entries + 1, op=op, value=value,
            valid_from=valid_from or self.at, until=until, recorded=self.at,
            order=self.view.next_order(), turn=turn, said_by=said_by, sources=sources,
            about=about, via=via, policy=policy,
        )  # fmt: skip
        self.view.append(entry)
        return entry

    def tokens(self, field: Field, value: str | None) -> int:
        """Tokens of a field's sentence."""
        if value is None:
            return 0
        title = self.view.topic(field.topic).title
        return self.tools.count(sentence(title, field.name, value, note="note" in field.tags))

    def tagged(self, field: Field, tags: tuple[str, ...]) -> Field:
        """A field with further tags, and the tokens that it has with them."""
        field = msgspec.structs.replace(field, tags=tuple(dict.fromkeys((*field.tags, *tags))))
        return msgspec.structs.replace(field, tokens=self.tokens(field, field.value))

    def peers(self, field: Field) -> list[str]:
        """Fields of the same name in topics of the same title, of the other tenants."""
        mirror = self.view.mirror
        title = key(self.view.topic(field.topic).title)
        found = []
        for tenant in mirror.of_tenant:
            topic = mirror.by_title.get((tenant, title)) if tenant != self.tenant else None
            other = mirror.by_name.get((topic, key(field.name))) if topic else None
            if other is not None:
                found.append(other)
        return found

    def title(self, field: Field) -> str:
        """A field as people are told of it."""
        return f"{self.view.topic(field.topic).title} / {field.name}"
