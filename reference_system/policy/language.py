"""Reading and writing policies: text <-> syntax objects, and errors that show the place.

Syntax objects compare by what they say. Where they were read (`at`, an offset into the text of
their statement's `source`) is kept for messages alone. `str` of one is normalised text, and
reading that gives an equal object.
"""

from __future__ import annotations

import difflib
import importlib.resources
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Final, cast

from lark import Lark, Token, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive, v_args

__all__ = [
    "Action",
    "And",
    "Arithmetic",
    "Call",
    "Compare",
    "Exists",
    "Expr",
    "Listed",
    "Literal",
    "Minus",
    "Name",
    "Names",
    "Not",
    "Number",
    "Option",
    "Or",
    "PolicyError",
    "PolicyStatement",
    "RankStatement",
    "SetStatement",
    "Source",
    "Statement",
    "Text",
    "listing",
    "meant",
    "read",
    "shown",
    "within",
    "written",
]

_KEYWORDS: Final = "rank set policy on when do with and or not in exists".split()
_LABEL = re.compile(r"[^\W\d][\w-]*")
_WIDTH: Final = 160
"""Characters of a line that a message shows."""
_SECONDS: Final = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}


class PolicyError(ValueError):
    """A policy does not parse, or says what cannot be: where, what, and what is allowed."""


@dataclass(frozen=True)
class Source:
    """A text of policies, and what to call it in messages."""

    name: str
    text: str

    def line(self, at: int) -> int:
        """Number of the line that an offset is in, from 1."""
        return self.text.count("\n", 0, at) + 1

    def error(self, at: int, wrong: str, allowed: str = "") -> PolicyError:
        """An error that shows its place.

        Args:
            at: offset into the text.
            wrong: what is wrong, in a line.
            allowed: what could stand there, in a line.
        """
        begin = self.text.rfind("\n", 0, at) + 1
        line = self.text[begin:].partition("\n")[0].replace("\t", " ")
        cut = max(at - begin - _WIDTH // 2, 0) if len(line) > _WIDTH else 0
        place = f"{self.name}, line {self.line(at)}, column {at - begin + 1}"
        excerpt = line[cut : cut + _WIDTH].rstrip()
        lines = [f"{place}: {wrong}", f"    {excerpt}", f"    {' ' * (at - begin - cut)}^", allowed]
        return PolicyError("\n".join(lines).rstrip())


def listing(names: Iterable[str]) -> str:
    """Names one after the other, as messages give them."""
    return ", ".join(names) or "none"


def meant(word: str, names: Iterable[str]) -> str:
    """`; did you mean …?` where one of some names is close to a word, otherwise nothing."""
    by_lower = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(word.casefold(), by_lower, 1)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def shown(value: float | str) -> str:
    """A number or text as it is written in a policy."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    whole = abs(value) < 1e15 and float(value).is_integer()
    return str(int(value)) if whole else repr(float(value))


# ---------------------------------------------------------------- syntax


@dataclass(frozen=True, slots=True)
class _Node:
    at: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class _Part(_Node):
    def __str__(self) -> str:
        return written(cast("Expr", self))


@dataclass(frozen=True, slots=True)
class Number(_Part):
    """A number, or with a unit a duration."""

    amount: float
    unit: str = ""
    """minute, hour, day, week, or none."""

    @property
    def value(self) -> float:
        """The number; of a duration, its days."""
        return self.amount * _SECONDS[self.unit] / 86_400 if self.unit else self.amount


@dataclass(frozen=True, slots=True)
class Text(_Part):
    """A text in single quotes."""

    value: str


Literal = Number | Text


@dataclass(frozen=True, slots=True)
class Listed(_Part):
    """Numbers or texts in brackets, to the right of IN."""

    items: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Name(_Part):
    """A name of the scene, or of a setting."""

    path: str


@dataclass(frozen=True, slots=True)
class Call(_Part):
    """`authority(…)`."""

    function: str
    argument: Expr


@dataclass(frozen=True, slots=True)
class Exists(_Part):
    """Whether something is there."""

    name: Name


@dataclass(frozen=True, slots=True)
class Minus(_Part):
    """A number with its sign turned."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(_Part):
    """Two numbers joined by + - * /."""

    left: Expr
    op: str
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(_Part):
    """Two values joined by < <= = != >= > IN."""

    left: Expr
    op: str
    right: Expr


@dataclass(frozen=True, slots=True)
class Not(_Part):
    """The opposite."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class And(_Part):
    """Two or more conditions that all hold."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(_Part):
    """Two or more conditions one of which holds."""

    parts: tuple[Expr, ...]


Expr = Number | Text | Listed | Name | Call | Exists | Minus | Arithmetic | Compare | Not | And | Or


def written(node: Expr, name: Callable[[Name], str] = attrgetter("path")) -> str:
    """An expression as text, with the brackets that it needs.

    Args:
        node: the expression.
        name: how a name is written.
    """

    part = partial(within, name=name)
    level = _level(node)
    match node:
        case Number(amount=amount, unit=unit):
            return f"{shown(amount)} {unit}{'' if amount == 1 else 's'}" if unit else shown(amount)
        case Text(value=value):
            return shown(value)
        case Listed(items=items):
            return f"({', '.join(map(written, items))})"
        case Name():
            return name(node)
        case Call(function=function, argument=argument):
            return f"{function}({written(argument, name)})"
        case Exists(name=of):
            return f"EXISTS {name(of)}"
        case Minus(operand=operand):
            return f"-{part(operand, level)}"
        case Arithmetic(left=left, op=op, right=right):
            return f"{part(left, level)} {op} {part(right, level + 1)}"
        case Compare(left=left, op=op, right=right):
            return f"{part(left, level + 1)} {op} {part(right, level + 1)}"
        case Not(operand=operand):
            return f"NOT {part(operand, level)}"
        case And(parts=parts) | Or(parts=parts):
            word = " AND " if isinstance(node, And) else " OR "
            return word.join(part(of, level + 1) for of in parts)


def within(node: Expr, level: int, name: Callable[[Name], str] = attrgetter("path")) -> str:
    """An expression as a part of one whose parts have to bind at least so closely."""
    text = written(node, name)
    return text if _level(node) >= level else f"({text})"


def _level(node: Expr) -> int:
    """How closely a node binds."""
    match node:
        case Arithmetic(op=op):
            return 4 if op in "+-" else 5
        case _:
            return _LEVELS.get(type(node), 7)


_LEVELS: Final[Mapping[type, int]] = {Or: 0, And: 1, Not: 2, Compare: 3, Minus: 6}


@dataclass(frozen=True, slots=True)
class Names(_Node):
    """Names in braces, the value of an option."""

    names: tuple[Name, ...]

    @property
    def value(self) -> tuple[str, ...]:
        """The names alone."""
        return tuple(name.path for name in self.names)

    def __str__(self) -> str:
        return "{" + ", ".join(self.value) + "}"


@dataclass(frozen=True, slots=True)
class Action(_Node):
    """What a policy does."""

    name: str
    arguments: tuple[Name, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name
        )


@dataclass(frozen=True, slots=True)
class Option(_Node):
    """One `key=value` after WITH."""

    key: str
    value: Literal | Names

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


@dataclass(frozen=True, slots=True)
class RankStatement(_Node):
    """Sources, the highest first."""

    sources: tuple[Text, ...]
    source: Source = field(compare=False, repr=False)

    @property
    def id(self) -> str:
        """What replaces this statement has the same id."""
        return "RANK"

    def __str__(self) -> str:
        return "RANK " + " > ".join(_label(source.value) for source in self.sources)


def _label(text: str) -> str:
    bare = _LABEL.fullmatch(text) and text.casefold() not in _KEYWORDS
    return text if bare else shown(text)


@dataclass(frozen=True, slots=True)
class SetStatement(_Node):
    """A setting."""

    name: str
    value: Literal
    source: Source = field(compare=False, repr=False)

    @property
    def id(self) -> str:
        """What replaces this statement has the same id."""
        return f"SET {self.name}"

    def __str__(self) -> str:
        return f"{self.id} = {self.value}"


@dataclass(frozen=True, slots=True)
class PolicyStatement(_Node):
    """A policy: ⟨event, condition, action⟩ of Definition 3.3."""

    name: str
    event: Name
    condition: Expr | None
    actions: tuple[Action, ...]
    options: tuple[Option, ...]
    source: Source = field(compare=False, repr=False)

    @property
    def id(self) -> str:
        """What replaces this statement has the same id."""
        return self.name

    def __str__(self) -> str:
        lines = [f"POLICY {self.name}", f"ON {self.event}"]
        if self.condition is not None:
            lines.append(f"WHEN {self.condition}")
        lines.append(f"DO {', '.join(map(str, self.actions))}")
        if self.options:
            lines.append(f"WITH {', '.join(map(str, self.options))}")
        return "\n  ".join(lines)


Statement = RankStatement | SetStatement | PolicyStatement


# ---------------------------------------------------------------- reading


@lru_cache(maxsize=1)
def _parser() -> Lark:
    grammar = importlib.resources.files(__package__) / "grammar.lark"
    return Lark(grammar.read_text("utf-8"), parser="lalr", maybe_placeholders=True)


def read(source: Source) -> list[Statement]:
    """The statements of a text, in its order.

    Raises:
        PolicyError: it is not in the form of the language.
    """
    try:
        tree = _parser().parse(source.text)
    except UnexpectedInput as error:
        raise _unexpected(source, error) from None
    try:
        statements: list[Statement] = _Syntax(source).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    return statements


@v_args(inline=True)
class _Syntax(Transformer_NonRecursive[Token, Any]):
    """From lark's tree to syntax objects; one method a rule of the grammar."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    def start(self, *statements: Statement) -> list[Statement]:
        return list(statements)

    def rank(self, *sources: Text) -> RankStatement:
        return RankStatement(sources, self._source, at=sources[0].at)

    def source(self, name: Token) -> Text:
        return self.text(name) if name.type == "STRING" else Text(str(name), at=_at(name))

    def setting(self, name: Token, value: Literal) -> SetStatement:
        return SetStatement(str(name), value, self._source, at=_at(name))

    def policy(
        self,
        name: Token,
        event: Token,
        condition: Expr | None,
        actions: tuple[Action, ...],
        options: tuple[Option, ...] | None,
    ) -> PolicyStatement:
        on = Name(str(event), at=_at(event))
        return PolicyStatement(
            str(name), on, condition, actions, options or (), self._source, at=_at(name)
        )

    def actions(self, *actions: Action) -> tuple[Action, ...]:
        return actions

    def action(self, name: Token, *arguments: Token) -> Action:
        return Action(str(name), tuple(map(self.name, arguments)), at=_at(name))

    def options(self, *options: Option) -> tuple[Option, ...]:
        return options

    def option(self, key: Token, value: Literal | Names) -> Option:
        return Option(str(key), value, at=_at(key))

    def names(self, *names: Token) -> Names:
        return Names(tuple(map(self.name, names)), at=_at(names[0]))

    def disjunction(self, *parts: Expr) -> Or:
        return Or(parts, at=parts[0].at)

    def conjunction(self, *parts: Expr) -> And:
        return And(parts, at=parts[0].at)

    def negated(self, keyword: Token, operand: Expr) -> Not:
        return Not(operand, at=_at(keyword))

    def comparison(self, left: Expr, op: Token, right: Expr) -> Compare:
        return Compare(left, op.upper(), right, at=_at(op))

    def arithmetic(self, left: Expr, op: Token, right: Expr) -> Arithmetic:
        return Arithmetic(left, str(op), right, at=_at(op))

    def minus(self, sign: Token, operand: Expr) -> Minus:
        return Minus(operand, at=_at(sign))

    def call(self, function: Token, argument: Expr) -> Call:
        return Call(str(function), argument, at=_at(function))

    def exists(self, keyword: Token, name: Name) -> Exists:
        return Exists(name, at=_at(keyword))

    def listed(self, *items: Literal) -> Listed:
        return Listed(items, at=items[0].at)

    def below_zero(self, sign: Token, number: Number) -> Number:
        return Number(-number.amount, number.unit, at=_at(sign))

    def number(self, token: Token) -> Number:
        amount, unit = _NUMBER_UNIT.fullmatch(token).groups()  # type: ignore[union-attr]
        number = Number(float(amount), unit.casefold(), at=_at(token))
        if math.isinf(number.value):
            raise self._source.error(number.at, "this number is too large to reckon with")
        return number

    def text(self, token: Token) -> Text:
        return Text(token[1:-1].replace("''", "'"), at=_at(token))

    def name(self, token: Token) -> Name:
        return Name(str(token), at=_at(token))


_NUMBER_UNIT = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)\s*([a-z]*?)s?", re.IGNORECASE)


def _at(token: Token) -> int:
    return token.start_pos or 0


# ---------------------------------------------------------------- what does not fit

_SAID: Final = {
    "$END": "the end",
    "LABEL": "a name",
    "WORD": "a name",
    "NAME": "a name",
    "STRING": "a text in single quotes",
    "NUMBER": "a number",
    "DURATION": "a duration such as 30 days",
    "COMPARISON": "one of < <= = != >= >",
    "PLUS": "+",
    "MINUS": "-",
    "TIMES": "*",
    "OVER": "/",
    "COMMA": "','",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "EQUAL": "'='",
    "MORETHAN": "'>'",
}
"""Terminals of the grammar in words; keywords speak for themselves."""
_AFTER: Final = {
    "policy": "the name of a policy",
    "on": "the name of an event",
    "do": "the name of an action",
    "with": "the name of an option",
    "set": "the name of a setting",
    "rank": "the name of a source",
}
"""What the name is that stands after a keyword."""
_HINTS: Final = {
    '"': "a text stands in single quotes",
    "'": "the text that begins here has no closing quote in its line",
    "==": "equality is written =",
    "<>": "inequality is written !=",
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT, or != between two values",
    ";": "statements are separated by white space alone",
    "[": "a list stands in round brackets",
    "NOT": "write NOT a IN b",
}
_SEPARATED = re.compile(r"\d{1,3}([,_]\d{3})+")
_WORD = re.compile(r"\w+")


def _unexpected(source: Source, error: UnexpectedInput) -> PolicyError:
    """An error in form, with what could stand at its place."""
    text = source.text
    if not isinstance(error, UnexpectedToken):
        at = error.pos_in_stream or 0
        found = text[at]
    elif error.token.type == "$END":
        at, found = len(text.rstrip()), ""
    else:
        at, found = _at(error.token), str(error.token)
    before = _parser().parse_interactive(text[:at])
    before.exhaust_lexer()
    expected = before.accepts()  # type: ignore[no-untyped-call]
    keyword = re.search(r"(\w+)\s*$", text[:at])
    name = _AFTER.get(keyword[1].casefold(), "a name") if keyword else "a name"
    words = {_SAID.get(terminal, terminal.lstrip("_")) for terminal in expected - {"$END"}}
    allowed = sorted(name if word == "a name" else word for word in words)
    wrong = f"{found!r} cannot stand here{_hint(text, at, found, allowed)}"
    return source.error(
        at, wrong if found else "the text ends here", f"What can stand here: {listing(allowed)}"
    )


def _hint(text: str, at: int, found: str, allowed: Sequence[str]) -> str:
    """What may have been meant."""
    for wrong in (text[max(at - 1, 0) : at + 1], found.upper()):
        if wrong in _HINTS:
            return f"; {_HINTS[wrong]}"
    if any(run.start() <= at < run.end() for run in _SEPARATED.finditer(text)):
        return "; a number is written without separators"
    if not _WORD.fullmatch(found) or found.casefold() in _KEYWORDS:
        return ""
    if re.search(r"\d\s+$", text[:at]):
        return f"; a duration is in {listing(f'{unit}s' for unit in _SECONDS)}"
    return meant(found, [word for word in allowed if word.isupper()])
