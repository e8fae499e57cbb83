"""What policies can speak of: the events, the names of the scene at each, the actions it allows.

Operators announce an event with a scene, an object that has the names listed here; a policy
on the event may ask for these names and answer with these actions, and with nothing else.
A dotted name `field.salience` is the attribute `salience` of the scene's `field`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

__all__ = ["EVENTS", "SETTINGS", "Act", "Event", "Kind", "Named", "Setting", "Taken", "reference"]

Kind = Literal["number", "text", "flag", "list", "thing"]
"""list: of texts. thing: something that is there or not, asked for with EXISTS."""


class Named(msgspec.Struct, frozen=True):
    """A name that a condition may use."""

    kind: Kind
    meaning: str
    values: tuple[str, ...] = ()
    """text: the only values it takes; empty where any text may stand."""


class Taken(msgspec.Struct, frozen=True):
    """An option that an action takes: `WITH key=…`."""

    kind: Literal["number", "text", "names"]
    """number: above 0."""
    meaning: str
    names: tuple[str, ...] = ()
    """names: those that may stand in the braces."""


class Setting(msgspec.Struct, frozen=True):
    """A setting that operators read themselves; it is a number and not below 0."""

    meaning: str
    above_zero: bool = False
    """0 is refused too."""


class Act(msgspec.Struct, frozen=True):
    """An action that an event allows."""

    meaning: str
    arguments: tuple[str, ...] = ()
    """What it is done to; a policy writes all of them in this order, or leaves them out."""
    options: Mapping[str, Taken] = MappingProxyType({})


class Event(msgspec.Struct, frozen=True):
    """Something that an operator asks the policies about."""

    operator: str
    meaning: str
    names: Mapping[str, Named]
    actions: Mapping[str, Act]


def _number(meaning: str) -> Named:
    return Named("number", meaning)


def _text(meaning: str, *values: str) -> Named:
    return Named("text", meaning, values)


def _flag(meaning: str) -> Named:
    return Named("flag", meaning)


def _thing(name: str, meaning: str, parts: Mapping[str, Named]) -> dict[str, Named]:
    return {name: Named("thing", meaning)} | {f"{name}.{part}": of for part, of in parts.items()}


_EVERYWHERE: Final = {
    "tenant": _text("whose memory it is"),
    "operator": _text("what runs", "ingest", "revise", "forget", "retrieve", "restore"),
    "footprint": _number("tokens of the tenant's active fields"),
    "live": _number("how many active fields the tenant has"),
    "interactions": _number("how often something of the tenant was written so far"),
}
_FIELD: Final = {
    "name": _text("its name"),
    "topic": _text("title of its topic"),
    "value": _text("its value now"),
    "source": _text("whose words the value is"),
    "state": _text("whether it has a value, or one to be looked at", "unset", "set", "review"),
    "salience": _number("accesses, each halved with every half-life since; one made now counts 1"),
    "age": _number("days since the value began to hold"),
    "entries": _number("length of its history"),
    "mentions": _number("how often a value was told or told again"),
    "tags": Named("list", "its tags"),
    "level": _number("0 full, 1 compressed, 2 hidden"),
    "tokens": _number("of its sentence while it is active"),
}
_TOPIC: Final = {
    "title": _text("its title"),
    "fields": _number("how many live fields it has"),
    "salience": _number("that of its most salient field"),
    "mentions": _number("how often values of its fields were told or told again"),
    "tags": Named("list", "its tags"),
    "tokens": _number("of its active fields"),
}
_FACT: Final = {
    "value": _text("the value that was said; none where it is withdrawn"),
    "source": _text("whose words it is"),
    "tags": Named("list", "its tags"),
    "age": _number("days between its beginning to hold and now"),
    "late": _flag("it is about a time before the present value"),
    "corrects": _flag("it says that the value on record was wrong"),
    "withdraws": _flag("it says that there is no value any more"),
}
_DELTA: Final = {
    "entries": _number("entries that would be added"),
    "superseded_current": _number("fields whose value would not be their latest valid entry"),
    "outranked": _number("fields whose new value is from a lower source than the one replaced"),
    "foreign": _number("writes to another tenant"),
    "unrecorded": _number("fields whose value would change without an entry"),
    "dangling": _number("edges that would lead to nothing"),
    "faded_read": _number("fields that were served and whose salience would not rise"),
}
_EVIDENCE: Final = Taken(
    "names",
    "for readers; a finding always keeps the field, its entry and the instant",
    ("updated_field", "entry", "transition", "timestamp"),
)
_REJECT: Final = {"reason": Taken("text", "what is said to whoever asked for it")}


def _event(operator: str, meaning: str, actions: dict[str, Act], *names: dict[str, Named]) -> Event:
    known = dict(_EVERYWHERE)
    for more in names:
        known |= more
    return Event(operator, meaning, MappingProxyType(known), MappingProxyType(actions))


EVENTS: Final[Mapping[str, Event]] = MappingProxyType(
    {
        "fact_received": _event(
            "ingest",
            "somebody says a value of a field, or that it has none",
            {
                "supersede": Act("it becomes the current value; the old one stays in the history"),
                "keep_both": Act("it is recorded beside the current value as contested"),
                "reject": Act("it is not taken in", options=_REJECT),
            },
            _thing("fact", "what was said", _FACT),
            _thing("field", "the field that it is about", _FIELD),
            _thing("topic", "the topic of the field", _TOPIC),
            {"current": Named("thing", "an entry of the field on record")},
        ),
        "field_updated": _event(
            "ingest",
            "the value of a field has changed",
            {
                "flag_for_revision": Act(
                    "revise looks at what depends on it",
                    ("dependent_topic",),
                    {"evidence": _EVIDENCE},
                ),
                "propagate": Act(
                    "what depends on it is worked out at once, in the same transition",
                    ("dependent_topic",),
                ),
            },
            _thing("field", "the field", _FIELD),
            _thing("topic", "its topic", _TOPIC),
            {
                "dependent_topic": Named("thing", "a topic with a field that depends on it"),
                "dependent": Named("thing", "a field that depends on it"),
                "dependents": _number("how many fields depend on it"),
            },
        ),
        "dependency_changed": _event(
            "revise",
            "one extension edge of the walk, whose source has changed",
            {
                "propagate": Act("the value that follows is derived and recorded", ("dependent",)),
                "flag": Act("it is marked for review and keeps its value", ("dependent",)),
                "halt": Act("the walk goes no further along this edge"),
            },
            _thing("source", "the field that changed", _FIELD),
            _thing("dependent", "the field that depends on it", _FIELD),
            _thing(
                "edge",
                "the edge between them",
                {
                    "rule": _text("how it follows", "offset", "same", "scaled", "review"),
                    "kind": _text("its type", "extension", "association"),
                },
            ),
            {"hop": _number("edges between the first change and the dependent field: 1, 2, …")},
        ),
        "duplicate_topics": _event(
            "revise",
            "two topics may be one",
            {
                "merge": Act(
                    "the first takes in the second, no history is lost", ("topic", "other")
                ),
                "keep_apart": Act("they stay two"),
            },
            _thing("topic", "the older topic", _TOPIC),
            _thing("other", "the newer topic", _TOPIC),
            {
                "same_title": _flag("their titles are equal, case, blanks and punctuation apart"),
                "stated": _flag("somebody said that both are one"),
                "similarity": _number("cosine of their embeddings, -1 to 1"),
            },
        ),
        "conflicting_values": _event(
            "revise",
            "one field of two topics that are merged has a value in both",
            {
                "keep_newest": Act("the one that began to hold last is current"),
                "keep_ranking": Act(
                    "that of the higher source is current, among equals the newest"
                ),
                "keep_both": Act("the newest is current, the other is recorded as contested"),
                "flag": Act("the newest is current and marked for review"),
            },
            _thing("field", "the field in the topic that stays", _FIELD),
            _thing("other", "the field in the topic that is taken in", _FIELD),
        ),
        "schema_drift": _event(
            "revise",
            "two field names of one topic may mean one field",
            {
                "merge": Act(
                    "the first takes in the second, no history is lost", ("field", "other")
                ),
                "keep_apart": Act("they stay two"),
            },
            _thing("field", "the older field", _FIELD),
            _thing("other", "the newer field", _FIELD),
            {
                "same_name": _flag("the names are equal, case, plural and punctuation apart"),
                "similarity": _number("cosine of the embeddings of their names, -1 to 1"),
            },
        ),
        "group_grown": _event(
            "revise",
            "fields of one topic that are about one thing have become more",
            {"promote": Act("they become a topic of their own", ("group",))},
            _thing("topic", "the topic that they are in", _TOPIC),
            _thing(
                "group",
                "the fields about one thing",
                {
                    "name": _text("the thing, such as Alice"),
                    "fields": _number("how many fields"),
                    "mentions": _number("how often their values were told or told again"),
                },
            ),
        ),
        "forgetting": _event(
            "forget",
            "one field is looked at; fields come in order of salience, the least first",
            {
                "protect": Act("it stays as it is, whatever other policies say", ("field",)),
                "compress": Act(
                    "of its history the latest values are shown, the others when asked for",
                    ("field",),
                ),
                "hide": Act(
                    "it is active no longer; `lookup` finds it, and `restore` brings it back",
                    ("field",),
                ),
            },
            _thing("field", "the field", _FIELD),
            _thing("topic", "its topic", _TOPIC),
        ),
        "topic_forgetting": _event(
            "forget",
            "a topic that is empty or has only hidden fields is looked at",
            {
                "protect": Act("it stays as it is, whatever other policies say", ("topic",)),
                "archive": Act(
                    "it leaves routing; `lookup` finds it, and `restore` brings it back", ("topic",)
                ),
            },
            _thing("topic", "the topic", _TOPIC),
        ),
        "unit_read": _event(
            "retrieve",
            "a field was served",
            {
                "reinforce": Act(
                    "its salience rises by an access",
                    ("field",),
                    {"weight": Taken("number", "how many accesses it counts for; 1 if not said")},
                ),
            },
            _thing("field", "the field", _FIELD),
            _thing("topic", "its topic", _TOPIC),
        ),
        "transition_proposed": _event(
            "every operator",
            "a transition is complete and not yet committed",
            {"reject": Act("nothing of the transition is committed", options=_REJECT)},
            _thing("delta", "what it would change", _DELTA),
        ),
    }
)

SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "half_life_days": Setting(
            "days in which the salience of what is not accessed falls to a half", above_zero=True
        ),
        "bound": Setting(
            "active tokens that a tenant may have (beta); if not set, any number", above_zero=True
        ),
        "summary_at": Setting("forget looks at fields below this salience"),
        "remove_at": Setting("forget looks at fields below this salience"),
        "archive_at": Setting("forget looks at topics below this salience"),
    }
)
"""Policies may set and use others."""


# ---------------------------------------------------------------- the vocabulary in Markdown


def reference() -> str:
    """Tables of all names, actions and settings, for the documentation.

    The parts that fields and topics have in every event are given once.
    """
    blocks = ["**In every event**", _names(_EVERYWHERE)]
    blocks += ["**Parts of a field**", _names(_FIELD), "**Parts of a topic**", _names(_TOPIC)]
    for name, event in EVENTS.items():
        heading = f"**`{name}`** ({event.operator}): {event.meaning}"
        blocks += [heading, _names(_own(event)), _actions(event)]
    blocks += [
        "**Settings that operators read**",
        _table(
            ("setting", "meaning"), *((f"`{name}`", of.meaning) for name, of in SETTINGS.items())
        ),
    ]
    return "\n\n".join(blocks) + "\n"


def _own(event: Event) -> dict[str, Named]:
    """The names of an event that are not in the tables of every event, of fields and of topics."""
    shared = set(_EVERYWHERE)
    for thing in event.names:
        for kind in (_FIELD, _TOPIC):
            parts = {f"{thing}.{part}": of for part, of in kind.items()}
            if parts.items() <= event.names.items():
                shared |= parts.keys()
    return {name: of for name, of in event.names.items() if name not in shared}


def _names(names: Mapping[str, Named]) -> str:
    rows = ((f"`{name}`", of.kind, _meaning(of)) for name, of in names.items())
    return _table(("name", "kind", "meaning"), *rows)


def _meaning(of: Named) -> str:
    return f"{of.meaning}: {', '.join(of.values)}" if of.values else of.meaning


def _actions(event: Event) -> str:
    rows = []
    for name, act in event.actions.items():
        written = f"{name}({', '.join(act.arguments)})" if act.arguments else name
        options = [f"{key}: {taken.meaning}" for key, taken in act.options.items()]
        rows.append((f"`{written}`", act.meaning, "; ".join(options)))
    return _table(("action", "meaning", "options"), *rows)


def _table(*rows: tuple[str, ...]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])
