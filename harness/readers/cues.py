"""Words by which a sentence says that a value is new, over, unsure, or waiting to be looked at.

Only words close to a value, or in the stretch of the sentence that speaks of its unit alone, are
looked at; names are blanked out first, since a topic may be called Pending Review.
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["How", "how", "is_led_to", "is_taken_out", "tells_of_change"]

How = Literal["states", "review", "past", "before", "echo"]

NEAR = 60
"""Characters before a value in which a cue for it may stand."""

_ARTICLE = r"\s*:?\s*(?:be\s+|is\s+|it's\s+)?(?:the\s+)?$"
_TO = re.compile(r"(?:\b(?:(?<!used )to|into|now|instead)|→|->|=>)" + _ARTICLE, re.I)
_OUT = re.compile(
    r"\b(?:used to be|no longer|not|never|instead of|rather than|formerly|previously|originally"
    r"|was|from|old(?: value)?|not any ?more|war früher)\s*:?\s*(?:the\s+)?$",
    re.I,
)
_CHANGE = re.compile(
    r"\b(?:from|was|were|had been|used to|no longer|not|never|instead|rather|previous(?:ly)?"
    r"|former(?:ly)?|earlier|before|old|original(?:ly)?|changed?|moved?|updated?|revised?"
    r"|replace[sd]?|supersede[sd]?|corrected|reverted|now|since|until|war|vorher|früher|jetzt"
    r"|statt)\b|→|->|=>|<-|←",
    re.I,
)
_PAST = re.compile(
    r"\b(?:previously|formerly|no longer|used to be|not any ?more|superseded|obsolete|outdated"
    r"|withdrawn|until then|war früher)\b|\(old\)|\bold value\b",
    re.I,
)
_UNSURE = re.compile(
    r"\b(?:unconfirmed|unverified|alleged(?:ly)?|rumou?r(?:ed)?|ignored?|disregarded)\b", re.I
)
_REVIEW = re.compile(
    r"\bneeds? (?:a )?review\b"
    r"|\b(?:to be|awaiting|waiting for|pending|under) (?:re-?)?(?:view|confirm|evaluat)\w*"
    r"|\bmay be (?:stale|outdated|out of date)\b",
    re.I,
)


def is_led_to(sentence: str, place: int) -> bool:
    """Whether the words before a value say that something changed to it."""
    return _TO.search(sentence, max(0, place - NEAR), place) is not None


def is_taken_out(sentence: str, place: int) -> bool:
    """Whether the words before a value say that it holds no longer, or never did."""
    return _OUT.search(sentence, max(0, place - NEAR), place) is not None


def tells_of_change(sentence: str, stretch: tuple[int, int]) -> bool:
    """Whether a stretch of a sentence tells that one value took another's place."""
    return _CHANGE.search(sentence, *stretch) is not None


def how(sentence: str, stretch: tuple[int, int], place: int) -> How:
    """How a sentence means the one value that it gives a unit, at `place`."""
    part = sentence[slice(*stretch)]
    if _REVIEW.search(part):
        return "review"
    if is_led_to(sentence, place) and not _UNSURE.search(part):
        return "states"
    if _UNSURE.search(part):
        return "echo"
    return "past" if _PAST.search(part) or is_taken_out(sentence, place) else "states"
