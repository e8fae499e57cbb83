"""What is said and asked when an adapter is put to its contract.

All of it stands in one script, `SCRIPT`, so that a system that asks models can be checked with the
ideal model as well: that one understands the sentences of a script and no others.
"""

from __future__ import annotations

from typing import Final

from steeltrap.harness.memory import Subject
from steeltrap.harness.script import Header, Op, Probe, Script, Step, Turn, unit_id

__all__ = [
    "ACME",
    "ALPHABETS",
    "ASKED",
    "CONTROL",
    "FIRST",
    "LIGHTS",
    "LONG",
    "LOOK_ALIKES",
    "LUNCH",
    "MILL",
    "OTHER",
    "SCRIPT",
    "SECOND",
    "THIRD",
    "VAGUE",
    "about",
    "host",
    "subject",
]

ACME: Final = "acme"
OTHER: Final = "borealis"
LIGHTS: Final = "Harbour Lights"
MILL: Final = "Old Mill"
FIRST, SECOND, THIRD = "Ilse Brandt", "Noor Haddad", "Pavel Kral"
"""The hosts of Harbour Lights, one after another."""
LUNCH: Final = "Lunch was late again today."

ALPHABETS: Final = (
    "Der Geschäftsführer prüft es später, naïve Grüße.",
    "昼食は今日も遅れました。",
    "Lunch 🚢🧑‍🚀 was late → again, e\u0301 as two code points",
    "كان الغداء متأخرا مرة أخرى \u202ereversed\u202c",
    "```python\nlunch = 'late'\n```\n\n| a | b |\n<b>&amp;</b> '; DROP TABLE turns; --",
)
"""Turns that hold no fact, in scripts and marks that a store may stumble over."""
CONTROL: Final = "Lunch\twas\r\nlate \x01\x07\x1b[31m again\x7f\u0085\u2028 today"
"""Control characters, without NUL: some databases cannot hold it, and no script has it."""
LONG: Final = "Lunch was late again. " + "It took its time, as it does. " * 1000
"""30 KB."""
VAGUE: Final = ("", " ", "?", "the of and", "zzz", "\"'()*%_ AND NOT", "🚢")
"""Questions without a word of any turn, some of them in the signs of query languages."""
LOOK_ALIKES: Final = {
    "acme": "Ada Lindqvist", "acme2": "Bo Castellan", "ACME": "Cleo Marchetti",
    "acme/sub": "Dov Eriksen", "acm_": "Edda Fontaine", "acm%": "Finn Galanis",
}  # fmt: skip
"""Tenants whose names are alike, with the host of Harbour Lights that each of them is told."""
_NAMES: Final = {LIGHTS: (FIRST, SECOND, THIRD), MILL: ("Tomas Weld", "Uma Okafor")}


def host(topic: str, name: str, *, now: bool = False) -> str:
    """The sentence that tells who the host of a topic is; `now` for another one than before."""
    return f"The host of {topic} is {'now ' if now else ''}{name}."


def about(topic: str) -> str:
    """The question for it."""
    return f"Who is the host of {topic}?"


def subject(topic: str, tenant: str = ACME, *, field: str = "host") -> Subject:
    """The same by name."""
    return Subject(tenant, topic, field, about(topic))


ASKED: Final = (about(LIGHTS), about(MILL), about("Lighthouse"))


def _script() -> Script:
    steps: list[Step] = []

    def turn(text: str, op: Op) -> None:
        steps.append(
            Turn(
                id=f"t{len(steps)}", at="2026-01-05T09:00", tenant=ACME, session="s1", text=text,
                ops=[op],
            )
        )  # fmt: skip

    for topic, names in _NAMES.items():
        unit = unit_id(ACME, topic, "host")
        for name in (*names, *(LOOK_ALIKES.values() if topic == LIGHTS else ())):
            turn(host(topic, name), Op("tell", unit, f"name:{name}"))
            turn(host(topic, name, now=True), Op("revise", unit, f"name:{name}"))
    for text in (LUNCH, *ALPHABETS, CONTROL, LONG, ""):
        turn(text, Op("noise", unit_id(ACME, "Lunch", "time")))
    for text in (*ASKED, *VAGUE, *ALPHABETS):
        topic = next((topic for topic in _NAMES if topic in text), "Lighthouse")
        steps.append(
            Probe(
                id=f"q{len(steps)}", at="2026-01-05T09:00", tenant=ACME, ask="current", text=text,
                unit=unit_id(ACME, topic, "host"),
            )
        )  # fmt: skip
    return Script(Header(name="contract", tenants=[*LOOK_ALIKES, OTHER]), steps)


SCRIPT: Final = _script()
"""Every sentence that a check says or asks."""
