"""What scripts talk about: six domains with their fields, and how fields may follow each other.

The data lies in `data/<domain>.toml`. A field name, and every label that texts use for it, means
one field in all domains.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from steeltrap.harness.script import Importance
from steeltrap.harness.values import Kind

__all__ = ["DATA", "Domain", "Field", "Link", "domains", "field_named", "words"]

DATA: Final = Path(__file__).parent / "data"
NAMES: Final = ("projects", "people", "travel", "health", "home", "software")


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that can be known about a topic."""

    name: str
    """A short noun phrase that reads well in 'The {name} of {topic} is {value}.'"""
    kind: Kind
    labels: tuple[str, ...] = ()
    """Other names by which English texts call it."""
    low: int = 0
    """date: days from now; time: minute of the day; money, measure, count: the number."""
    high: int = 0
    unit: str = ""
    """money: currency; measure: base unit (m, g, min, MB); otherwise empty."""
    pool: str = ""
    """name and text: the word pool of `mint`."""
    importance: Importance = "normal"
    german: str = ""
    """The German name with its article in the nominative."""
    japanese: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that texts of any language use, without article."""
        foreign = (self.german.partition(" ")[2], self.japanese)
        return (self.name, *self.labels, *filter(None, foreign))


@dataclass(frozen=True, slots=True)
class Link:
    """A way in which one field can follow another: the stuff that `depend` ops are made of."""

    source: str
    target: str
    rule: Literal["offset", "same", "scaled", "review"]
    low: int = 0
    """offset: fewest days, negative for earlier; scaled: smallest numerator."""
    high: int = 0
    over: int = 1
    """scaled: denominator; no numerator from `low` to `high` equals it."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A part of life with its own topics and fields."""

    name: str
    topics: str
    """The word pool of its topics."""
    fields: tuple[Field, ...]
    links: tuple[Link, ...]

    def field(self, name: str) -> Field:
        """The field of that name.

        Raises:
            KeyError: this domain has no such field.
        """
        for field in self.fields:
            if field.name == name:
                return field
        known = ", ".join(f.name for f in self.fields)
        raise KeyError(f"{self.name} has no field '{name}'; known: {known}")


@cache
def domains() -> tuple[Domain, ...]:
    """All domains, always in the same order."""
    return tuple(_read(name) for name in NAMES)


def _read(name: str) -> Domain:
    with (DATA / f"{name}.toml").open("rb") as stream:
        data = tomllib.load(stream)
    return Domain(
        name,
        data["topics"],
        tuple(_field(entry) for entry in data["field"]),
        tuple(Link(**entry) for entry in data["link"]),
    )


def _field(entry: dict[str, Any]) -> Field:
    return Field(**{**entry, "labels": tuple(entry["labels"])})


@cache
def _index() -> dict[str, tuple[Domain, Field]]:
    return {field.name: (domain, field) for domain in domains() for field in domain.fields}


def field_named(name: str) -> tuple[Domain, Field] | None:
    """The field of that name with its domain; None when no domain has it."""
    return _index().get(name)


def words() -> dict[str, list[str]]:
    """For `Header.words`: each field name with the other names by which texts call it."""
    return {name: list(field.names[1:]) for name, (_, field) in _index().items()}
