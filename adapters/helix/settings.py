"""The numbers of the recipe. It names most of them and gives none, so all of these are our choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

__all__ = ["Settings", "settled"]

Kind = Literal["fact", "preference", "episode", "procedure"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set; the README says which sentence of the recipe each belongs to."""

    store: Literal["disk", "memory"] = "disk"
    """disk: below the run folder; memory: nothing is written, and the size is 0."""

    # writing
    recent_turns: int = 4
    """Turns before the current one that the extractor is shown."""
    related: int = 8
    """Memories that it is shown, by either search."""
    candidates: int = 8
    """Memories that a fact is compared with, by either search."""
    chunk_chars: int = 1200
    """Longest piece of a turn that is kept as one chunk."""
    salience_low: float = 0.2
    """What the extractor calls of low importance begins with."""
    salience_normal: float = 0.5
    salience_high: float = 0.9
    reinforcement: float = 0.1
    """What a repetition adds to salience, up to 1; it also counts as one access."""

    # reading
    depth: int = 20
    """Memories that each search gives."""
    expand_from: int = 5
    """Hits whose edges are followed."""
    versions: int = 5
    """How many edges back to earlier versions are followed when a question asks for history."""
    rank_constant: int = 60
    """k of reciprocal rank fusion."""
    extends_weight: float = 0.5
    """Share of its neighbour's score that a memory gets over EXTENDS."""
    mentions_weight: float = 0.25
    """The same over an entity that both mention."""
    updates_weight: float = 0.97
    """The same of an earlier version."""
    salience_weight: float = 0.1
    """By what share a salience of 1 raises a score."""
    recency_weight: float = 0.1
    """By what share having been written just now does."""
    half_life_days: float = 30.0
    """After so many days half of that is left."""
    chunks: int = 3
    """Pieces of raw text that may be served where memories leave room."""
    budget_tokens: int = 2000
    """Of all that is served; a token is taken for four characters."""

    # profile
    profile_every: int = 5
    """New memories after which the profile is written again."""
    profile_shown: int = 50
    """Memories that the summarizer is shown, the most salient and then the latest."""
    profile_lines: int = 8
    """Lines that it may write."""

    # forgetting
    decay_kinds: tuple[Kind, ...] = ("episode",)
    """Kinds of memories that fade: the recipe speaks of episodic ones alone."""
    decay_days: float = 30.0
    """Old: this long since it was written."""
    decay_salience: float = 0.3
    """Low in salience: below this."""
    decay_recalls: int = 2
    """Rarely recalled: less often than this."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int | float) and value < 0:
                raise ValueError(f"{name}={value}; set 0 or more")
        for name in ("half_life_days", "chunk_chars", "candidates", "depth", "profile_every"):
            if not getattr(self, name):
                raise ValueError(f"{name}=0; set more than 0")


def settled(given: Mapping[str, Any]) -> Settings:
    """Settings from what was given.

    Raises:
        ValueError: there is no such setting, or its value makes no sense.
    """
    try:
        return msgspec.convert(dict(given), Settings)
    except msgspec.ValidationError as error:
        raise ValueError(f"helix-recipe: {error}") from None
