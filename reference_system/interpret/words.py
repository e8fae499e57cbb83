"""An interpreter without a model: a few rules for English, and notes for all the rest.

What a rule takes becomes a statement. What no rule takes is kept word for word as one note of the
turn, in a field of its own, so that nothing that was said is lost or replaces anything, and
everything can be found by meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from steeltrap.reference_system.interpret.base import Known, Sketch, Speech
from steeltrap.reference_system.interpret.dates import DAY, instant_in
from steeltrap.reference_system.interpret.phrases import (
    QUOTED,
    Setting,
    aside,
    commands,
    importance,
    read_sentence,
)
from steeltrap.reference_system.state import key
from steeltrap.reference_system.statements import Fact, Place, Question, Statement

__all__ = ["WordsInterpreter"]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

SHOWN: Final = 12
"""Stored topics that are looked at."""
NEAR: Final = 0.6
"""Cosine from which on a note of no known speaker goes to the topic that is nearest by meaning."""
LONGEST: Final = 300
"""Characters of a sentence that rules are tried on; a longer one is a note."""


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_LINE = re.compile(r"(?P<name>[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}):\s+(?=\S)")
_NO_SPEAKER: Final = frozenset(
    "answer attention btw correction example fact fwd fyi hint important info link news note notes"
    " ps question quote gossip hearsay re reminder rumor rumour source subject summary system tip tool title todo update url warning"
    " please remember".split()
)
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\s*\n+\s*")
_SHORT = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|approx|e\.g|i\.e)\.$")


class WordsInterpreter:
    """Reads by rules; see `phrases` for them.

    A line of a conversation between people, `Name: words`, is one note about whoever said it.

    Args:
        embed: texts to unit vectors, (texts, dimension); None: notes go by names alone.
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    def statements(self, speech: Speech, known: Known) -> Sequence[Statement]:
        """What an utterance says; never empty unless the utterance is."""
        if not speech.text.strip():
            return ()
        vouched = speech.role in ("user", "assistant") and not commands(speech.text)
        said_by = "owner" if vouched else "content"
        speaker = _speaker(speech.text)
        if speaker:
            return (_note(speech, speaker, speech.text, said_by),)
        shown = known(speech.text, SHOWN)
        found, rest = self._read(speech, said_by, shown) if vouched else ([], speech.text)
        if rest:
            found.append(_note(speech, self._home(speech, shown), rest, said_by))
        return tuple(found)

    def _read(
        self, speech: Speech, said_by: str, shown: Sequence[Sketch]
    ) -> tuple[list[Statement], str]:
        """The statements that rules find, and the words that are left."""
        me = speech.speaker or speech.role
        setting = Setting(speech.at, me, said_by, {key(sketch.title) for sketch in shown})
        found: list[Statement] = []
        left, tag = [], ""
        for sentence in _sentences(speech.text):
            main, remark = aside(sentence)
            said = read_sentence(main, setting) if len(sentence) <= LONGEST else []
            found += said
            if said:
                left += [remark] if remark else []
            elif importance(sentence):
                tag = importance(sentence)
            else:
                left.append(sentence)
        if not found:
            return [], speech.text
        return [_tagged(statement, tag) for statement in found], " ".join(left)

    def _home(self, speech: Speech, shown: Sequence[Sketch]) -> str:
        """The topic of a note: whoever spoke, what is named, what is near, or the role."""
        if speech.speaker:
            return speech.speaker
        named = _named([sketch.title for sketch in shown], speech.text)
        if named:
            return named[0]
        if self._embed is not None and shown:
            topics = [f"{sketch.title}. {sketch.summary}" for sketch in shown]
            vectors = self._embed([speech.text, *topics])
            nearness = vectors[1:] @ vectors[0]
            best = int(nearness.argmax())
            if nearness[best] >= NEAR:
                return shown[best].title
        return speech.role

    def question(self, text: str, at: str, tenant: str, known: Known) -> Question:  # noqa: ARG002
        """What a question asks for: the known names in it, and cues for the past and for ties."""
        shown = known(text, SHOWN)
        if _OWN.search(text) and all(key(sketch.title) != "user" for sketch in shown):
            shown = [*shown, *(s for s in known("user", 1) if key(s.title) == "user")]
        places = _places(text, shown)
        titles = _named([sketch.title for sketch in shown], text)
        whole = tuple(Place(title, "") for title in titles)
        if whole and _ties(text, titles):
            return Question(text, places or whole, "structural")
        if _WHOLE.search(text) and not places:
            places = whole
        if not (_FORMER.search(text) or _AS_OF.search(text) or (places and _WAS.search(text))):
            return Question(text, places)
        then = instant_in(text, at, "back", end=True)
        then = min(then, at) if then else None  # a day that is not over ends now
        if _KNEW.search(text):
            return Question(text, places, "temporal", recorded_by=then)
        return Question(text, places, "temporal", then)


# ---------------------------------------------------------------- utterances


def _speaker(text: str) -> str:
    """Who says a line of a conversation; '' if it is none."""
    found = _LINE.match(text)
    name = found["name"] if found else ""
    capital = all(not word[0].islower() for word in name.split())
    return name if capital and key(name) not in _NO_SPEAKER else ""


def _sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text; what is quoted is never taken apart."""
    quoted = [found.span() for found in QUOTED.finditer(text)]
    begin, span = 0, 0
    for end in _END.finditer(text):
        while span < len(quoted) and quoted[span][1] <= end.start():
            span += 1
        inside = span < len(quoted) and quoted[span][0] < end.start()
        if inside or _SHORT.search(text, max(0, end.start() - 8), end.start()):
            continue
        if text[begin : end.start()].strip():
            yield text[begin : end.start()].strip()
        begin = end.end()
    if text[begin:].strip():
        yield text[begin:].strip()


def _note(speech: Speech, topic: str, words: str, said_by: str) -> Fact:
    """Words that no rule takes, in a field that no other turn has."""
    field = f"note {speech.at[:10]} {speech.turn}"
    return Fact(topic, field, words.strip(), said_by=said_by, tags=("note",))


def _tagged(statement: Statement, tag: str) -> Statement:
    if not tag or not isinstance(statement, Fact):
        return statement
    return msgspec.structs.replace(statement, tags=(tag,))


# ---------------------------------------------------------------- questions

_FORMER = _re(
    r"\bpreviously\b|\bused to be\b|\bin the past\b|\boriginally\b"
    r"|\bbefore (?:the|its|that|it was|it became) (?:last |latest )?(?:change|update|move|correction)"
    r"|\b(?:history|(?:earlier|previous|former) values?|earlier versions?) of\b"
)
"""Asks for the past, whatever it is asked of."""
_AS_OF = _re(rf"\bas of {DAY}\b")
_WAS = _re(r"\b(?:was|were|had|did|before|earlier|previous|former|formerly|over time)\b")
"""Asks for the past of a field that is named; a past tense alone says little."""
_KNEW = _re(r"\b(?:did you|you) (?:know|think|believe|assume)\b|\bon record\b")
_DEPENDENTS = _re(
    r"\bdepend(?:s|ent|ing|encies)?\b|\bfollows? from\b|\bderived from\b"
    r"|\b(?:what|which|who)\b.{0,30}\b(?:is|are|would be|else) affected\b"
)
_RELATED = _re(r"\b(?:related|connected|linked|tied) to\b")
_WHOLE = _re(
    r"\btell me (?:everything |all |more )?about\b|^summari[sz]e\b"
    r"|\b(?:do you|should i|should we|do we) (?:know|remember) (?:about|of)\b"
    r"|^what(?:['’]s| is) (?:new|known) (?:about|of|on|with)\b"
)


def _ties(text: str, titles: Sequence[str]) -> bool:
    """Whether a question asks what is tied to something, not about ties in general."""
    if _DEPENDENTS.search(text):
        return True
    for found in _RELATED.finditer(text):
        beside = (text[max(0, found.start() - 40) : found.start()], text[found.end() :])
        if _named(titles, beside[1][:40]) or (beside[1].strip(" ?") == "" and _named(titles, beside[0])):  # fmt: skip
            return True
    return False


_OWN = re.compile(r"\b(?:[Mm]y|I|me)\b")
"""The user speaks of themselves."""


def _places(text: str, shown: Sequence[Sketch]) -> tuple[Place, ...]:
    """The known fields that a question names, of topics that it names.

    `my F` names the user. Where no topic is named, a field that only one topic has will do.
    """
    titles = _named([sketch.title for sketch in shown], text)
    if _OWN.search(text):
        titles += [s.title for s in shown if key(s.title) == "user" and s.title not in titles]
    known = [Place(s.title, f) for s in shown for f in s.fields if not f.startswith("note ")]
    fields = _named([place.field for place in known], text)
    of = [place for place in known if place.field in fields]
    if titles:
        return tuple(place for place in of if place.topic in titles)
    return tuple(of) if len(of) == 1 else ()


def _named(names: Sequence[str], text: str) -> list[str]:
    """The names that stand in a text as words, in its order; not those within longer ones."""
    spaced = " ".join(text.split())
    spans = sorted(
        (found.start(), -len(found[0]), name)
        for name in names
        if name.strip()
        for found in re.finditer(rf"(?<!\w){re.escape(' '.join(name.split()))}(?!\w)", spaced, re.I)
    )
    chosen: list[str] = []
    last = -1
    for start, minus, name in spans:
        if start >= last:
            last = start - minus
            if name not in chosen:
                chosen.append(name)
    return chosen
