"""The tables of a comparison, made from stored records alone, a module for what they are about.

Rates are pooled over seeds (violations over opportunities), with 95% intervals over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

from steeltrap.harness.record import Record
from steeltrap.reports.numbers import by_system, frame
from steeltrap.reports.table import Table
from steeltrap.reports.tables.conditions import conditions, names
from steeltrap.reports.tables.costs import costs, lost, models
from steeltrap.reports.tables.dials import dials
from steeltrap.reports.tables.differences import differences
from steeltrap.reports.tables.evidence import evidence
from steeltrap.reports.tables.families import families
from steeltrap.reports.tables.growth import growth, growth_costs
from steeltrap.reports.tables.promises import promises
from steeltrap.reports.tables.requests import prompt_cache, requests, summarisation
from steeltrap.reports.tables.topk import prompt_recall
from steeltrap.reports.tables.twins import doses, twins
from steeltrap.reports.tables.weighed import weighed
from steeltrap.reports.words import percent

__all__ = [
    "Table",
    "by_system",
    "conditions",
    "costs",
    "dials",
    "differences",
    "doses",
    "every",
    "evidence",
    "families",
    "frame",
    "growth",
    "growth_costs",
    "lost",
    "models",
    "names",
    "percent",
    "promises",
    "twins",
]


def every(group: Sequence[Record], *, brief: bool = False) -> list[Table]:
    """The tables of a comparable group, in the order in which they are read.

    Args:
        group: cells that can be compared.
        brief: of costs, of the tables of public data and of growth what fits a console.
    """
    found = [
        conditions(group),
        doses(group),
        twins(group),
        costs(group, brief=brief),
        models(group),
    ]
    found += [growth(group), growth_costs(group, brief=brief)]
    found += [requests(group), prompt_cache(group), summarisation(group)]
    found += [weighed(group), *evidence(group, brief=brief)]
    found += [] if brief else [prompt_recall(group)]
    found += [dials(group), families(group), names(group), promises(group)]
    found += [differences(group), lost(group)]
    return [table for table in found if table]
