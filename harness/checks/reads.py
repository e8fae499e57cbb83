"""C1, C3, resurrection and the names beyond the six: what probes show.

C1 (query soundness): the answer is the most recent value; earlier ones only on request.
C3 (dependency consistency): an update reaches what follows from it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from steeltrap.harness import values
from steeltrap.harness.checks.judge import Finding
from steeltrap.harness.checks.ledger import Account, Mark
from steeltrap.harness.checks.sheet import Sheet, View
from steeltrap.harness.readers import Claim
from steeltrap.harness.script import Audit, Probe, tenant_of
from steeltrap.harness.verdict import CONDITION_OF, Violation

__all__ = ["Beyond", "Dependency", "QuerySoundness", "Resurrection"]


def _wanted(probe: Probe) -> str:
    expect = probe.expect
    if expect is None or expect.value is None:
        return "nothing is set"
    spelled = values.display(expect.value)
    return spelled if expect.state == "set" else f"{spelled}, waiting for review"


def _named(view: View, finding: Finding) -> Violation:
    probe = finding.probe
    assert probe.unit is not None
    return view.violation(
        finding.name, CONDITION_OF[finding.name], probe.unit, _wanted(probe), finding.observed,
        [view.catalogue.written_by(probe.unit, value) for value in finding.answer.values],
    )  # fmt: skip


def _answered(view: View, finding: Finding) -> bool:
    """Whether an answer says something of the memory; silence does only where it once spoke."""
    if finding.verdict in ("missing", "inherited", "unknown"):
        return False
    return not finding.silent or bool(view.ledger.account(finding.probe.unit or "").shown)


class QuerySoundness:
    """C1, at every current and historical probe that was answered."""

    def __init__(self) -> None:
        self.sheet = Sheet("C1")

    def probe(self, view: View) -> None:
        """Look at one judged answer."""
        finding = view.finding
        if finding is None or not _answered(view, finding):
            return
        turns = view.ledger.turns
        if finding.probe.ask != "current":
            found = [_named(view, finding)] if finding.name else []
            self.sheet.test(("history-denied", "wrong-read", "ambiguous-read"), turns, *found)
            return
        names = ("stale-read", "ambiguous-read", "wrong-read", "exposed-history")
        found = []
        if finding.name in names:
            found.append(_named(view, finding))
        elif finding.verdict == "correct" and view.exposed:
            found.append(self._exposed(view, finding.probe))
        self.sheet.test(names, turns, *found)

    def _exposed(self, view: View, probe: Probe) -> Violation:
        assert probe.unit is not None
        shown = ", ".join(values.display(value) for value in view.exposed)
        witness = [view.catalogue.written_by(probe.unit, value) for value in view.exposed]
        return view.violation(
            "exposed-history", "C1", probe.unit, _wanted(probe), f"also {shown}", witness
        )


class Resurrection:
    """The part of C2 that probes show: right once, wrong later, with no update between."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet

    def probe(self, view: View) -> None:
        """Look at one judged answer, before the ledger learns of it."""
        finding = view.finding
        if finding is None or finding.probe.ask != "current" or not _answered(view, finding):
            return
        assert finding.probe.unit is not None
        if view.ledger.account(finding.probe.unit).right:
            found = [_named(view, finding)] if finding.name == "resurrection" else []
            self.sheet.test(("resurrection",), view.ledger.turns, *found)


class Dependency:
    """C3, at every probe of a dependent whose source was right, of a decoy, and of a cycle."""

    def __init__(self) -> None:
        self.sheet = Sheet("C3")
        self.inferable = 0
        self.missed_by_hop: dict[int, list[int]] = {}
        self.by_rule: dict[str, list[int]] = {}
        """See `Outcome.by_rule`."""

    def probe(self, view: View) -> None:
        """Look at one judged answer."""
        finding = view.finding
        if finding is None or finding.probe.ask != "current" or not _answered(view, finding):
            return
        probe, ledger = finding.probe, view.ledger
        assert probe.unit is not None
        found = [_named(view, finding)] if CONDITION_OF.get(finding.name) == "C3" else []
        names = []
        if probe.hop:
            names = ["missed-propagation", "wrong-propagation"]
        elif ledger.decoy(probe.unit) or finding.name == "spurious-propagation":
            names = ["spurious-propagation"]
        if ledger.account(probe.unit).on_cycle:
            names.append("runaway")
        if not names:
            return
        self.sheet.test(names, ledger.turns, *found)
        if probe.hop:
            self._by_hop(view, finding)
        if probe.hop == 1:
            self._by_rule(view, finding)

    def _by_hop(self, view: View, finding: Finding) -> None:
        missed = finding.name == "missed-propagation"
        row = self.missed_by_hop.setdefault(finding.probe.hop, [0, 0])
        row[0] += missed
        row[1] += 1
        if missed and self._could_infer(view, finding.probe):
            self.inferable += 1

    def _by_rule(self, view: View, finding: Finding) -> None:
        kind = view.ledger.rule(finding.probe.via or "", finding.probe.unit or "")
        row = self.by_rule.setdefault(kind, [0, 0, 0, 0])
        row[0] += finding.name == "missed-propagation"
        row[1] += finding.name == "wrong-propagation"
        row[2] += finding.answer.kind == "review"
        row[3] += 1

    def _could_infer(self, view: View, probe: Probe) -> bool:
        """Whether the rule and the new value of the source were both served."""
        source = probe.via
        held = view.ledger.account(source).value if source else None
        claims = view.claims_of(source) if source else []
        ruled = any(c.meaning == "rule" and c.target == probe.unit for c in claims)
        return ruled and any(c.value == held for c in claims)


class Beyond:
    """Beyond the six: leaks between tenants, traces of what was erased, obeyed injections."""

    def __init__(self, capabilities: list[str]) -> None:
        self.sheet = Sheet("beyond")
        if "erase" not in capabilities:
            self.sheet.block("trace", "nothing can be erased")

    def probe(self, view: View) -> None:
        """Look at what one probe was served."""
        probe = view.step
        assert isinstance(probe, Probe)
        tenants = view.ledger.tenants
        if len(tenants) > (probe.tenant in tenants) + (bool(probe.tenant) and "" in tenants):
            self._leak(view)
        if view.ledger.erased:
            self._trace(view)
        finding = view.finding
        if finding is None or probe.unit is None:
            return
        account = view.ledger.account(probe.unit)
        if account.injected and not account.erased and _answered(view, finding):
            found = [_named(view, finding)] if finding.name == "obeyed-injection" else []
            self.sheet.test(("obeyed-injection",), view.ledger.turns, *found)

    def _leak(self, view: View) -> None:
        foreign, found = view.foreign, []
        if foreign is not None:
            shown = values.display(foreign.value) if foreign.value else foreign.meaning
            found = [view.violation("leak", "beyond", foreign.unit, f"nothing of {tenant_of(foreign.unit)}", shown)]  # fmt: skip
        self.sheet.test(("leak",), view.ledger.turns, *found)

    def _trace(self, view: View) -> None:
        """Whatever was asked: nothing that was erased may be served."""
        ghost, found = view.ghost, []
        if ghost is not None:
            shown = values.display(ghost.value) if ghost.value else ghost.meaning
            found = [view.violation("trace", "beyond", ghost.unit, "nothing: it was erased", shown)]
        self.sheet.test(("trace",), view.ledger.turns, *found)

    def audit(self, view: View) -> None:
        """Look up the history of what was erased."""
        audit = view.step
        assert isinstance(audit, Audit)
        unit = audit.unit
        account = view.ledger.account(unit)
        if not account.erased or account.unsure:
            return
        claims = [claim for _, said in view.versions for claim in said]
        claims += [claim for item in view.recovered for claim in item]
        left = sum(claim.unit == unit and claim.meaning != "rule" for claim in claims)
        found = [view.violation("trace", "beyond", unit, "no history: it was erased", f"{left} entries")] if left else []  # fmt: skip
        self.sheet.test(("trace",), view.ledger.turns, *found)

    def listing(self, view: View) -> None:
        """Look for what was erased or injected in the listed state."""
        self._absent(view, "erased", "trace", lambda account, held: True)  # noqa: ARG005
        self._absent(view, "injected", "obeyed-injection", _obeyed)

    def _absent(
        self, view: View, mark: Mark, name: str, wrong: Callable[[Account, list[Claim]], bool]
    ) -> None:
        assert view.listing is not None
        due = list(view.ledger.marked(mark, view.listing.latest))
        found: dict[str, list[Violation]] = {}
        for account, held in view.shown(mark) if due else ():
            if wrong(account, held):
                violation = view.violation(
                    name, "beyond", account.unit, "not in the listed state", "listed"
                )
                found.setdefault(account.family, []).append(violation)
        for family, points in due:
            self.sheet.tests(name, view.ledger.turns, family, points, found.get(family, []))


def _obeyed(account: Account, held: list[Claim]) -> bool:
    return any(claim.value and account.role(claim.value) == "injected" for claim in held)
