"""A run as it can be looked at: what was said, what was true, what was answered, by step.

A `Story` is what the script tells, once for all systems that ran it; a `Played` is what one of
them made of it. Both are plain data, made by `steeltrap.harness.retrace` from stored files, and all
that the page and other views of a run need. Values are spelled as people write them, units are
numbers into `Story.units`, long texts are cut.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

__all__ = [
    "LONGEST",
    "Changed",
    "Claimed",
    "Done",
    "Line",
    "Mark",
    "Played",
    "Served",
    "Shown",
    "Story",
    "Unit",
    "Witness",
]

LONGEST: Final = 600
"""Characters of a text that are kept; `chars` says how many it had."""

Kind = Literal["turn", "probe", "gauge", "audit", "pause", "erasure"]


class _Plain(msgspec.Struct, omit_defaults=True, kw_only=True):
    pass


# ---------------------------------------------------------------- the script


class Unit(_Plain, kw_only=True):
    """A lane: one thing that has one value at a time."""

    id: str
    """`tenant/topic/field`."""
    name: str
    """`deadline of Website Redesign`."""
    tenant: str
    family: str
    """Of the step that spoke of it first."""
    first: int
    """Number of the step that spoke of it first."""


class Done(_Plain, kw_only=True):
    """An op in words."""

    op: str
    words: str
    """`deadline of Website Redesign = 20 April 2026`."""
    unit: int | None = None
    value: str = ""
    target: int | None = None
    """depend: the dependent."""


class Changed(_Plain, kw_only=True):
    """A consequence of a step for a unit: part of the truth."""

    unit: int
    value: str | None = None
    """What holds from now on; None: nothing is set."""
    cause: str
    """told, corrected, derived, review, late, retracted, expired or erased."""
    hop: int = 0
    via: int | None = None


class Line(_Plain, kw_only=True):
    """One step of the script; its number is its place in `Story.lines`."""

    id: str
    kind: Kind
    at: str
    turn: int
    """Turns up to and with this step."""
    tenant: str = ""
    role: str = ""
    family: str = ""
    text: str = ""
    """What is said or asked, at most `LONGEST` characters of it."""
    chars: int = 0
    """Its length, where it was cut."""
    ops: list[Done] = []
    changes: list[Changed] = []
    ask: str = ""
    """probe: current, previous, as-of, rank or evidence."""
    unit: int | None = None
    """What is asked for, looked up or erased."""
    due: str = ""
    """probe: the right answer; audit: the true history, oldest first."""
    lag: int | None = None
    hop: int = 0
    via: int | None = None
    """probe: the unit from which the value follows."""
    in_script: bool = False
    """probe: the question is part of the conversation; others only measure."""


class Story(_Plain, kw_only=True):
    """A script, told once for all that ran it."""

    sha256: str
    name: str
    seed: int
    turns: int
    authority: list[str]
    alpha: float
    constant_tokens: int
    units: list[Unit]
    """In the order in which they are first spoken of."""
    lines: list[Line]


# ---------------------------------------------------------------- a run


class Served(_Plain, kw_only=True):
    """An item that a system served, once; its number is its place in `Played.items`."""

    text: str
    chars: int = 0
    """Its length, where it was cut."""
    id: str = ""
    sources: list[str] | None = None
    """Ids of turns; None where the system names none."""
    valid_from: str = ""
    valid_to: str = ""
    review: bool = False


class Claimed(_Plain, kw_only=True):
    """What the reader took an item to say of the unit asked for."""

    place: int
    """Of the item among those served, from 1."""
    item: int
    """Number into `Played.items`."""
    meaning: str
    """states, past, echo, rule, ...: `steeltrap.harness.readers`."""
    value: str = ""
    open: bool = True
    """Whether the system's own marks leave it holding now."""
    review: bool = False


class Shown(_Plain, kw_only=True):
    """What became of one step."""

    i: int
    """Number of the step."""
    type: str = "ok"
    """ok, fail (certainly not done) or info (nobody knows)."""
    error: str = ""
    via: str = ""
    """How it was observed: fork, in-script or listing."""
    ms: float = 0.0
    """Wall time, the models' included."""
    given: int = 0
    """How many items were served or listed."""
    items: list[int] = []
    """Some of them, numbers into `Played.items`: those that speak of the unit, then the first."""
    places: list[int] = []
    """Their places among what was served, from 1."""
    tokens: int = 0
    """Tokens served, or active at a gauge."""
    claims: list[Claimed] = []
    answer: str = ""
    """What the reader made of it, in words; empty where nothing was judged."""
    by: list[str] = []
    """The turns that wrote the answered values."""
    verdict: str = ""
    """correct, stale, ambiguous, wrong, missing, flagged, inherited or unknown."""
    exposed: list[str] = []
    """Values that no longer hold and were served unmarked beside it."""
    models: dict[str, list[int]] = {}
    """By phase: [chat calls, failed, embeddings, prompt tokens, completion tokens, cached tokens]."""


class Mark(_Plain, kw_only=True):
    """A violation."""

    i: int
    """Number of the step that showed it."""
    name: str
    condition: str
    began: str = ""
    """Id of the turn at which it began."""
    unit: int | None = None
    family: str = ""
    expected: str = ""
    observed: str = ""
    witness: list[str] = []
    """Ids of the turns that show it."""
    hop: int = 0
    lag: int | None = None


class Witness(_Plain, kw_only=True):
    """The shortest conversation found that shows a violation."""

    name: str
    file: str
    """Below the run folder."""
    observed: str = ""
    limit: int | None = None
    """Items that a query may be served there, where fewer than usual are needed to show it."""
    story: Story


class Played(_Plain, kw_only=True):
    """What one system made of a script."""

    label: str
    """The system with what was set differently, and what tells it from other runs beside it."""
    folder: str
    """Name of the run folder."""
    sha256: str
    """Of the script: `Story.sha256`."""
    reader: str
    limit: int
    facts: dict[str, str]
    """What else decided the run, in words: model, embedder, versions."""
    verdicts: dict[str, Any]
    """By condition: {validity, violations, opportunities, first_turn, note}."""
    numbers: dict[str, float | None]
    """recall, served_tokens_mean, footprint_ratio, growth_exponent, retrieve_ms_p50, ..."""
    footprint: list[tuple[int, int, int, int, float]]
    """(turn, active items, active tokens, true tokens, beta tokens) at each gauge."""
    items: list[Served]
    shown: list[Shown]
    """One a step, in order."""
    violations: list[Mark]
    witnesses: list[Witness] = []
