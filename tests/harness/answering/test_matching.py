"""Judges that compare texts, by worked examples."""

from __future__ import annotations

import pytest

from steeltrap.harness.answering.answers import Answer
from steeltrap.harness.answering.judging import compare_texts, judge_of
from steeltrap.harness.answering.matching import abstains, exact, f1, f1_locomo, substring
from steeltrap.harness.script import Probe

SUBSTRING = [
    # gold, answer, score
    ("Lisbon", "You moved to Lisbon.", 1),
    ("Lisbon", "LISBON", 1),
    ("the United States", "United States of America", 1),
    ("St. John's", "st johns", 1),
    ("Lisbon", "Porto", 0),
    ("New York", "york new", 0),
    ("1", "in 2021", 1),  # the rule's own weakness: it knows no words
    ("?", "Who knows", 0),  # a gold of punctuation alone does not stand in everything
    ("?", "?", 1),
    ("Lisbon", "It is not Lisbon", 1),
]
EXACT = [
    ("Lisbon", "lisbon.", 1),
    ("the cat", "a cat", 1),
    ("Lisbon", "You moved to Lisbon", 0),
    ("7 May", "May 7", 0),
]
F1 = [
    ("green", "green", 1.0),
    ("a green bicycle", "the bicycle is green", 0.8),  # 2 of 2 and 2 of 3
    ("painting", "paints", 1.0),  # stemmed
    ("cats and dogs", "dogs, cats", 1.0),  # commas, `and` and order do not count
    ("dog dog", "dog", 2 / 3),  # each token is found as often as it stands there
    ("Lisbon", "Porto", 0.0),
    ("Lisbon", "", 0.0),
]
LOCOMO = [
    # category, gold, answer, score
    ("1", "Spain, Italy", "Italy, Spain", 1.0),  # each part takes its best part
    ("1", "Spain, Italy", "Italy", 0.5),
    ("1", "Spain, Italy", "Spain and Italy", 2 / 3),  # the answer is split at commas alone
    ("2", "7 May 2023", "May 7, 2023", 1.0),
    ("2", "7 May 2023", "8 May 2023", 2 / 3),
    ("3", "Yes; she likes the sea", "yes", 1.0),  # up to the semicolon
    ("3", "Yes; she likes the sea", "she likes the sea", 0.0),
    ("4", "Rex", "Rex", 1.0),
    ("5", "", "No information available", 1.0),
    ("5", "", "This was not mentioned in the conversation.", 1.0),
    ("5", "", "She adopted a cat.", 0.0),
    ("5", "", "Not clear", 0.0),
]


@pytest.mark.parametrize(("gold", "answer", "score"), SUBSTRING)
def test_substring(gold: str, answer: str, score: float) -> None:
    """Lower case, no punctuation, no articles; then the gold stands somewhere in the answer."""
    assert score == substring(answer, [gold])


@pytest.mark.parametrize(("gold", "answer", "score"), EXACT)
def test_exact(gold: str, answer: str, score: float) -> None:
    """The same normalising, and nothing beside the gold."""
    assert score == exact(answer, [gold])


@pytest.mark.parametrize(("gold", "answer", "score"), F1)
def test_f1(gold: str, answer: str, score: float) -> None:
    """Precision and recall of stemmed tokens."""
    assert score == pytest.approx(f1(answer, [gold]))


@pytest.mark.parametrize(("category", "gold", "answer", "score"), LOCOMO)
def test_f1_of_locomo(category: str, gold: str, answer: str, score: float) -> None:
    """Each category is scored in LoCoMo's own way."""
    assert score == pytest.approx(f1_locomo(answer, gold, category))


def test_any_spelling_will_do() -> None:
    """Where a record has several answers, the best counts."""
    assert 1.0 == substring("in NYC", ["New York", "NYC"]) == exact("nyc", ["New York", "NYC"])
    assert 1.0 == f1("nyc", ["New York", "NYC"])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("I do not know.", True),
        ("I do not know where she lives.", True),
        ("No information available", True),
        ("She said: I do not know.", False),  # somebody's words in an answer are no abstention
        ("I know.", False),
        ("Unknown Pleasures", False),
    ],
)
def test_abstentions_are_what_readers_are_told_to_say(answer: str, found: bool) -> None:
    """No list of phrases is guessed at: other words are no abstention to a comparison of texts."""
    assert found == abstains(answer)


@pytest.mark.parametrize(
    ("judge", "judged", "gold", "rubric", "answer", "verdict"),
    [
        ("substring", "substring", "Rex", (), "It is Rex", "correct"),
        ("substring", "substring", "Rex", ("Max",), "It is Max", "correct"),
        ("substring", "substring", "Rex", (), "I do not know.", "abstained"),
        ("substring", "substring", "Rex", (), "It is Tom", "wrong"),
        ("substring", "substring", "no", (), "I do not know.", "abstained"),
        ("f1", "locomo/open-domain", "No", (), "No information available", "abstained"),
        ("exact", "exact", "Rex", (), "It is Rex", "wrong"),
        ("f1", "locomo/multi-hop", "Spain, Italy", (), "Italy, Spain", "correct"),
        ("f1", "locomo/2", "7 May 2023", (), "No information available", "abstained"),
        ("f1", "locomo/adversarial", "", (), "No information available", "correct"),
        ("f1", "locomo/adversarial", "", (), "A cat", "wrong"),
        ("exact", "longmemeval/abstention", "never said", (), "I do not know.", "correct"),
        ("substring", "beam/information-extraction", "Rex", ("says Max",), "says Max", "wrong"),
    ],
)  # fmt: skip
def test_verdicts_without_a_model(
    judge: str, judged: str, gold: str, rubric: tuple[str, ...], answer: str, verdict: str
) -> None:
    """Abstaining is right only where there is nothing to know; points of a rubric are no spellings."""
    asked = Probe(
        at="2026-01-01T10:00", id="q", ask="evidence", text="?", gold=gold, rubric=rubric,
        judged=judged,
    )  # fmt: skip
    line = Answer(step=0, question="q", prompt_sha256="", items=0, context_tokens=0, text=answer)
    assert verdict == compare_texts(asked, line, judge_of(judge, "")).verdict
