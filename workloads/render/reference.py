"""How a unit is referred to: with its topic or without, by the field's name or another label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from steeltrap.harness import values
from steeltrap.harness.script import field_of, topic_of
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import Field, field_named

__all__ = ["Reference", "Referrer"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A unit in words."""

    slots: dict[str, str]
    """ref: the whole noun phrase; f: the field; t: the topic; its: its or their; German also acc and nom."""
    kind: str
    domain: str


class Referrer:
    """Finds words for units.

    Args:
        dice: where the random choices come from.
    """

    def __init__(self, dice: Dice) -> None:
        self._dice = dice

    def foreign_kind(self, unit: str) -> str:
        """The kind of a unit that can be spoken of in German and Japanese; otherwise empty.

        Free texts are English and would read oddly there.
        """
        known = field_named(field_of(unit))
        return known[1].kind if known and known[1].kind != "text" else ""

    def refer(
        self,
        unit: str,
        language: str,
        *,
        varied: bool,
        short: bool = False,
        value: str | None = None,
    ) -> Reference:
        """Words for a unit.

        Args:
            unit: `tenant/topic/field`; the field may be one that no domain has.
            language: en, de or ja.
            varied: other labels and word orders than the plain ones are allowed.
            short: leave the topic out.
            value: tells the kind of a field that no domain has.
        """
        name = field_of(unit)
        known = field_named(name)
        domain, field = known if known else (None, _stranger(name, value))
        person = domain is not None and domain.topics == "person"
        topic = topic_of(unit)
        if language == "de":
            slots = _german(field, topic, person, short)
        elif language == "ja":
            slots = _japanese(field, topic, person, short)
        else:
            slots = self._english(field, topic, person, varied, short)
        return Reference(slots, field.kind, domain.name if domain else "")

    def _english(
        self, field: Field, topic: str, person: bool, varied: bool, short: bool
    ) -> dict[str, str]:
        label, manner = field.name, 0
        if varied:
            if field.labels and self._dice.chance(0.35):
                label = self._dice.pick(field.labels)
            manner = self._dice.between(0, 3)
        its = "their" if person else "its"
        if short:
            ref = f"{its if manner == 3 else 'the'} {label}"
        elif manner == 3:
            ref = f"{topic}'s {label}"
        else:
            ref = f"the {label} {'for' if manner == 2 else 'of'} {topic}"
        return {"ref": ref, "f": label, "t": topic, "its": its}


def _german(field: Field, topic: str, person: bool, short: bool) -> dict[str, str]:
    tail = "" if short else f" von {topic}" if person else f" für „{topic}“"
    article, _, noun = field.german.partition(" ")
    accusative = f"den {_weak(noun)}" if article == "der" else field.german
    return {
        "ref": field.german + tail,
        "acc": accusative + tail,
        "nom": field.german,
        "f": noun,
        "t": topic if person else f"„{topic}“",
    }


def _weak(noun: str) -> str:
    """Adjectives after `den` end in -en: `den ersten Arbeitstag`."""
    first, space, rest = noun.partition(" ")
    return f"{first}n{space}{rest}" if space and first.endswith("e") else noun


def _japanese(field: Field, topic: str, person: bool, short: bool) -> dict[str, str]:
    named = f"「{topic}」さん" if person else f"「{topic}」"
    ref = field.japanese if short else f"{named}の{field.japanese}"
    return {"ref": ref, "f": field.japanese, "t": named}


@cache
def _stranger(name: str, value: str | None) -> Field:
    """A field that no domain has, as in scripts written by hand."""
    return Field(name, values.kind_of(value) if value else "text")
