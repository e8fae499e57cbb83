"""The rules of `WordsInterpreter` for English sentences: what each says, and what none may.

They are few and narrow on purpose: what no rule takes is kept as a note, while a fact that was
misread would replace a right one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from steeltrap.reference_system.interpret.dates import DAY, instant_in, only_relative
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.state import key
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Same,
    Statement,
    Withdrawal,
)

__all__ = ["QUOTED", "Setting", "aside", "commands", "importance", "read_sentence"]


class Setting(NamedTuple):
    """What a sentence has to be read with."""

    at: str
    me: str
    """The topic of whoever says `my`."""
    said_by: str
    titles: Collection[str]
    """Keys of topics that are known."""


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# ---------------------------------------------------------------- places

_FIELD = r"[^\W_][\w&/'’ -]{0,48}"
_TOPIC = r"[^\W_][^\"“”?!:;,()]{0,60}?"
_PLACES: Final = (
    _re(rf"my (?:own )?(?P<field>{_FIELD})"),
    _re(rf"(?:the )?(?P<topic>{_TOPIC})['’]s? (?P<field>{_FIELD})"),
)
_OF = _re(r" (?:of|for) ")
_NO_NAME = _re(
    r"\b(?:and|or) (?:the|my|our)\b|['’]s\b.*['’]s\b"
    r"|\b(?:is|are|was|were|has|have|had|follows?|depends?|that|which|who|because)\b"
)
"""Two things, or half a sentence."""
_PRONOUNS: Final = frozenset(
    "i me you he him she her it they them we us this that these those there here what who how"
    " where when why let one someone somebody everyone everybody everything nothing anything"
    " something all both mine ours yours my your our his its their".split()
)
_NO_FIELD: Final = frozenset(
    "all best bit bottom bunch bulk centre center couple end fact half idea kind lack list lot many"
    " middle most one part piece point pity problem purpose reason rest shame side some sort thing"
    " top trouble truth use way worst".split()
)


def _place(phrase: str, setting: Setting) -> Place | None:
    """`the F of X`, `F for X`, `X's F` or `my F`; None if the phrase is nothing of these."""
    phrase = re.sub(r"^(?:the|an?) ", "", phrase.strip(), flags=re.IGNORECASE)
    for pattern in _PLACES:
        found = pattern.fullmatch(phrase)
        if found:
            topic = found.groupdict().get("topic") or setting.me
            return _named(topic, found["field"])
    places = []
    for found in _OF.finditer(phrase):
        place = _named(phrase[found.end() :], phrase[: found.start()])
        if place is not None:
            places.append(place)
    return min(places, key=lambda place: _strangeness(place.topic, setting), default=None)


def _strangeness(topic: str, setting: Setting) -> int:
    """0: the topic is known; 1: it begins like a name; 2: neither. `the day of return for Bern`."""
    return 0 if key(topic) in setting.titles else 2 if topic[0].islower() else 1


def _named(topic: str, field: str) -> Place | None:
    """The place of these names, if they can be names."""
    topic = re.sub(r"^(?:the|our) ", "", topic.strip(), flags=re.IGNORECASE)
    field = re.sub(r"^(?:current|new|latest) ", "", field.strip(), flags=re.IGNORECASE)
    if field[1:2].islower():
        field = field[0].lower() + field[1:]  # it began the sentence
    fits = (
        re.fullmatch(_TOPIC, topic, re.IGNORECASE)
        and re.fullmatch(_FIELD, field)
        and len(topic.split()) <= 6
        and len(field.split()) <= 5
        and key(topic).split()[0] not in _PRONOUNS
        and not _NO_NAME.search(f"{topic} {field}")
        and key(field).split()[0] not in _NO_FIELD | _PRONOUNS
    )
    return Place(topic, field) if fits else None


# ---------------------------------------------------------------- what is no fact

_UNREAL = _re(
    r"\?|^(?:if|suppose|supposing|imagine|assuming|unless)\b|\bwhat if\b|\bhypothetical"
    r"|\b(?:would|could|might|maybe|perhaps|probably|possibly|wish|hope|dream(?:t|ed)?|thought)\b"
    r"|\bI (?:think|guess|believe|suppose)\b|\bnot sure\b"
)
"""Asked, supposed or doubted."""
_PAST = _re(
    r"\bused to\b|\bpreviously\b|\bformerly\b|\boriginally\b|\bearlier\b|\bin the past\b"
    r"|\bback (?:when|then)\b|\blong ago\b|\bremember when\b|\bout of date\b|\boutdated\b|\bhistory\b"
    r"|\bold (?:copy|draft|email|file|mail|message|minutes|note|notes|plan|printout|slide|version)\b"
)
"""Said of an earlier time."""
_DENIED = _re(r"\b(?:not|never|hardly|neither|nor|wrong|false|untrue)\b|n['’]t\b")
_COMMAND = _re(
    r"\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:instructions?|prompts?|rules"
    r"|(?:everything|anything|all|what)(?: that)? (?:was|has been|were|you)\b"
    r"|(?:previous|prior|above|earlier) (?:messages?|statements?|facts?|text))"
    r"|\bsystem prompt\b|^\s*\W{0,4}system\W{0,4}:|<\|?/?(?:system|im_start|im_end|inst)\b"
    r"|(?:^|[.!?:\"“])\s*you are now (?:an?|in|the)\b|\byou must (?:now )?(?:store|remember|update|set|delete|say|answer)\b"
)
_COMMAND_QUOTED = _re(
    r"\b(?:ignore|disregard|forget|override|remember|store|update|set|delete|replace|overwrite)\b"
)
QUOTED: Final = re.compile(r"```.*?(?:```|\Z)|\"[^\"]*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」|^>.*$", re.DOTALL | re.MULTILINE)  # fmt: skip
"""Words that are shown, not said."""


def commands(text: str) -> bool:
    """Whether a text holds what speaks to the memory itself, as text in documents may.

    All of it is then content: nobody vouches for what stands beside such a line.
    """
    if _COMMAND.search(text):
        return True
    shown = (found[0] for found in QUOTED.finditer(text) if not found[0].startswith("```"))
    return any(_COMMAND_QUOTED.match(line.lstrip('"“„«「> ')) for line in shown)


_IMPORTANCE: Final = (
    ("vital", _re(r"(?:this|that|it)(?:['’]s| is) (?:vital|crucial|critical|very important|essential)[.!]*|(?:do not|don['’]t|never) forget (?:this|that|it)[.!]*")),
    ("trivial", _re(r"(?:this|that|it)(?:['’]s| is) (?:trivial|unimportant|not important|of no importance)[.!]*|(?:this|that|it) (?:does not|doesn['’]t) (?:really )?matter[.!]*")),
)  # fmt: skip


def importance(sentence: str) -> str:
    """The tag that a sentence such as `This is vital.` gives to what is said beside it, or ''."""
    return next((tag for tag, pattern in _IMPORTANCE if pattern.fullmatch(sentence.strip())), "")


# ---------------------------------------------------------------- facts

_LEAD = _re(
    r"^(?:(?:please |kindly )?(?:remember|note|keep in mind|be aware|bear in mind)(?: that|:)?"
    r"|fyi|for the record|by the way|btw|update|news|just so you know|as of (?:now|today)"
    r"|from now on|starting today|just to confirm|to confirm|reminder|in short|and|but|so|also"
    r"|hi|hello|hey|ok|okay|well|yes|actually|in fact|now)\b[,:;!]? +"
)
_CORRECTION = _re(
    r"^(?:correction|i (?:misspoke|was mistaken|was wrong|made a mistake|mixed that up))"
    r"(?: (?:earlier|before|there|about (?:that|this)))?[,:;.–—-]+ *(?:in fact,? |actually,? )?"
)
_REPORTS: Final = (
    _re(r"^(?:rumou?r has it|word has it|word is|i(?:['’]ve| have)? (?:over)?heard(?: from [^,]{1,40})?|apparently|allegedly|supposedly|reportedly|hearsay|they say|people say)[,:]?(?: that)? (?P<said>.+)"),
    _re(r"^according to (?P<who>[^,]{1,60}), (?P<said>.+)"),
    _re(r"^(?P<who>(?:an?|some|one of (?:my|our|the)|my|our|the) [\w' -]{1,40}?|someone|somebody|[^\W\d_][\w'-]+(?: [A-Z][\w'-]+)?) (?:says|said|told me|claims|claimed|mentioned|thinks|reckons|wrote|believes|is sure|is convinced)(?: that|,|:)? (?P<said>.+)"),
)  # fmt: skip
_COLLEAGUE = _re(r"\b(?:colleagues?|co-?workers?|team-?mates?)\b")

_GOES = r"(?:changed|moved|rescheduled|shifted|switched|increased|raised|lowered|reduced|cut|renamed|updated|set|adjusted|postponed|delayed|pushed(?: back)?|brought forward|corrected)"  # fmt: skip
_OLD = r"(?: from .{1,60}?)?"
_NEXT = rf"(?= (?:\d|{DAY}))"
_VERBS: Final = _re(
    rf" (?:has |have |had to |was |were |got |is |are )?(?:been |be )?(?:now )?{_GOES}(?: back)?{_OLD} (?:to|at|for|on) "
    r"| (?:goes|went|switches|moves|changes|shifts)(?: back)?" + _OLD + r" to "
    rf"| (?:falls on|comes to|stands at|stays at|stays|remains|equals|reads|will be|(?:is|are)(?: now| still| currently)?)(?: (?:at|on|by){_NEXT})? "
)  # fmt: skip
_ORDER = _re(rf"^(?:please )?(?:set|change|update|move|switch|shift|raise|lower|reschedule|postpone) (?P<place>.+?){_OLD} to (?P<value>.+)$")  # fmt: skip
_WAS = _re(r" (?:was|were|is|are|should (?:be|have been)|has (?:always )?been)(?: always| really| in fact)? ")  # fmt: skip
_SINCE = _re(rf" (?:has|have) been (?P<value>.{{1,80}}?) since (?P<day>{DAY}\b.*)")
_INSTEAD = _re(r"(?:no longer|not|n['’]t) (?P<old>[^,;–—]{1,60}?)(?: any ?more)?(?:,? but|[,;–—] ?(?:it(?:['’]s| is)|but|now))(?: now)? ")  # fmt: skip
_UNTIL = _re(rf",?(?: but)?(?: only)? (?:until|till|through) (?P<day>{DAY}.{{0,12}})$")
_TAILS = _re(
    r"(?:, (?:and )?not|,? instead of|,? rather than) [^,;]{1,60}$"
    r"|,? (?:now|again|instead|as of (?:now|today)|from now on|from here on|all along|from the start"
    r"|the whole time|after all|once more|as before|until further notice)$"
)
_NO_VALUE = _re(
    r"(?:that|to|why|because|when|how|if|like|as|so|very|too|really|quite|pretty|just|a lot|great"
    r"|good|bad|nice|amazing|awesome|lovely|fine|being|getting|what)\b|\w+ing\b(?! at)"
)


_ASIDE = _re(
    r", (?P<aside>(?:because|as (?!of\b)|since|and (?:I|that|this|it|we)\b|it was|in case|after|which|so|although"
    r"|though|while|I|we|this|that|rest assured)\b.*)$"
)


def aside(sentence: str) -> tuple[str, str]:
    """A sentence and the remark at its end, such as `because of the strike`, or ''.

    A remark that casts doubt on the sentence stays with it.
    """
    found = _ASIDE.search(sentence)
    if not found or any(cue.search(found["aside"]) for cue in (_UNREAL, _PAST, _DENIED)):
        return sentence, ""
    return sentence[: found.start()], found["aside"]


def read_sentence(sentence: str, setting: Setting) -> list[Statement]:
    """What a sentence says by the first rule that takes it; empty: no rule does."""
    sentence = " ".join(sentence.split()).strip().rstrip(".!").rstrip()
    if "?" in sentence:
        return []
    before = ""
    while before != sentence:
        before, sentence = sentence, _LEAD.sub("", sentence, count=1)
    for rule in (_withdrawn, _depends, _related, _reported, _corrected, _told):
        statement = rule(sentence, setting)
        if statement is not None:
            return [statement]
    return []


def _told(sentence: str, setting: Setting) -> Fact | None:
    instead = _INSTEAD.search(sentence)
    if instead:
        sentence = f"{sentence[: instead.start()].rstrip()} {sentence[instead.end() :]}"
    sentence, until = _expiry(sentence, setting)
    sentence = _bare(sentence)
    if _UNREAL.search(sentence) or _PAST.search(sentence) or _DENIED.search(sentence):
        return None
    for found in _SINCE.finditer(sentence):
        since = instant_in(found["day"], setting.at, "back")
        if since:
            return _fact(sentence[: found.start()], found["value"], setting, valid_from=since)
    order = _ORDER.match(sentence)
    if order:
        return _fact(order["place"], order["value"], setting, until=until)
    return _at_verb(_VERBS, sentence, setting, until=until)


def _corrected(sentence: str, setting: Setting) -> Fact | None:
    found = _CORRECTION.match(sentence)
    if not found:
        return None
    sentence = _bare(sentence[found.end() :])
    if _UNREAL.search(sentence) or _DENIED.search(sentence):
        return None
    return _at_verb(_WAS, sentence, setting, corrects=True) or _at_verb(
        _VERBS, sentence, setting, corrects=True
    )


def _reported(sentence: str, setting: Setting) -> Fact | None:
    for pattern in _REPORTS:
        found = pattern.match(sentence)
        doubted = _UNREAL.search(sentence) or _PAST.search(sentence)
        if found and not doubted and key(found[0]).split()[0] not in ("we", "you"):
            who = found.groupdict().get("who", "")
            return _told(found["said"], setting._replace(said_by=_source(who, setting)))
    return None


def _source(who: str, setting: Setting) -> str:
    """Whose words are passed on, in the terms that policies rank; a name stands for itself."""
    if setting.said_by != "owner":
        return setting.said_by
    if _COLLEAGUE.search(who):
        return "colleague"
    name = who[:1].isupper() and key(who).split()[0] not in _PRONOUNS | {"a", "an", "the"}
    return who if name else "hearsay"


def _at_verb(
    verbs: re.Pattern[str],
    sentence: str,
    setting: Setting,
    until: str | None = None,
    corrects: bool = False,
) -> Fact | None:
    """The fact whose place stands before the first verb that has one, and its value behind it."""
    for found in verbs.finditer(sentence):
        place, value = sentence[: found.start()], sentence[found.end() :]
        fact = _fact(place, value, setting, until=until, corrects=corrects)
        if fact is not None:
            return fact
    return None


def _fact(
    place: str,
    value: str,
    setting: Setting,
    valid_from: str | None = None,
    until: str | None = None,
    corrects: bool = False,
) -> Fact | None:
    named, value = _place(place, setting), value.strip(" ,;:")
    if named is None or not value or len(value) > 200 or _NO_VALUE.match(value):
        return None
    if only_relative(value):
        value = (instant_in(value, setting.at, "ahead") or value).removesuffix("T00:00")
    return Fact(named.topic, named.field, value, setting.said_by, valid_from, until, corrects)


def _expiry(sentence: str, setting: Setting) -> tuple[str, str | None]:
    """A sentence without its `until …`, and the instant from which it holds no longer."""
    found = _UNTIL.search(sentence)
    until = instant_in(found["day"], setting.at, "ahead") if found else None
    return (sentence[: found.start()], until) if found and until else (sentence, None)


def _bare(sentence: str) -> str:
    """A sentence without `, not the old value`, `again` and the like at its end."""
    before = ""
    while before != sentence:
        before, sentence = sentence, _TAILS.sub("", sentence)
    return sentence


# ---------------------------------------------------------------- withdrawals

_GONE = _re(
    r"^(?P<place>.+?) (?:no longer (?:applies|apply|holds|exists?|stands|counts)"
    r"|(?:does not|doesn['’]t) (?:apply|hold|exist) any ?more|(?:is|are) no longer (?P<old>.+)"
    r"|(?:has been|have been|is|are|was|were) (?:now )?(?:withdrawn|cancell?ed|dropped|removed|deleted|revoked|void|scrapped|called off|off the table))\b"
    r"(?P<rest>.*)$"
)
_NONE_LEFT: Final = (
    _re(r"^there is (?:no longer an?y?|no more|no) (?P<place>.+?)(?: any ?more| any longer)?$"),
    _re(
        r"^(?P<topic>.+?) (?:no longer (?:has|have) an?y?|(?:has|have) no) (?P<field>.+?)(?: any ?more| any longer)?$"
    ),
)


def _withdrawn(sentence: str, setting: Setting) -> Withdrawal | None:
    if _UNREAL.search(sentence) or _PAST.search(sentence) or _INSTEAD.search(sentence):
        return None
    found = _GONE.match(sentence)
    place = _place(found["place"], setting) if found and len(found["rest"]) <= 60 else None
    if place:
        return Withdrawal(place.topic, place.field, setting.said_by)
    if not re.search(r"no longer|any ?more|any longer|there is no", sentence, re.IGNORECASE):
        return None
    for pattern in _NONE_LEFT:
        found = pattern.match(sentence)
        if found:
            place = _none_left(found.groupdict(), setting)
            return Withdrawal(place.topic, place.field, setting.said_by) if place else None
    return None


def _none_left(said: dict[str, str], setting: Setting) -> Place | None:
    if "place" in said:
        return _place(said["place"], setting)
    return _named(setting.me if key(said["topic"]) == "i" else said["topic"], said["field"])


# ---------------------------------------------------------------- ties

_COUNTS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}  # fmt: skip
_PARTS: Final = {"half": (1, 2), "twice": (2, 1), "double": (2, 1), "three times": (3, 1), "a third": (1, 3), "a quarter": (1, 4), "a tenth": (1, 10)}  # fmt: skip
_OFFSET = r"(?P<count>\d{1,4}|[a-z]+) (?P<unit>day|week)s? (?P<side>after|before|later|earlier)"
_PART = rf"(?P<part>{'|'.join(_PARTS)}|(?P<times>\d{{1,4}}) times|(?P<percent>\d{{1,3}}) ?(?:%|per ?cent))"  # fmt: skip
_IS = r"(?:always )?(?:is|are|falls|lies|comes|stays)(?: always| exactly| set to)*"
_DEPENDS: Final = (
    _re(rf"^(?P<target>.+?) depends on (?P<source>[^:,;]+?)[:,;] ?(?:it (?:is|falls) )?(?:always )?(?:{_OFFSET}|{_PART}|(?P<same>the same|same|equal)|(?P<review>review))(?: (?:it|of it|as it))?$"),
    _re(rf"^(?P<target>.+?) {_IS} {_OFFSET} (?P<source>.+)$"),
    _re(rf"^(?P<target>.+?) {_IS} {_PART}(?: of)? (?P<source>.+)$"),
    _re(r"^(?P<target>.+?) (?:is|are) always (?P<same>the same as|equal to) (?P<source>.+)$"),
    _re(r"^(?P<target>.+?) always (?P<same>equals) (?P<source>.+)$"),
    _re(r"^(?:whenever|when|if) (?P<source>.+?) changes,? (?P<target>.+?) (?:must|has to|have to|needs to|should) be (?P<review>reviewed|checked|looked at|reconsidered)\b.*$"),
    _re(r"^(?P<target>.+?) (?:depends on|follows(?: from)?) (?P<source>.+)$"),
)  # fmt: skip


def _depends(sentence: str, setting: Setting) -> Dependency | None:
    for pattern in _DEPENDS:
        found = pattern.match(sentence)
        if found:
            source, target = _place(found["source"], setting), _place(found["target"], setting)
            if source and target:
                return Dependency(source, target, _rule(found.groupdict()))
    return None


def _rule(said: dict[str, str | None]) -> Rule | None:
    count, part = (said.get("count") or "").lower(), (said.get("part") or "").lower()
    if count:
        number = int(count) if count.isdigit() else _COUNTS.get(count, 0)
        days = number * (7 if (said["unit"] or "").lower() == "week" else 1)
        back = (said["side"] or "").lower() in ("before", "earlier")
        return Rule("offset", days=-days if back else days) if number else None
    if part:
        times, over = _PARTS.get(part, (1, 1))
        if said.get("times") or said.get("percent"):
            times, over = (int(said["times"]), 1) if said["times"] else (int(said["percent"] or 0), 100)  # fmt: skip
        return Rule("scaled", times=times, over=over)
    if said.get("same"):
        return Rule("same")
    return Rule("review") if said.get("review") else None


_RELATED: Final = (
    _re(r"^(?P<a>.+?) (?:is|are) (?:closely |loosely )?(?:related|connected|linked) to (?P<b>[^,;]+)"),
    _re(r"^(?P<a>.+?) and (?P<b>.+?) are (?:closely |loosely )?(?:related|connected|linked)\b"),
)  # fmt: skip
_SAME: Final = (
    _re(r"^(?P<a>.+?) (?:is|are) (?:also known as|another name for|also called|the same (?:thing|project|person|place) as) (?P<b>[^,;]+)$"),
    _re(r"^(?P<a>.+?) and (?P<b>.+?) are (?:one and )?the same(?: thing| project| person| place)?$"),
)  # fmt: skip


def _related(sentence: str, setting: Setting) -> Association | Same | None:
    if _UNREAL.search(sentence) or _PAST.search(sentence):
        return None
    kinds: tuple[tuple[tuple[re.Pattern[str], ...], type[Association | Same]], ...] = (
        (_RELATED, Association),
        (_SAME, Same),
    )
    for patterns, kind in kinds:
        for pattern in patterns:
            found = pattern.match(sentence)
            a, b = (_title(found[name], setting) for name in "ab") if found else ("", "")
            if a and b and not re.search(r"\bnot\b", found[0] if found else ""):
                return kind(a, b)
    return None


def _title(phrase: str, setting: Setting) -> str:
    """A phrase as a topic's title; '' unless the topic is known or each end of it is a name's."""
    phrase = re.sub(r"^(?:the|our) ", "", phrase.strip(), flags=re.IGNORECASE)
    words = phrase.split()
    if key(phrase) in setting.titles:
        return phrase
    name = 0 < len(words) <= 5 and key(words[0]) not in _PRONOUNS and words[0][0].isupper()
    return phrase if name and re.fullmatch(_TOPIC, phrase, re.IGNORECASE) else ""
