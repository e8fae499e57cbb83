"""The list of runs: what stands where, how it ended, and the way to the page of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steeltrap.harness.record import Record, RunSpec
from steeltrap.harness.verdict import NAMES, ConditionVerdict
from steeltrap.reports.explain import ASKS
from steeltrap.reports.page.parts import policy, template, text_of

__all__ = ["Listed", "listing"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A run, finished or not."""

    key: str
    """Its folder below the one that is shown."""
    spec: RunSpec
    record: Record | None
    note: str
    """Why there is no record."""


def listing(title: str, runs: Sequence[Listed]) -> str:
    """The list as HTML: runs of one script stand together, since they can be compared.

    Args:
        title: what the folder is called.
        runs: in the order in which they are listed.
    """
    scripts: dict[str, list[Listed]] = {}
    for run in runs:
        scripts.setdefault(run.spec.script_sha256, []).append(run)
    style = text_of("style.css")
    return template("runs.html.j2").render(
        title=title,
        policy=policy(style, forms="'self'"),
        style=Markup(style),
        asks=ASKS,
        conditions=list(NAMES),
        groups=list(scripts.values()),
        cell=_cell,
    )


def _cell(run: Listed, condition: str) -> tuple[str, str, str]:
    """How a condition stands: a class, a word, and more on it."""
    verdict: ConditionVerdict | None = (
        run.record.outcome.verdicts.get(condition) if run.record else None
    )
    if verdict is None or verdict.validity == "unknown":
        return "unknown", "unknown", (verdict.note if verdict else "") or "no opportunity"
    told = f"{verdict.violations:,} of {verdict.opportunities:,}"
    if verdict.validity == "held" or verdict.rate is None:
        return "held", "held", told
    rate = "<0.1%" if verdict.rate < 0.0005 else f"{100 * verdict.rate:.1f}%"
    return "violated", rate, f"{told}, first at turn {verdict.first_turn}"
