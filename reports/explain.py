"""What each violation means, in one plain sentence: the page, the tables and the documentation
say it in the same words.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ASKS", "EXPLAINED"]

ASKS: Final[dict[str, str]] = {
    "C1": "query soundness: does it answer with what holds now?",
    "C2": "transition soundness: does an update replace what it was to replace, and for good?",
    "C3": "dependency consistency: does an update reach what follows from it, and nothing else?",
    "C4": "provenance preservation: does it keep history and source of what it knows?",
    "C5": "bounded active state: does it keep active what is worth keeping, and no more?",
    "C6": "retrieval-induced adaptation: does reading strengthen what was read, and only that?",
    "beyond": "beyond the six: does it keep tenants apart, erase for good, and obey nobody it"
    " should not?",
}
"""What each condition asks of a memory, keyed like `steeltrap.harness.verdict.NAMES`."""

EXPLAINED: Final[dict[str, str]] = {
    # C1
    "stale-read": "A value that has been replaced was answered as if it still held.",
    "ambiguous-read": "The right value and a wrong one were both served, with nothing to choose by.",
    "wrong-read": "The answer never held for this unit, or was withdrawn: another unit's value, a"
    " rumour, a mistake.",
    "exposed-history": "The answer was right, but a replaced value was served beside it with no"
    " mark that it is old.",
    "history-denied": "Asked about the past, it answered with the present.",
    # C2
    "superseded-active": "Its own state still lists a replaced value as current.",
    "resurrection": "It had answered right, nothing was said of it since, and the old value came"
    " back.",
    "policy-breach": "Its state took over a value that the script's policies forbid, such as a"
    " rumour against a better source.",
    "half-applied": "After a turn that failed, part of it was there and part was not.",
    # C3
    "missed-propagation": "What it follows from changed, and the old derived value was answered"
    " as if nothing had happened.",
    "wrong-propagation": "What it follows from changed, and the value answered is not the one that"
    " the rule gives.",
    "spurious-propagation": "An update changed something that does not follow from it.",
    "runaway": "Units that depend on each other in a circle kept changing beyond what was said.",
    # C4
    "lost-history": "Earlier values that it once knew are missing from the history it gives.",
    "lost-source": "It no longer says which turn a value came from.",
    "wrong-order": "The history it gives is not in the order in which things happened.",
    "invented-source": "It names as source a turn that does not say so.",
    # C5
    "over-bound": "It keeps more tokens active than the bound beta allows for what is worth"
    " keeping.",
    "unrecoverable": "Something that still holds is no longer active, and cannot be had back.",
    "inverted-retention": "Something vital is gone, while something trivial is still there.",
    # C6
    "inert-retrieval": "Reading changed nothing: what was read stands no better than before.",
    "wrong-direction": "Reading weakened what was read.",
    "unread-favoured": "Reading strengthened something that was not read more than what was.",
    # beyond the six
    "leak": "A tenant was served, or could tell from what it was served, something of another"
    " tenant.",
    "trace": "Something that was erased for good still shows.",
    "obeyed-injection": "It followed an instruction hidden in remembered text.",
    "observer-effect": "Measuring changed the memory, although every question went to a copy.",
}
"""Name of a violation -> what happened, for somebody who sees it for the first time."""
