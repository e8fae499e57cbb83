"""Conditions: checked against the names of an event, and compiled.

A condition is checked once, when the policies are read; what remains is nested functions of a
scene. A value that is not there (None, on a name or on the thing that it belongs to) makes the
comparison that it stands in false, as does a division by zero.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast

from steeltrap.reference_system.policy.language import (
    And,
    Arithmetic,
    Call,
    Compare,
    Exists,
    Expr,
    Listed,
    Minus,
    Name,
    Not,
    Number,
    Or,
    PolicyError,
    Source,
    Text,
    listing,
    meant,
    shown,
    within,
    written,
)
from steeltrap.reference_system.policy.vocabulary import Kind, Named

__all__ = ["Condition", "Scope", "compiled"]

_Read = Callable[[Any], Any]
"""Gives the value of an expression in a scene."""

_DEPTH: Final = 100
"""Levels of brackets and operators within one condition."""
_ORDERED: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">=": operator.ge,
    ">": operator.gt,
}
_EQUAL: Final = {"=": operator.eq, "!=": operator.ne}
_ARITHMETIC: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_SAID: Final = {
    "number": "a number",
    "text": "a text",
    "flag": "a condition",
    "list": "a list",
    "thing": "a thing",
}
_INSTEAD: Final[dict[str, str]] = {
    "flag": "Write {0} or NOT {0}",
    "list": "Write 'a' IN {0}",
    "thing": "Write EXISTS {0}",
}
"""What is written of kinds that cannot be compared."""


@dataclass(frozen=True)
class Scope:
    """What a condition may speak of."""

    event: str
    names: Mapping[str, Named]
    settings: Mapping[str, float | str]
    ranks: Mapping[str, int]
    """Source -> its authority; of one that is not here, 0."""
    source: Source
    """The text that the condition stands in."""


@dataclass(frozen=True)
class Condition:
    """A condition that can be asked of a scene."""

    expr: Expr
    scope: Scope = field(repr=False, compare=False)
    holds: Callable[[Any], bool] = field(repr=False, compare=False)
    """Whether it holds in a scene."""
    leaves: tuple[_Read, ...] = field(repr=False, compare=False)
    """One for each name of the scene in the condition, in the order in which they are written."""

    def seen(self, scene: object) -> tuple[Any, ...]:
        """The values that the condition looks at, as they are now."""
        return tuple(leaf(scene) for leaf in self.leaves)

    def because(self, seen: tuple[Any, ...]) -> str:
        """The condition with the values that it saw."""
        name = partial(_with_value, scope=self.scope, seen=iter(seen))
        if isinstance(self.expr, And):
            return ", ".join(within(part, 2, name) for part in self.expr.parts)
        return written(self.expr, name)


def compiled(expr: Expr, scope: Scope) -> Condition:
    """A condition, checked.

    Raises:
        PolicyError: it names what the event does not know, or relates what cannot be related.
    """
    compiler = _Compiler(scope)
    holds = compiler.flag(expr, "WHEN")
    return Condition(expr, scope, holds, tuple(compiler.leaves))


# ---------------------------------------------------------------- check and compile


class _Compiler:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.leaves: list[_Read] = []
        self._depth = 0

    def wrong(self, node: Expr, what: str, allowed: str = "") -> PolicyError:
        return self.scope.source.error(node.at, what, allowed)

    def expression(self, node: Expr) -> tuple[Kind, _Read]:
        """The kind of an expression, and how to read it in a scene."""
        self._depth += 1
        if self._depth > _DEPTH:
            raise self.wrong(node, f"this is nested more than {_DEPTH} levels deep")
        found = self._expression(node)
        self._depth -= 1
        return found

    def _expression(self, node: Expr) -> tuple[Kind, _Read]:
        match node:
            case Number() | Text():
                return ("text" if isinstance(node, Text) else "number"), _constant(node.value)
            case Name():
                return self._name(node)
            case Exists(name=name):
                return "flag", self._exists(name)
            case Call():
                return "number", self._authority(node)
            case Minus(operand=operand):
                return "number", _negative(self._number(operand, "-"))
            case Arithmetic():
                return "number", self._arithmetic(node)
            case Compare():
                return "flag", self._in(node) if node.op == "IN" else self._compare(node)
            case Not(operand=operand):
                return "flag", _not(self.flag(operand, "NOT"))
            case And(parts=parts):
                return "flag", _every([self.flag(part, "AND") for part in parts])
            case Or(parts=parts):
                return "flag", _some([self.flag(part, "OR") for part in parts])
            case Listed():
                raise self.wrong(node, "a list can only stand to the right of IN")

    def flag(self, node: Expr, keyword: str) -> Callable[[Any], bool]:
        """An expression that has to be a condition."""
        kind, read = self.expression(node)
        if kind != "flag":
            wrong = f"{node} is {_SAID[kind]}, {keyword} wants a condition"
            raise self.wrong(
                node, wrong, _INSTEAD.get(kind, "Compare it: < <= = != >= > IN").format(node)
            )
        return read

    def _number(self, node: Expr, op: str) -> _Read:
        kind, read = self.expression(node)
        if kind != "number":
            raise self.wrong(node, f"{node} is {_SAID[kind]}, {op} wants a number")
        return read

    def _name(self, node: Name) -> tuple[Kind, _Read]:
        if node.path in self.scope.settings:
            value = self.scope.settings[node.path]
            return ("text" if isinstance(value, str) else "number"), _constant(value)
        return self._scene(node)

    def _scene(self, node: Name) -> tuple[Kind, _Read]:
        """A name of the scene, put among the leaves."""
        known, settings = self.scope.names, self.scope.settings
        if node.path not in known:
            raise self.wrong(
                node,
                f"{self.scope.event} knows no {node.path}{meant(node.path, [*known, *settings])}",
                f"Names of {self.scope.event}: {listing(known)}. Settings: {listing(settings)}",
            )
        kind = known[node.path].kind
        read = _reader(node.path)
        leaf = read
        if kind == "list":
            leaf = _frozen(read)
        elif kind in ("flag", "thing"):
            read = leaf = _truth(read)
        self.leaves.append(leaf)
        return kind, read

    def _exists(self, name: Name) -> _Read:
        if name.path in self.scope.settings:
            raise self.wrong(name, f"{name} is a setting, EXISTS wants a name of the scene")
        _, read = self._scene(name)
        self.leaves[-1] = truth = _truth(read)
        return truth

    def _authority(self, node: Call) -> _Read:
        if node.function != "authority":
            raise self.wrong(
                node,
                f"there is no function {node.function}{meant(node.function, ['authority'])}",
                "Functions: authority(source)",
            )
        kind, read = self.expression(node.argument)
        if kind != "text":
            raise self.wrong(
                node.argument, f"{node.argument} is {_SAID[kind]}, authority wants a source"
            )
        ranks = self.scope.ranks
        if isinstance(node.argument, Text) and node.argument.value not in ranks:
            value = node.argument.value
            raise self.wrong(
                node.argument,
                f"RANK names no {shown(value)}{meant(value, ranks)}",
                f"Sources in RANK: {listing(ranks)}",
            )
        return _authority(read, ranks)

    def _arithmetic(self, node: Arithmetic) -> _Read:
        left, right = self._number(node.left, node.op), self._number(node.right, node.op)
        return (
            _quotient(left, right) if node.op == "/" else _both(_ARITHMETIC[node.op], left, right)
        )

    def _compare(self, node: Compare) -> _Read:
        (kind, left), (other, right) = self.expression(node.left), self.expression(node.right)
        for side, of in ((node.left, kind), (node.right, other)):
            self._comparable(side, of)
        if kind != other:
            raise self.wrong(
                node,
                f"{node.left} is {_SAID[kind]} and {node.right} is {_SAID[other]}",
                "Numbers are compared with numbers and texts with texts",
            )
        if kind == "text" and node.op in _ORDERED:
            raise self.wrong(
                node, f"texts have no order, {node.op} wants numbers", "Of texts: = != IN"
            )
        for side, word in ((node.left, node.right), (node.right, node.left)):
            self._one_of(side, (word,))
        test = _ORDERED.get(node.op) or _EQUAL[node.op]
        return _compared(test, left, right)

    def _comparable(self, node: Expr, kind: Kind) -> None:
        if kind in _INSTEAD:
            wrong = f"{node} is {_SAID[kind]} and cannot be compared"
            raise self.wrong(node, wrong, _INSTEAD[kind].format(node))

    def _one_of(self, side: Expr, others: tuple[Expr, ...]) -> None:
        """A name that takes a few values only is compared with one of these."""
        if not isinstance(side, Name) or side.path not in self.scope.names:
            return
        values = self.scope.names[side.path].values
        for other in others:
            if values and isinstance(other, Text) and other.value not in values:
                raise self.wrong(
                    other,
                    f"{side} is never {other}{meant(other.value, values)}",
                    f"Values of {side}: {listing(values)}",
                )

    def _in(self, node: Compare) -> _Read:
        kind, left = self.expression(node.left)
        self._comparable(node.left, kind)
        if isinstance(node.right, Listed):
            for item in node.right.items:
                of = "text" if isinstance(item, Text) else "number"
                if of != kind:
                    raise self.wrong(
                        item, f"{item} is {_SAID[of]} and {node.left} is {_SAID[kind]}"
                    )
            self._one_of(node.left, node.right.items)
            return _member(left, _constant(tuple(item.value for item in node.right.items)))
        other, right = self.expression(node.right)
        if other != "list":
            raise self.wrong(
                node.right,
                f"{node.right} is {_SAID[other]}, IN wants a list",
                "Write a list such as ('a', 'b'), or the name of one",
            )
        if kind != "text":
            raise self.wrong(
                node.left, f"{node.left} is {_SAID[kind]}, {node.right} is a list of texts"
            )
        return _member(left, right)


# ---------------------------------------------------------------- functions of a scene


def _constant(value: object) -> _Read:
    return lambda _: value


def _reader(path: str) -> _Read:
    """Reads a dotted name; None where the thing that it belongs to is None."""
    read = operator.attrgetter(path)
    owner = operator.attrgetter(path.rpartition(".")[0]) if "." in path else None

    def value(scene: Any) -> Any:
        try:
            return read(scene)
        except AttributeError:
            if owner is not None and owner(scene) is None:
                return None
            raise

    return value


def _frozen(read: _Read) -> _Read:
    def value(scene: Any) -> Any:
        held = read(scene)
        return None if held is None else tuple(held)

    return value


def _truth(read: _Read) -> Callable[[Any], bool]:
    return lambda scene: bool(read(scene))


def _not(part: _Read) -> Callable[[Any], bool]:
    return lambda scene: not part(scene)


def _every(parts: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    if len(parts) == 2:
        one, two = parts
        return lambda scene: one(scene) and two(scene)
    return lambda scene: all(part(scene) for part in parts)


def _some(parts: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    if len(parts) == 2:
        one, two = parts
        return lambda scene: one(scene) or two(scene)
    return lambda scene: any(part(scene) for part in parts)


def _negative(part: _Read) -> _Read:
    def value(scene: Any) -> Any:
        number = part(scene)
        return None if number is None else -number

    return value


def _both(op: Callable[[Any, Any], Any], left: _Read, right: _Read) -> _Read:
    def value(scene: Any) -> Any:
        a, b = left(scene), right(scene)
        return None if a is None or b is None else op(a, b)

    return value


def _quotient(left: _Read, right: _Read) -> _Read:
    return _both(lambda a, b: a / b if b else None, left, right)


def _compared(op: Callable[[Any, Any], bool], left: _Read, right: _Read) -> Callable[[Any], bool]:
    def holds(scene: Any) -> bool:
        a, b = left(scene), right(scene)
        return a is not None and b is not None and op(a, b)

    return holds


def _member(left: _Read, right: _Read) -> Callable[[Any], bool]:
    def holds(scene: Any) -> bool:
        a, b = left(scene), right(scene)
        return a is not None and b is not None and a in b

    return holds


def _authority(read: _Read, ranks: Mapping[str, int]) -> _Read:
    def value(scene: Any) -> Any:
        source = read(scene)
        return None if source is None else ranks.get(source, 0)

    return value


# ---------------------------------------------------------------- reasons


def _with_value(name: Name, scope: Scope, seen: Iterator[Any]) -> str:
    settings = scope.settings
    return f"{name.path} {_value(settings[name.path] if name.path in settings else next(seen))}"


def _value(value: object) -> str:
    """A value that was seen; numbers to six digits, unless that would only seem to be exact."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    number = float(cast("float", value))
    rounded = f"{number:.6g}"
    exact = number.is_integer() or math.isclose(number, float(rounded))
    return shown(number) if exact else rounded
