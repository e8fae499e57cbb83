"""From an answer to a verdict, and from a wrong verdict to its one name.

**One cause, one name.** Four rules decide which broken link a wrong answer is named after; the
earliest one wins:

1. What was erased and is served again is a `trace`, whatever else it is.
2. A derived value whose source was answered wrongly at the same point is `inherited`: the
   source's violation stands for it. Where the source was not answered at all, nobody can tell.
3. A superseded value that comes back after the unit was answered right, with no update between,
   is a `resurrection`, and not also a stale read.
4. Otherwise the value tells: an injected one was obeyed; an old one of a dependent was not
   propagated, and one that its rule does not give was propagated wrongly; an old one of a unit
   that was spoken of directly is stale, and another unit's is a wrong read; one that nobody
   ever wrote anywhere came over an edge (a cycle, an association) if there is one that could
   have brought it, and is a wrong read if there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steeltrap.harness import values
from steeltrap.harness.checks.ledger import Account, Ledger
from steeltrap.harness.readers import Answer, Catalogue
from steeltrap.harness.script import Expect, Probe

__all__ = ["Finding", "Source", "judge_current", "judge_past"]

Source = Literal["right", "wrong", "missing"]
Verdict = Literal[
    "correct", "stale", "ambiguous", "wrong", "missing", "flagged", "inherited", "unknown"
]


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one answer."""

    probe: Probe
    answer: Answer
    verdict: Verdict
    """flagged: served as waiting for review where a value is due; inherited: see above; unknown:
    what is due, or why it is not there, is in doubt."""
    name: str = ""
    """The violation, if it is one."""

    @property
    def silent(self) -> bool:
        """Whether nothing was served, and rightly so."""
        return self.verdict == "correct" and self.answer.kind == "missing"

    @property
    def observed(self) -> str:
        """The answer in words."""
        spelled = " / ".join(values.display(value) for value in self.answer.values)
        return spelled if self.answer.kind == "value" else f"{self.answer.kind} {spelled}".strip()


def judge_current(
    probe: Probe, answer: Answer, ledger: Ledger, catalogue: Catalogue, *, source: Source
) -> Finding:
    """Judge an answer about the present.

    Args:
        probe: a current-value probe with its expectation.
        answer: what a reader made of what was served.
        ledger: the books up to this point.
        catalogue: to tell a known value from an invented one.
        source: how the unit that this value follows from was answered at the same point.
    """
    assert probe.unit is not None and probe.expect is not None
    account = ledger.account(probe.unit)
    if account.unsure:
        return Finding(probe, answer, "unknown")
    verdict, offender = _verdict(answer, probe.expect, account)
    if verdict in ("correct", "missing"):
        return Finding(probe, answer, verdict)
    if account.erased or account.role(offender) == "erased":
        return Finding(probe, answer, "wrong", "trace")
    if source != "right":
        return Finding(probe, answer, "inherited" if source == "wrong" else "unknown")
    if verdict == "flagged":
        return Finding(probe, answer, verdict, _flag(probe, account))
    name = _name(probe, verdict, offender, account, ledger, catalogue)
    return Finding(probe, answer, verdict, name)


def _flag(probe: Probe, account: Account) -> str:
    """Whether a mark for review came over an edge that is none.

    To mark what somebody contests, or what is withdrawn, is no more than careful.
    """
    assert probe.expect is not None
    careful = probe.hop or probe.expect.state != "set" or account.rumoured or account.injected
    return "" if careful else "spurious-propagation"


def _verdict(answer: Answer, expect: Expect, account: Account) -> tuple[Verdict, str]:
    """The verdict, and the value that made it wrong."""
    if answer.kind in ("missing", "unset"):
        return ("correct" if expect.state == "unset" else "missing"), ""
    if answer.kind == "review":
        return _marked(answer.values[0], expect, account)
    others = [
        value
        for value in answer.values
        if not (expect.state == "set" and expect.value and values.matches(value, expect.value))
    ]
    if not others:
        return "correct", ""
    offender = next((v for v in others if _old(v, expect, account)), others[0])
    if len(others) < len(answer.values):
        return "ambiguous", offender
    return ("stale" if _old(offender, expect, account) else "wrong"), offender


def _marked(value: str, expect: Expect, account: Account) -> tuple[Verdict, str]:
    """The verdict on a value that is served as waiting for review."""
    if expect.state != "review":
        return "flagged", value
    known = value == expect.value or account.role(value) in ("superseded", "rumoured")
    return ("correct", "") if known else ("wrong", value)


def _old(value: str, expect: Expect, account: Account) -> bool:
    """Whether a value held before, or holds only until somebody has reviewed it."""
    return account.role(value) == "superseded" or (
        expect.state == "review" and value == expect.value
    )


def _name(
    probe: Probe, verdict: Verdict, offender: str, account: Account, ledger: Ledger,
    catalogue: Catalogue,
) -> str:  # fmt: skip
    role = account.role(offender)
    if role == "injected":
        return "obeyed-injection"
    if role == "superseded" and account.right:
        return "resurrection"
    if verdict == "ambiguous":
        return "ambiguous-read"
    if verdict == "stale":
        return "missed-propagation" if probe.hop else "stale-read"
    if role:
        return "wrong-read"
    if probe.hop:
        return "wrong-propagation"
    owners = catalogue.owners(offender)
    if owners and ledger.nudged(account.unit):
        moved = any(ledger.related(account.unit, owner) for owner in owners)
        return "spurious-propagation" if moved else "wrong-read"
    if owners:
        return "wrong-read"
    if account.on_cycle:
        return "runaway"
    return "spurious-propagation" if ledger.nudged(account.unit) else "wrong-read"


def judge_past(probe: Probe, answer: Answer, ledger: Ledger) -> Finding:
    """Judge an answer about the past (`previous`, `as-of`)."""
    assert probe.unit is not None and probe.expect is not None
    account, due = ledger.account(probe.unit), probe.expect.value
    if account.unsure or account.clouded:
        return Finding(probe, answer, "unknown")
    if answer.kind in ("missing", "unset"):
        return Finding(probe, answer, "missing" if due else "correct")
    if answer.kind == "ambiguous":
        return Finding(probe, answer, "ambiguous", "ambiguous-read")
    value = answer.value
    assert value is not None
    if due is not None and values.matches(value, due):
        return Finding(probe, answer, "correct")
    denied = account.role(value) == "current"
    if due is None and denied:
        # Nothing held before: to say what holds is no denial.
        return Finding(probe, answer, "correct")
    if due is not None and due not in account.shown_values and due not in account.late:
        # What was never taken in was counted when it was current.
        return Finding(probe, answer, "inherited")
    return Finding(probe, answer, "wrong", "history-denied" if denied else "wrong-read")
