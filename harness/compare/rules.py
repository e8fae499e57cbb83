"""The rules of `--fail-on`: what counts as worse.

    C1>0.02                the rate of NEW is above 2 %  (also C1>2%)
    C1>+0.01               it rose by more than 0.01 over BASE
    p95_ms>+20%            it rose by more than 20 % of what it was
    recall<0.9             recall of NEW is below 0.9
    recall<-0.02           it fell by more than 0.02
    resurrection>0         NEW shows that violation, counted over all scripts
    C1@flip-flop>0         the same of one family alone; also resurrection@flip-flop>0
    recall                 it is worse, as it is judged without rules

Several are separated by commas. Each holds for every system that is compared.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from lark import Lark, Token, Tree, UnexpectedInput, UnexpectedToken

from steeltrap.harness.compare.comparison import Measure, Ruled, Versus
from steeltrap.harness.compare.samples import METRICS
from steeltrap.harness.verdict import BEYOND, CONDITION_OF, CONDITIONS

__all__ = ["Rule", "RuleError", "follow", "read_rules"]

GRAMMAR: Final = r"""
start: rule ("," rule)*
rule: NAME ["@" FAMILY] [OP LIMIT]
NAME: /[A-Za-z][\w-]*/
FAMILY: /[^\s@,<>=']+/ | /'[^'\n]+'/
OP: ">=" | "<=" | ">" | "<"
LIMIT: /[+-]?[0-9]+(\.[0-9]+)?%?(?![\w.])/
%import common.WS
%ignore WS
"""
RATES: Final = (*CONDITIONS, BEYOND, "recall", "evidence_recall")
KNOWN: Final = (*CONDITIONS, BEYOND, *CONDITION_OF, *METRICS)
_SAID: Final = {
    "NAME": "a name",
    "AT": "@ with a family",
    "FAMILY": "the name of a family",
    "OP": "one of > >= < <=",
    "LIMIT": "a number, as 0.02, +0.01 or +20%",
    "COMMA": "','",
}


class RuleError(ValueError):
    """Rules do not read; the message shows where, and what could stand there."""


class Rule(NamedTuple):
    """One limit."""

    text: str
    name: str
    family: str = ""
    op: str = ""
    """Empty: whatever is worse."""
    limit: float = 0.0
    relative: bool = False
    """The limit is one of the change since BASE."""
    percent: bool = False
    """Of a change: as a share of what BASE had."""


def read_rules(text: str) -> list[Rule]:
    """The rules that a text holds; none where it is empty.

    Raises:
        RuleError: it does not read, or names what is not known.
    """
    if not text.strip():
        return []
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(text, error) from None
    return [_rule(text, each) for each in tree.children if isinstance(each, Tree)]


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr")


def _unexpected(text: str, error: UnexpectedInput) -> RuleError:
    at = error.pos_in_stream or 0
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        at, wrong = len(text.rstrip()), "the text ends here"
        expected = set(error.accepts or error.expected)
    else:
        wrong = f"{text[at]!r} cannot stand here"
        before = _parser().parse_interactive(text[:at])
        before.exhaust_lexer()
        expected = set(before.accepts())  # type: ignore[no-untyped-call]
    words = sorted(_SAID[name] for name in expected if name in _SAID)
    return _error(text, at, wrong, f"What can stand here: {', '.join(words)}")


def _error(text: str, at: int, wrong: str, allowed: str) -> RuleError:
    line = "".join(c if c.isprintable() else " " for c in text)
    return RuleError(f"--fail-on, column {at + 1}: {wrong}\n    {line}\n    {' ' * at}^\n{allowed}")


def _rule(text: str, tree: Tree[Token]) -> Rule:
    name, family, op, limit = tree.children
    assert isinstance(name, Token)
    begin = name.start_pos or 0
    last = next(t for t in reversed(tree.children) if isinstance(t, Token))
    words = text[begin : last.end_pos]
    if name not in KNOWN:
        close = difflib.get_close_matches(str(name).casefold(), [k.casefold() for k in KNOWN], 1)
        meant = next(
            (f"; did you mean {k}?" for k in KNOWN if close and k.casefold() == close[0]), ""
        )
        raise _error(
            text, begin, f"{str(name)!r} is not known{meant}", f"Known: {', '.join(KNOWN)}"
        )
    if isinstance(family, Token) and name in METRICS:
        allowed = f"By family are known: {', '.join((*CONDITIONS, BEYOND))} and violation names"
        raise _error(text, family.start_pos or 0, f"{name} is measured over all families", allowed)
    of = str(family).strip("'") if isinstance(family, Token) else ""
    if not isinstance(op, Token) or not isinstance(limit, Token):
        if name.endswith("_ms"):
            raise _error(
                text,
                begin,
                f"{name} needs a limit",
                f"Wall times vary; write for example {name}>+20%",
            )
        return Rule(words, str(name), of)
    return _limited(text, Rule(words, str(name), of, str(op)), limit)


def _limited(text: str, rule: Rule, limit: Token) -> Rule:
    """A rule with its limit, where the two fit."""
    at, relative, percent = limit.start_pos or 0, limit[0] in "+-", limit[-1] == "%"
    if relative and (limit[0] == "+") != rule.op.startswith(">"):
        raise _error(
            text, at, f"{rule.op}{limit} limits nothing",
            "A rise is limited as >+0.01, a fall as <-0.01, a value without + and -",
        )  # fmt: skip
    if percent and not relative and rule.name not in RATES:
        raise _error(
            text, at, f"{rule.name} is no share, so {limit} says nothing",
            f"Write {rule.op}{'+' if rule.op.startswith('>') else '-'}{limit} for a change by so much",
        )  # fmt: skip
    number = float(limit.rstrip("%")) / (100 if percent else 1)
    return rule._replace(limit=number, relative=relative, percent=percent and relative)


# ---------------------------------------------------------------- following


def follow(rule: Rule, found: Versus) -> Ruled:
    """What becomes of a rule for one system."""
    label = f"{found.new}: {rule.text}"
    measure = _measure(rule, found.measures)
    if measure is None:
        why = (
            f"no script of family {rule.family} puts it to the test"
            if rule.family
            else "never put to the test"
        )
        return Ruled(rule=rule.text, state="unmeasured", words=f"{label}: {why}")
    if not rule.op:
        if measure.verdict == "not comparable":
            return Ruled(rule=rule.text, state="unmeasured", words=f"{label}: {measure.why}")
        words = f"{label}: {measure.verdict} ({_shown(measure.base)} -> {_shown(measure.new)})"
        broken = measure.verdict == "worse"
    else:
        value = _value(rule, measure)
        if isinstance(value, str):
            return Ruled(rule=rule.text, state="unmeasured", words=f"{label}: {value}")
        broken = _beyond(rule.op, value, rule.limit)
        words = f"{label}: it is {_shown(measure.new)}"
        if rule.relative:
            words = f"{label}: {_shown(measure.base)} -> {_shown(measure.new)}"
    if broken:
        return Ruled(rule=rule.text, state="broken", words=words)
    if lost := _lost(rule, found):
        words += f", but it can no longer be judged ({lost})"
        return Ruled(rule=rule.text, state="unmeasured", words=words)
    return Ruled(rule=rule.text, state="kept", words=words)


def _lost(rule: Rule, found: Versus) -> str:
    """A limit says nothing of a condition, or of a family's part in it, that is out of sight."""
    return next((each.lost for each in found.conditions if each.name == rule.name), "")


def _measure(rule: Rule, measures: Iterable[Measure]) -> Measure | None:
    """What a rule speaks of; a name that never showed on a family was there to be seen."""
    known = {(each.name, each.family): each for each in measures}
    if found := known.get((rule.name, rule.family)):
        return found
    condition = known.get((CONDITION_OF.get(rule.name, ""), rule.family))
    anywhere = known.get((rule.name, ""))
    tested = condition and condition.new is not None and anywhere and anywhere.new is not None
    if rule.family and tested:
        return Measure(name=rule.name, family=rule.family, base=0.0, new=0.0, verdict="same")
    return None


def _value(rule: Rule, measure: Measure) -> float | str:
    """The number that is held against the limit, or why there is none."""
    base, new = measure.base, measure.new
    if new is None or (rule.relative and base is None):
        return measure.why or f"{'NEW' if new is None else 'BASE'} has no such number"
    if not rule.relative or base is None:
        return new
    change = new - base
    if not rule.percent:
        return change
    # from nothing, any rise is more than every share
    return change / abs(base) if base else change * float("inf") if change else 0.0


def _beyond(op: str, value: float, limit: float) -> bool:
    near = 1e-9
    match op:
        case ">":
            return value > limit + near
        case ">=":
            return value >= limit - near
        case "<":
            return value < limit - near
        case _:
            return value <= limit + near


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
