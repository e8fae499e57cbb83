"""Figures of a comparison, made from stored records alone: a module a family, one style for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from steeltrap.harness.record import Record
from steeltrap.reports.claims import Claim
from steeltrap.reports.dialled import along_a_dial
from steeltrap.reports.facts import comparable, title
from steeltrap.reports.figures.claimed import claimed_and_measured
from steeltrap.reports.figures.cost import recall_and_cost
from steeltrap.reports.figures.curves import propagation, staleness
from steeltrap.reports.figures.dials import model_failures
from steeltrap.reports.figures.dose import dose_response
from steeltrap.reports.figures.figure import Figure, files, save
from steeltrap.reports.figures.growth import growth
from steeltrap.reports.figures.matrix import matrix
from steeltrap.reports.figures.rates import violation_rates
from steeltrap.reports.figures.requests import prompt_cache, summarisation, tokens_per_request
from steeltrap.reports.figures.style import Look, looks
from steeltrap.reports.figures.survival import time_to_first_violation
from steeltrap.reports.figures.topk import prompt_recall
from steeltrap.reports.figures.turns import footprint, tokens_per_query
from steeltrap.reports.figures.twins import leakage
from steeltrap.reports.tables import by_system

__all__ = ["Figure", "figures", "files", "matrix", "save"]

Family = Callable[[Mapping[str, Sequence[Record]], Mapping[str, Look]], Figure | None]

_FAMILIES: Final[tuple[Family, ...]] = (
    violation_rates,
    time_to_first_violation,
    staleness,
    propagation,
    footprint,
    tokens_per_query,
    growth,
    tokens_per_request,
    prompt_cache,
    summarisation,
    prompt_recall,
    recall_and_cost,
    leakage,
    dose_response,
)


def figures(records: Sequence[Record], claims: Sequence[Claim] = ()) -> list[Figure]:
    """The figures that the records have data for, comparable group by comparable group.

    A system looks the same in all of them. Where there are several groups, the names and titles
    of their figures say which one they are of.

    Args:
        records: finished cells.
        claims: what makers say of their systems.
    """
    groups = comparable(records)
    turned = [along_a_dial(group) for group in groups]
    names = [name for found in turned if found for name in found.systems]
    shown = looks([*names, *(name for group in groups for name in by_system(group))])
    made = []
    for group, found, suffix in zip(groups, turned, _suffixes(groups), strict=True):
        systems = by_system(group)
        own = [family(systems, shown) for family in _FAMILIES]
        own.append(model_failures(found, shown) if found else None)
        own.append(claimed_and_measured(systems, claims))
        made += [_of_group(figure, group, suffix) for figure in own if figure]
    return made


def _of_group(figure: Figure, group: Sequence[Record], suffix: str) -> Figure:
    """The figure with its script in the caption and, where there are several, in its name."""
    caption = f"{figure.caption} Script {title(group)}."
    if not suffix:
        return figure._replace(caption=caption)
    name = f"{figure.name}-{suffix}"
    return figure._replace(name=name, title=f"{figure.title} ({title(group)})", caption=caption)


def _suffixes(groups: Sequence[Sequence[Record]]) -> list[str]:
    """What tells groups apart, as part of a file's name: the script, and more where it must be."""
    if len(groups) < 2:
        return [""] * len(groups)
    firsts = [group[0] for group in groups]
    told = [[record.spec.script] for record in firsts]
    for more in (
        [record.spec.reader for record in firsts],
        [f"{record.spec.limit}-items" for record in firsts],
        [f"{record.outcome.turns}-turns" for record in firsts],
    ):
        if len(set(map(_stem, told))) < len(told) and len(set(more)) > 1:
            told = [[*words, word] for words, word in zip(told, more, strict=True)]
    stems: list[str] = []
    for words in told:
        stem, again = _stem(words), 2
        while stem in stems:
            stem, again = f"{_stem(words)}-{again}", again + 1
        stems.append(stem)
    return stems


def _stem(words: Sequence[str]) -> str:
    """Letters, digits and hyphens alone: names of scripts come from other people's files."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:80] or "script"
