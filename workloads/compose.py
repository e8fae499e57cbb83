"""Composes a script from families by weights.

The first episodes are one of each family, so that a script long enough has them all; after that
the weights decide. Several episodes run at once, and which goes on next is drawn, so that the
turns of one are mixed with those of others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from steeltrap.harness.script import Header, Probe, Script, ScriptError, ScriptWriter, Step
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import words
from steeltrap.workloads.families import EVERY, FAMILIES, TWINNED
from steeltrap.workloads.figure1 import figure_1
from steeltrap.workloads.life import Life
from steeltrap.workloads.render import Renderer, Surface
from steeltrap.workloads.stage import Curtain, Lags, Slot, Stage, Steps

__all__ = ["ScriptSettings", "compose", "compose_file"]

EPISODES_AT_ONCE = 6
NAMED_SCRIPTS = {"figure-1": figure_1}


class ScriptSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a script is made from; together with a seed it decides every byte.

    Structure (families, turns, lags, bound) and surface (how things are said) are separate.
    """

    name: str
    turns: int = 500
    families: dict[str, float] = {}
    """Weight by family; none: the whole adversarial mix, equally."""
    surface: dict[str, Any] = {}
    """Dials of `render.Surface`; what is not named has its default."""
    lags: dict[int, float] = msgspec.field(
        default_factory=lambda: {0: 1.0, 1: 0.3, 5: 0.3, 20: 0.25, 100: 0.25}
    )
    """At which lags (turns) what share of updates is probed; lag 0 always is."""
    alpha: float = 3.0
    constant_tokens: int = 512
    audit_every: int = 50
    gauge_every: int = 10
    requests: bool = False
    """Every turn is also put to the memory as a question, just before it is told."""
    life: Life | None = None
    """Of a long life, in which things end and looks are rare."""


@dataclass(order=True, slots=True)
class Episode:
    """A family that is being played, and when it may go on."""

    resume: int
    order: int
    family: str = field(compare=False)
    acts: Iterator[int] = field(compare=False)
    watched: bool = field(default=True, compare=False)
    """Whether what happens in it is asked for."""
    slots: list[Slot] = field(default_factory=list, compare=False)
    """What it has told of."""


def compose(settings: ScriptSettings, seed: int) -> Script:
    """The script of these settings and this seed: the same bytes everywhere.

    Raises:
        ScriptError: an unknown family or dial, or numbers that make no script.
    """
    if settings.name in NAMED_SCRIPTS:
        return NAMED_SCRIPTS[settings.name](seed)
    steps: list[Step] = []
    stage = _played(settings, seed, steps)
    return _finished(stage.header, steps)


def compose_file(settings: ScriptSettings, seed: int, path: Path) -> Script:
    """The same of a long life, written to a file step by step; it is there whole, or not at all.

    Raises:
        ScriptError: as `compose`.
    """
    writer = ScriptWriter(path)
    header = None
    try:
        header = _played(settings, seed, writer).header
    finally:
        writer.close(header)
    return Script.stored(path)


def _played(settings: ScriptSettings, seed: int, steps: Steps) -> Stage:
    weights = settings.families or dict.fromkeys(FAMILIES, 1.0)
    _refuse_nonsense(settings, weights)
    dice = Dice("steeltrap", settings.name, seed)
    header = Header(
        name=settings.name,
        seed=seed,
        settings=_plain(settings),
        tenants=["acme"],
        alpha=settings.alpha,
        constant_tokens=settings.constant_tokens,
        words=words(),
    )
    stage = Stage(
        header,
        Renderer(Surface(**settings.surface), dice.child("render")),
        dice,
        turns_max=settings.turns,
        lags=Lags(tuple(sorted(settings.lags.items()))),
        audit_every=settings.audit_every,
        gauge_every=settings.gauge_every,
        requests=settings.requests,
        life=settings.life,
        steps=steps,
    )
    _play(stage, weights, dice.child("director"), settings.life)
    return stage


def _play(stage: Stage, weights: dict[str, float], dice: Dice, life: Life | None) -> None:
    """Run episodes until the curtain falls."""
    names = [name for name, weight in weights.items() if weight > 0]
    shares = [weights[name] for name in names]
    opening = dice.shuffled(names)
    running: list[Episode] = []
    ending: list[Episode] = []
    started = 0
    try:
        while True:
            while len(running) < EPISODES_AT_ONCE and (opening or dice.chance(0.7)):
                name = opening.pop() if opening else dice.weighted(names, shares)
                started += 1
                episode = Episode(stage.turns, started, name, EVERY[name](stage))
                episode.watched = life is None or life.watches(stage.turns, dice)
                heapq.heappush(running, episode)
            while ending and ending[0].resume <= stage.turns:
                heapq.heappush(running, heapq.heappop(ending))
            over = _go_on(stage, running, dice)
            if life and over and (end := _end(stage, over, life, dice)):
                heapq.heappush(ending, end)
    except Curtain:
        for episode in running + ending:
            episode.acts.close()  # type: ignore[attr-defined]


def _end(stage: Stage, over: Episode, life: Life, dice: Dice) -> Episode | None:
    """The withdrawal of what an episode has told; None where it told nothing, or stays for good."""
    turn = life.end(stage.turns, dice) if over.slots else None
    if turn is None:
        return None
    acts = _withdrawal(stage, over.slots)
    return Episode(turn, over.order, "withdrawal", acts, life.watches(stage.turns, dice))


def _withdrawal(stage: Stage, slots: Sequence[Slot]) -> Iterator[int]:
    """What an episode of a long life has told is withdrawn, what follows from something first."""
    for slot in reversed(slots):
        if stage.holds(slot):
            stage.withdraw([slot])
            yield stage.dice.between(0, 2)
    stage.end([slot for slot in slots if not stage.holds(slot)])


def _go_on(stage: Stage, running: list[Episode], dice: Dice) -> Episode | None:
    """Let one of the episodes that may go on do so; with none, small talk passes the time.

    Returns:
        The episode, where it is over now.
    """
    if not running or running[0].resume > stage.turns:
        stage.family = "noise"
        stage.noise()
        return None
    episode = heapq.heappop(running)
    stage.family, stage.watched, stage.told = episode.family, episode.watched, episode.slots
    pause = next(episode.acts, None)
    if pause is None:
        return episode
    episode.resume = stage.turns + pause + dice.between(0, 2)
    heapq.heappush(running, episode)
    return None


def _finished(header: Header, steps: list[Step]) -> Script:
    """The script, without marks of twins that the curtain cut off."""
    complete = {twin.name for twin in header.twins}
    for step in steps:
        if isinstance(step, Probe) and step.swap and step.swap.twin not in complete:
            step.swap = None
        step.unless = tuple(name for name in step.unless if name in complete)
    return Script(header, steps)


def _plain(settings: ScriptSettings) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(settings, str_keys=True)
    if not settings.requests:
        del plain["requests"]  # a script without them is the same as ever
    if settings.life is None:
        del plain["life"]
    return plain


def _refuse_nonsense(settings: ScriptSettings, weights: dict[str, float]) -> None:
    unknown = [name for name in weights if name not in EVERY]
    if unknown:
        raise ScriptError(f"unknown family {unknown[0]!r}; known: {', '.join(EVERY)}")
    if not any(weight > 0 for weight in weights.values()):
        raise ScriptError("no family has a weight above 0, so there is nothing to tell")
    if settings.life and (twinned := [name for name in TWINNED if weights.get(name)]):
        raise ScriptError(
            f"script.families.{twinned[0]}: its twins lie in the script, and a long life (script.life) has"
            f" none; leave it out, or write script.life=null"
        )
    if settings.turns < 1:
        raise ScriptError(f"script.turns={settings.turns}: a script needs at least one turn")
    if settings.audit_every < 1 or settings.gauge_every < 1:
        raise ScriptError("script.audit_every and script.gauge_every count turns: at least 1")
    dials = [f.name for f in fields(Surface)]
    for dial in settings.surface:
        if dial not in dials:
            raise ScriptError(f"unknown surface dial '{dial}'; known: {', '.join(dials)}")
