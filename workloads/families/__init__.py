"""The adversarial families (benchmark contract, section 3), by name.

A family is a coroutine over the stage: it says and asks, and yields how many turns should pass
before it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steeltrap.workloads.families import (
    change,
    dependency,
    dose,
    erased,
    leakage,
    pressure,
    reported,
    retention,
    scope,
    trust,
)
from steeltrap.workloads.stage import Stage

__all__ = ["ALONE", "EVERY", "FAMILIES", "TWINNED", "Family"]

Family = Callable[[Stage], Iterator[int]]

FAMILIES: dict[str, Family] = {
    "restatement-flood": pressure.restatement_flood,
    "revision-chain": change.revision_chain,
    "flip-flop": change.flip_flop,
    "stale-echo": change.stale_echo,
    "look-alike": scope.look_alike,
    "dependency-cascade": dependency.dependency_cascade,
    "distraction": pressure.distraction,
    "importance-inversion": pressure.importance_inversion,
    "reinforcement": pressure.reinforcement,
    "out-of-order": change.out_of_order,
    "authority": trust.authority,
    "expiry": change.expiry,
    "retraction": change.retraction,
    "history-audit": change.history_audit,
    "multi-tenant": scope.multi_tenant,
    "erasure": scope.erasure,
    "injection": trust.injection,
}
"""Those that are mixed in an adversarial script."""

ALONE: dict[str, Family] = {
    "dose": dose.dose,
    "retention": retention.retention,
    "leak-asking": leakage.asking,
    "leak-telling": leakage.telling,
    "leak-names": leakage.names,
    "leak-scope": leakage.scope,
    "erase-unit": erased.erase_unit,
    "erase-tenant": erased.erase_tenant,
    "implicit-contradiction": reported.implicit_contradiction,
    "polarity-flip": reported.polarity_flip,
    "negation": reported.negation,
    "name-change": reported.name_change,
    "bare-number": reported.bare_number,
    "relative-date": reported.relative_date,
    "needle-in-paste": reported.needle_in_paste,
    "code-and-braces": reported.code_and_braces,
    "no-spaces": reported.no_spaces,
    "numbered-names": reported.numbered_names,
    "said-back": reported.said_back,
    "concurrent-writers": reported.concurrent_writers,
    "popular-then-wrong": reported.popular_then_wrong,
}
"""Those that make a script of their own: they are judged by twins of the whole, or came later and
leave the mix as it is."""

EVERY: dict[str, Family] = FAMILIES | ALONE

TWINNED = (
    "reinforcement", "dose", "leak-asking", "leak-telling", "leak-names", "leak-scope", "erase-unit",
    "erase-tenant",
)  # fmt: skip
"""Those that have twins."""
