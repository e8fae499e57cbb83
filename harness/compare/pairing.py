"""Which runs of two sides belong together, and why others do not.

A pair means something only where both runs were asked the same: script (by its sha256), reader,
limit, number of twins and repeats, model with its dials, and the embedder, unless two different
systems are compared, whose embedder is a part of them. What may differ is what is being compared:
revision, versions of packages and of steeltrap, the adapter's settings. That is named in a note.

Runs of one side that answer the same question are repeats of each other. So are runs that differ in
nothing but the seed of the model's failings or of faults (`model.seed`, `faults.seed`): it decides
what chance does, and what is compared is what holds for any of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steeltrap.harness.compare.comparison import Apart
from steeltrap.harness.compare.samples import Run
from steeltrap.harness.record import RunSpec

__all__ = ["CompareError", "Pair", "Pairing", "differing", "paired", "system_of"]

Side = Literal["BASE", "NEW"]
_DICE: Final = re.compile(r"\s(?:model|faults)\.seed=\S+")


class CompareError(ValueError):
    """Two sides cannot be compared as they were given; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Pair:
    """All runs of one script and seed, of both sides."""

    base: list[Run]
    new: list[Run]

    @property
    def spec(self) -> RunSpec:
        """What was asked."""
        return self.new[0].sample.spec


@dataclass(slots=True)
class Pairing:
    """The pairs of each system, and what is left."""

    pairs: dict[tuple[str, str], list[Pair]] = field(default_factory=dict)
    """(system of BASE, of NEW) -> pairs in order of scripts and seeds."""
    apart: list[Apart] = field(default_factory=list)


def system_of(spec: RunSpec) -> str:
    """The system's name, without the seed of what fails by chance."""
    return _DICE.sub("", spec.system)


def paired(base: Sequence[Run], new: Sequence[Run]) -> Pairing:
    """Bring the runs of two sides together.

    Raises:
        CompareError: a side holds runs of one question that are no repeats of each other.
    """
    of_base, of_new = _systems(base), _systems(new)
    if len(of_base) == len(of_new) == 1 and of_base != of_new:
        names = (of_base.pop(), of_new.pop())
        return _matched(base, new, names)
    found = Pairing()
    for system in sorted(of_base | of_new):
        ours, theirs = (
            [run for run in side if system_of(run.sample.spec) == system] for side in (base, new)
        )
        one = _matched(ours, theirs, (system, system))
        found.pairs |= one.pairs
        found.apart += one.apart
    return found


def _systems(runs: Sequence[Run]) -> set[str]:
    return {system_of(run.sample.spec) for run in runs}


def _matched(base: Sequence[Run], new: Sequence[Run], names: tuple[str, str]) -> Pairing:
    """The pairs of one system, or of two."""
    asked = _Asked(
        same=names[0] == names[1],
        models=names[0] == names[1] or all(run.sample.spec.model for run in (*base, *new)),
    )
    ours, theirs = _grouped("BASE", base, asked), _grouped("NEW", new, asked)
    found = Pairing()
    pairs = [Pair(ours[key], theirs[key]) for key in ours if key in theirs]
    if pairs:
        pairs.sort(key=lambda pair: (pair.spec.script, pair.spec.seed, pair.spec.script_sha256))
        found.pairs[names] = pairs
    found.apart += [_apart("BASE", ours[key], new, asked) for key in ours if key not in theirs]
    found.apart += [_apart("NEW", theirs[key], base, asked) for key in theirs if key not in ours]
    found.apart.sort(key=lambda one: (one.side, one.system, one.script, one.seed, one.why))
    return found


class _Asked(NamedTuple):
    """What must agree between two sides, beside what always must."""

    same: bool
    """The same system on both: its embedder."""
    models: bool
    """Both ask models: the model."""

    def of(self, spec: RunSpec) -> dict[str, Any]:
        """The settings that must agree for a pair to mean anything."""
        wanted: dict[str, Any] = {
            "script": spec.script,
            "seed": spec.seed,
            "script sha256": spec.script_sha256,
            "reader": spec.reader,
            "limit": spec.limit,
            "twins": spec.twins,
            "repeats": spec.repeats,
        }
        if self.models:
            wanted["model"] = _without_dice(spec.model)
        if self.same:
            wanted["embedder"] = spec.embedder.partition(" ")[0]
        return wanted


def _grouped(side: Side, runs: Sequence[Run], asked: _Asked) -> dict[str, list[Run]]:
    """Runs by the question that they answer."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        key = json.dumps(asked.of(run.sample.spec), sort_keys=True)
        found.setdefault(key, []).append(run)
    for own in found.values():
        _refuse_mixture(side, own)
    return found


def _without_dice(model: dict[str, Any]) -> dict[str, Any]:
    """A model without the seed of its failings and of faults, and without what was recorded."""
    kept = {key: value for key, value in model.items() if key not in ("seed", "recordings_sha256")}
    if isinstance(kept.get("faults"), dict):
        kept["faults"] = {k: v for k, v in kept["faults"].items() if k != "seed"}
    return kept


def _refuse_mixture(side: Side, runs: Sequence[Run]) -> None:
    """Repeats differ in nothing but what chance did; else nobody knows which run is meant."""
    first = runs[0].sample.spec
    for other in runs[1:]:
        if what := [name for name, _, _ in differing(first, other.sample.spec)]:
            raise CompareError(
                f"{side} holds {len(runs)} runs of {system_of(first)} on {first.script}, seed"
                f" {first.seed}, and they differ in {', '.join(what)}: give a folder that holds"
                " those of one state of the code alone"
            )


def _apart(side: Side, runs: Sequence[Run], others: Sequence[Run], asked: _Asked) -> Apart:
    """Why runs have no counterpart among others of their system."""
    spec = runs[0].sample.spec
    mine = asked.of(spec)
    reasons: list[list[str]] = []
    for theirs in (asked.of(run.sample.spec) for run in others):
        if (theirs["script"], theirs["seed"]) == (spec.script, spec.seed):
            unlike = [key for key in mine if mine[key] != theirs[key]]
            reasons.append([_words(key, mine[key], theirs[key]) for key in unlike])
    other = "NEW" if side == "BASE" else "BASE"
    if reasons:
        nearest = min(reasons, key=lambda words: (len(words), words))
        why = f"differs in {'; '.join(nearest)}"
    elif others:
        why = f"{other} has no run of this script and seed"
    else:
        why = f"{other} has no run of this system"
    return Apart(
        side=side, system=system_of(spec), script=spec.script, seed=spec.seed, why=why,
        needed=side == "BASE" and bool(others),
    )  # fmt: skip


def _words(key: str, mine: Any, theirs: Any) -> str:
    if key == "script sha256":
        mine, theirs = mine[:12], theirs[:12]
    if key == "model":
        names = sorted(k for k in {*mine, *theirs} if mine.get(k) != theirs.get(k))
        mine, theirs = ({name: one.get(name) for name in names} for one in (mine, theirs))
        return f"model ({_plain(mine)} here, {_plain(theirs)} there)"
    return f"{key} ({_plain(mine)} here, {_plain(theirs)} there)"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items()) or "none"
    return "none" if value in ("", None) else str(value)


def differing(base: RunSpec, new: RunSpec) -> Iterator[tuple[str, str, str]]:
    """What differs between two runs and may, as (name, there, here).

    The seed of what fails by chance is left out.
    """
    for name in ("revision", "steeltrap", "embedder"):
        one, two = getattr(base, name), getattr(new, name)
        if one != two:
            yield name, _short(one), _short(two)
    recorded = [spec.model.get("recordings_sha256", "") for spec in (base, new)]
    if recorded[0] != recorded[1]:
        yield "recordings", recorded[0][:12], recorded[1][:12]
    for what, of in (("package", "packages"), ("setting", "settings")):
        ours, theirs = _flat(getattr(base, of)), _flat(getattr(new, of))
        for key in sorted({*ours, *theirs}):
            if ours.get(key) != theirs.get(key):
                yield f"{what} {key}", _plain(ours.get(key)), _plain(theirs.get(key))


def _short(value: str) -> str:
    """A git revision as it is usually written."""
    if re.fullmatch(r"[0-9a-f]{40}(\+\w*)?", value):
        return value[:12] + value[40:]
    return value or "none"


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return msgspec.to_builtins(found)  # type: ignore[no-any-return]
