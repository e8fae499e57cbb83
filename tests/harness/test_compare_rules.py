"""The rules of `--fail-on`: what they say, and what is said of those that do not read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steeltrap.harness.compare.comparison import Measure, Versus
from steeltrap.harness.compare.rules import KNOWN, RuleError, follow, read_rules


def versus(*measures: Measure) -> Versus:
    return Versus(
        base="memory", new="memory", pairs=[], steadiness="steady", labelings=2,
        conditions=list(measures), families=[], violations=[], metrics=[],
    )  # fmt: skip


FOUND = versus(
    Measure(name="C1", base=0.02, new=0.03, base_counts=[2, 100], new_counts=[3, 100], verdict="worse"),
    Measure(name="C2", new=0.5, why="BASE: never put to the test"),
    Measure(name="C1", family="flip-flop", base=0.0, new=0.0, verdict="same"),
    Measure(name="stale-read", base=2.0, new=3.0, verdict="worse"),
    Measure(name="recall", base=0.95, new=0.92, verdict="worse"),
    Measure(name="p95_ms", base=10.0, new=12.5, why="wall times"),
    Measure(name="failed", base=0.0, new=1.0, verdict="worse"),
    Measure(name="served_tokens", base=200.0, new=200.0, verdict="same"),
)  # fmt: skip


def states(text: str) -> list[str]:
    return [follow(rule, FOUND).state for rule in read_rules(text)]


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        ("C1>0.02", "broken"),
        ("C1>0.03", "kept"),
        ("C1>=0.03", "broken"),
        ("C1>2%", "broken"),
        ("C1>+0.01", "kept"),
        ("C1>+0.009", "broken"),
        ("C1>+40%", "broken"),
        ("C1>+50%", "kept"),
        ("C1", "broken"),
        ("C1@flip-flop>0", "kept"),
        ("C1@'flip-flop' > 0", "kept"),
        ("stale-read@flip-flop>0", "kept"),
        ("stale-read@expiry>0", "unmeasured"),
        ("stale-read>2", "broken"),
        ("recall<0.9", "kept"),
        ("recall<93%", "broken"),
        ("recall<-0.02", "broken"),
        ("recall<-5%", "kept"),
        ("p95_ms>+20%", "broken"),
        ("p95_ms>+25%", "kept"),
        ("p95_ms>12", "broken"),
        ("failed>0", "broken"),
        ("failed>+1000%", "broken"),
        ("served_tokens>+0", "kept"),
        ("C2>0.4", "broken"),
        ("C2>+0.4", "unmeasured"),
        ("C2", "unmeasured"),
        ("C3>0", "unmeasured"),
        ("cost_usd>1", "unmeasured"),
    ],
)
def test_what_a_rule_says(rule: str, state: str) -> None:
    """A limit holds for NEW; with + or - for the change since BASE; with % of a change, for its share."""
    assert [state] == states(rule)


def test_several_rules() -> None:
    """Commas separate, blanks do not matter, and nothing is no rule."""
    assert states(" C1 > 0.02 ,p95_ms>+20%,recall ") == ["broken", "broken", "broken"]
    assert [rule.text for rule in read_rules("C1 > 0.02, recall")] == ["C1 > 0.02", "recall"]
    assert read_rules("  ") == []


def test_a_rule_says_what_became_of_it() -> None:
    """The words name the system, the rule, and the numbers."""
    words = [follow(rule, FOUND).words for rule in read_rules("C1>0.02,p95_ms>+20%,C2")]
    assert words == [
        "memory: C1>0.02: it is 0.03",
        "memory: p95_ms>+20%: 10 -> 12.5",
        "memory: C2: BASE: never put to the test",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C7>0", "column 1: 'C7' is not known\n    C7>0\n    ^\nKnown: C1, C2"),
        ("recal<1", "column 1: 'recal' is not known; did you mean recall?"),
        ("c1>0", "column 1: 'c1' is not known; did you mean C1?"),
        ("C1>0, ,", "column 7: ',' cannot stand here\n    C1>0, ,\n          ^\nWhat can stand here: a name"),
        ("C1>", "column 4: the text ends here\n    C1>\n       ^\nWhat can stand here: a number"),
        ("C1=0", "column 3: '=' cannot stand here"),
        ("C1>1e3", "column 4: '1' cannot stand here"),
        ("C1 C2", "column 4: 'C' cannot stand here"),
        ("C1>-0.01", "column 4: >-0.01 limits nothing"),
        ("recall<+1%", "column 8: <+1% limits nothing"),
        ("p95_ms>20%", "column 8: p95_ms is no share, so 20% says nothing\n    p95_ms>20%\n           ^\nWrite >+20%"),
        ("p95_ms", "column 1: p95_ms needs a limit"),
        ("recall@expiry<1", "column 8: recall is measured over all families"),
        ("C1>0\x1b[31m", "column 5: '\\x1b' cannot stand here\n    C1>0 [31m\n        ^"),
    ],
)  # fmt: skip
def test_what_does_not_read_is_shown_at_its_place(text: str, message: str) -> None:
    """An error points at the place, and says what is known or could stand there."""
    with pytest.raises(RuleError) as error:
        read_rules(text)
    assert str(error.value).startswith(f"--fail-on, {message}")


@given(st.text(alphabet="C1@>=<+-%,. recal's_m0\n\x00é", max_size=20))
def test_any_text_reads_or_is_refused_with_words(text: str) -> None:
    """Whatever is written, there is a list of rules or an error that says where."""
    try:
        rules = read_rules(text)
    except RuleError as error:
        assert "column" in str(error)  # noqa: PT017
    else:
        assert all(rule.name in KNOWN for rule in rules)
