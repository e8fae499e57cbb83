"""Policies that can be asked: P of the state, read from text and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import msgspec

from steeltrap.reference_system.policy.conditions import Condition, Scope, compiled
from steeltrap.reference_system.policy.language import (
    Action,
    Names,
    Number,
    Option,
    PolicyError,
    PolicyStatement,
    RankStatement,
    SetStatement,
    Source,
    Statement,
    Text,
    listing,
    meant,
    read,
)
from steeltrap.reference_system.policy.vocabulary import EVENTS, SETTINGS, Act, Event, Taken
from steeltrap.reference_system.state import PolicyText

__all__ = ["Firing", "Policy", "PolicySet", "default_policies"]

OptionValue = float | str | tuple[str, ...]


class Firing(msgspec.Struct, frozen=True, gc=False):
    """An action that a policy calls for, and why."""

    policy: str
    event: str
    action: str
    arguments: tuple[str, ...]
    """What the action is done to: names of the scene."""
    options: Mapping[str, OptionValue]
    """Those of the policy's options that the action takes."""
    _condition: Condition | None
    _seen: tuple[Any, ...]

    @property
    def because(self) -> str:
        """The condition with the values that it saw when it fired."""
        return "always" if self._condition is None else self._condition.because(self._seen)

    def __repr__(self) -> str:
        done = f"{self.action}({', '.join(self.arguments)})" if self.arguments else self.action
        return f"<{self.policy} on {self.event}: {done} because {self.because}>"


class Policy(msgspec.Struct, frozen=True, gc=False):
    """A policy, compiled."""

    name: str
    event: str
    condition: Condition | None
    """None: it always holds."""
    holds: Callable[[Any], bool]
    """Whether the condition holds in a scene."""
    actions: tuple[tuple[str, tuple[str, ...], Mapping[str, OptionValue]], ...]
    """Name, arguments and options of each."""

    def firing(self, scene: object, place: int = 0) -> Firing:
        """One of its actions, for a scene in which the policy holds."""
        seen = () if self.condition is None else self.condition.seen(scene)
        return Firing(self.name, self.event, *self.actions[place], self.condition, seen)


class PolicySet:
    """P: policies, settings and the rank of sources. Never changed; `with_` and `without` copy.

    Two sets are equal if their statements are, in the same order.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        _distinct(statements)
        self._statements = tuple(statements)
        self.settings: Mapping[str, float | str] = MappingProxyType(
            {s.name: _setting(s) for s in statements if isinstance(s, SetStatement)}
        )
        self._ranks = _ranks(statements)
        on: dict[str, list[Policy]] = {event: [] for event in EVENTS}
        for statement in statements:
            if isinstance(statement, PolicyStatement):
                policy = _compile(statement, self.settings, self._ranks)
                on[policy.event].append(policy)
        self._on: Final = {event: tuple(policies) for event, policies in on.items()}

    @classmethod
    def parse(cls, text: str, name: str = "policies") -> PolicySet:
        """Policies from a text.

        Args:
            text: statements of the policy language.
            name: what messages call the text, such as the name of its file.

        Raises:
            PolicyError: something in it cannot be; nothing of it is taken over.
        """
        return cls(read(Source(name, text)))

    @classmethod
    def of(cls, texts: Iterable[PolicyText]) -> PolicySet:
        """Policies from the state, in the order of their places."""
        statements: list[Statement] = []
        for text in sorted(texts, key=lambda text: text.place):
            statements += read(Source(f"policy text {text.id}", text.text))
        return cls(statements)

    def texts(self) -> list[PolicyText]:
        """The statements as they are kept in the state."""
        return [PolicyText(s.id, place, str(s)) for place, s in enumerate(self._statements)]

    def describe(self) -> str:
        """All statements as normalised text; reading it gives an equal set."""
        return "\n".join(str(statement) for statement in self._statements)

    def with_(self, text: str, *, before: str = "") -> PolicySet:
        """A copy with statements added, or replaced where one of the same id is there.

        Args:
            text: one or more statements. Their id is the policy's name, `SET name` or `RANK`.
            before: id of the statement that new ones come before; at the end if none is named.

        Raises:
            PolicyError: something in it cannot be, or there is no statement of the id `before`.
        """
        added = read(Source("the statements to add", text))
        _distinct(added)
        new = {statement.id: statement for statement in added}
        merged = [new.pop(statement.id, statement) for statement in self._statements]
        place = self._place(before) if before else len(merged)
        return PolicySet([*merged[:place], *new.values(), *merged[place:]])

    def without(self, name: str) -> PolicySet:
        """A copy without the statement of an id: a policy's name, `SET name` or `RANK`.

        Raises:
            PolicyError: there is none of that id, or something else needs it.
        """
        place = self._place(name)
        return PolicySet(self._statements[:place] + self._statements[place + 1 :])

    def _place(self, name: str) -> int:
        ids = [statement.id for statement in self._statements]
        if name not in ids:
            raise PolicyError(
                f"there is no statement {name!r}{meant(name, ids)}\nStatements: {listing(ids)}"
            )
        return ids.index(name)

    def on(self, event: str) -> tuple[Policy, ...]:
        """The policies on an event, in the order of the text.

        Raises:
            PolicyError: there is no such event.
        """
        try:
            return self._on[event]
        except KeyError:
            raise PolicyError(
                f"there is no event {event!r}{meant(event, EVENTS)}\nEvents: {listing(EVENTS)}"
            ) from None

    def fire(self, event: str, scene: object) -> list[Firing]:
        """What every policy on an event that holds calls for, in the order of the text."""
        return [
            policy.firing(scene, place)
            for policy in self.on(event)
            if policy.holds(scene)
            for place in range(len(policy.actions))
        ]

    def first(self, event: str, scene: object) -> Firing | None:
        """The first action of the first policy on an event that holds; None if none does."""
        for policy in self.on(event):
            if policy.holds(scene):
                return policy.firing(scene)
        return None

    def setting(self, name: str) -> float | str:
        """The value of a setting; of a duration, its days.

        Raises:
            PolicyError: it is not set.
        """
        try:
            return self.settings[name]
        except KeyError:
            raise PolicyError(
                f"{name} is not set{meant(name, self.settings)}\n"
                f"Add SET {name} = …, beside the settings {listing(self.settings)}"
            ) from None

    def authority(self, source: str) -> int:
        """How high a source ranks: the higher, the more; 0 if RANK does not name it."""
        return self._ranks.get(source, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PolicySet) and self._statements == other._statements

    def __hash__(self) -> int:
        return hash(self._statements)

    def __repr__(self) -> str:
        return f"PolicySet.parse({self.describe()!r})"


@lru_cache(maxsize=1)
def default_policies() -> PolicySet:
    """The policies that a memory starts with: `default.policy`."""
    name = "default.policy"
    return PolicySet.parse((files(__package__) / name).read_text("utf-8"), name)


# ---------------------------------------------------------------- what statements may say


def _distinct(statements: Iterable[Statement]) -> None:
    seen: dict[str, Statement] = {}
    for statement in statements:
        first = seen.setdefault(statement.id, statement)
        if first is not statement:
            of = first.source
            raise statement.source.error(
                statement.at,
                f"{statement.id} is there already, in {of.name}, line {of.line(first.at)}",
                "Names of policies and settings are given once; so is RANK",
            )


def _ranks(statements: Iterable[Statement]) -> Mapping[str, int]:
    ranks: dict[str, int] = {}
    for statement in statements:
        if isinstance(statement, RankStatement):
            for height, source in zip(range(len(statement.sources), 0, -1), statement.sources, strict=True):  # fmt: skip
                if source.value in ranks:
                    raise statement.source.error(source.at, f"{source} is ranked twice")
                ranks[source.value] = height
    return MappingProxyType(ranks)


def _setting(statement: SetStatement) -> float | str:
    name, value, source = statement.name, statement.value, statement.source
    for event, of in EVENTS.items():
        if name in of.names:
            raise source.error(
                statement.at,
                f"{name} is a name of the scene, in {event}",
                "Give the setting another name",
            )
    if name in SETTINGS:
        known = SETTINGS[name]
        if isinstance(value, Text) or value.value < 0 or (known.above_zero and value.value == 0):
            wanted = "a number above 0" if known.above_zero else "a number and not below 0"
            raise source.error(value.at, f"{name} is {wanted}: {known.meaning}")
    return value.value


def _compile(
    statement: PolicyStatement, settings: Mapping[str, float | str], ranks: Mapping[str, int]
) -> Policy:
    source, name = statement.source, statement.event.path
    if name not in EVENTS:
        raise source.error(
            statement.event.at,
            f"there is no event {name}{meant(name, EVENTS)}",
            f"Events: {listing(EVENTS)}",
        )
    event = EVENTS[name]
    acts = [(action.name, _act(action, event, name, source)) for action in statement.actions]
    options = _options(statement.options, acts, source)
    condition = None
    if statement.condition is not None:
        scope = Scope(name, event.names, settings, ranks, source)
        condition = compiled(statement.condition, scope)
    return Policy(
        statement.name,
        name,
        condition,
        (lambda _: True) if condition is None else condition.holds,
        tuple(
            (
                action,
                act.arguments,
                MappingProxyType({k: options[k] for k in options if k in act.options}),
            )
            for action, act in acts
        ),
    )


def _act(action: Action, event: Event, name: str, source: Source) -> Act:
    """The action as the event knows it."""
    actions = [f"{known}({', '.join(act.arguments)})" if act.arguments else known for known, act in event.actions.items()]  # fmt: skip
    allowed = f"Actions on {name}: {listing(actions)}"
    if action.name not in event.actions:
        wrong = f"{name} allows no {action.name}{meant(action.name, event.actions)}"
        raise source.error(action.at, wrong, allowed)
    act = event.actions[action.name]
    given = tuple(argument.path for argument in action.arguments)
    if given and given != act.arguments:
        wrong = f"{action.name} is done to {listing(act.arguments)}" if act.arguments else f"{action.name} takes no argument"  # fmt: skip
        raise source.error(action.arguments[0].at, wrong, allowed)
    return act


def _options(
    given: Iterable[Option], acts: Iterable[tuple[str, Act]], source: Source
) -> dict[str, OptionValue]:
    takes = {key: taken for _, act in acts for key, taken in act.options.items()}
    options: dict[str, OptionValue] = {}
    for option in given:
        key, value = option.key, option.value
        if key not in takes:
            done = " and ".join(name for name, _ in acts)
            raise source.error(
                option.at,
                f"{done} takes no option {key}{meant(key, takes)}",
                f"Options: {listing(takes)}",
            )
        if key in options:
            raise source.error(option.at, f"{key} is given twice")
        _fits(option, takes[key], source)
        options[key] = value.value
    return options


def _fits(option: Option, taken: Taken, source: Source) -> None:
    key, value = option.key, option.value
    match taken.kind, value:
        case "number", Number() if value.value > 0:
            return
        case "text", Text():
            return
        case "names", Names():
            for name in value.names:
                if name.path not in taken.names:
                    raise source.error(
                        name.at,
                        f"{key} knows no {name}{meant(name.path, taken.names)}",
                        f"Names: {listing(taken.names)}",
                    )
        case _:
            wanted = {
                "number": "a number above 0",
                "text": "a text in single quotes",
                "names": f"names in braces, of {listing(taken.names)}",
            }
            raise source.error(value.at, f"{key} is {wanted[taken.kind]}: {taken.meaning}")
