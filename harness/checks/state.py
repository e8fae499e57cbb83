"""C2, C4 and C5: what the state preserves and how it is bounded.

C2 (transition soundness): no transition leaves a superseded value current, or breaks a policy.
C4 (provenance preservation): forgetting and revision preserve the chain of every unit.
C5 (bounded active state): the active footprint stays below beta(n), by relevance and not by
age, and what is archived can be had back.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from steeltrap.harness import values
from steeltrap.harness.checks.ledger import Account, Doubt, Mark
from steeltrap.harness.checks.sheet import Sheet, View
from steeltrap.harness.memory import Item
from steeltrap.harness.script import Audit, Gauge, Past, Probe, tenant_of
from steeltrap.harness.verdict import Violation

__all__ = ["BoundedState", "Provenance", "TransitionSoundness"]


class TransitionSoundness:
    """C2, at every listed state and after every fault."""

    def __init__(self, capabilities: list[str]) -> None:
        self.sheet = Sheet("C2")
        if "list" not in capabilities:
            for name in ("superseded-active", "policy-breach"):
                self.sheet.block(name, "the state cannot be listed")

    def listing(self, view: View) -> None:
        """Look for values in the listed state that must not be held for true."""
        assert view.listing is not None
        listed: list[tuple[Mark, str, tuple[str, ...]]] = [
            ("outdated", "superseded-active", ("superseded", "retracted")),
            ("rumoured", "policy-breach", ("rumoured",)),
        ]
        for mark, name, roles in listed:
            due = list(view.ledger.marked(mark, view.listing.latest))
            found: dict[str, list[Violation]] = {}
            for account, held in view.shown(mark) if due else ():
                wrong = [c.value for c in held if c.value and account.role(c.value) in roles]
                if wrong:
                    violation = self._held(view, account, name, wrong)
                    found.setdefault(account.family, []).append(violation)
            for family, points in due:
                self.sheet.tests(name, view.ledger.turns, family, points, found.get(family, []))

    def _held(self, view: View, account: Account, name: str, wrong: list[str]) -> Violation:
        wanted = values.display(account.value) if account.value else "nothing is set"
        shown = ", ".join(values.display(value) for value in wrong)
        witness = [view.catalogue.written_by(account.unit, value) for value in wrong]
        return view.violation(name, "C2", account.unit, wanted, f"listed: {shown}", witness)

    def probe(self, view: View) -> None:
        """After a turn that failed: is it there whole, not at all, or by half?"""
        probe = view.step
        assert isinstance(probe, Probe)
        doubt = view.ledger.doubts.get(probe.unit or "")
        if doubt and probe.unit and probe.unit not in doubt.seen and view.finding:
            self._resolve(view, doubt, probe.unit)

    def _resolve(self, view: View, doubt: Doubt, unit: str) -> None:
        assert view.finding is not None
        answer = view.finding.answer
        if view.ledger.account(unit).began != doubt.turn:
            return
        if answer.value == doubt.after[unit]:
            doubt.seen[unit] = "after"
        elif answer.value == doubt.before[unit]:
            doubt.seen[unit] = "before"
        elif answer.kind in ("missing", "unset") and unit in doubt.held and doubt.before[unit]:
            # the old value was there and is gone, and the new one has not come
            doubt.seen[unit] = "neither"
        if (len(doubt.after) > 1 or unit in doubt.held) and len(doubt.seen) == len(doubt.after):
            torn = len(set(doubt.seen.values())) > 1 or "neither" in doubt.seen.values()
            seen = ", ".join(f"{u.split('/', 1)[1]}: {s}" for u, s in doubt.seen.items())
            found = [view.violation("half-applied", "C2", unit, "all of the turn or nothing", seen)] if torn else []  # fmt: skip
            self.sheet.test(("half-applied",), view.ledger.turns, *found)


class Provenance:
    """C4, at the audit of every unit.

    What a memory never took in is no loss of provenance (C1 has counted it), so only entries are
    asked for that it has answered right while they were current.
    """

    NAMES = ("lost-history", "lost-source", "wrong-order", "invented-source")

    def __init__(self, capabilities: list[str]) -> None:
        self.sheet = Sheet("C4")
        self._ordered = "history" in capabilities
        if not self._ordered:
            self.sheet.block("wrong-order", "there is no history to look up")
        self._sourced = False

    def audit(self, view: View) -> None:
        """Compare the history given with the true one."""
        audit = view.step
        assert isinstance(audit, Audit)
        account = view.ledger.account(audit.unit)
        if account.erased or account.unsure or not audit.history:
            return
        given = self._given(view, audit)
        due = [p for p in audit.history if p.value is not None and p.source in account.shown]
        if not due and not given:
            return
        told = [
            claim.value
            for _, claims in view.versions
            for claim in claims
            if claim.unit == audit.unit and claim.meaning == "past" and claim.value
        ]
        names = {"lost-history": self._lost(due, given, told)}
        if self._ordered:
            names["wrong-order"] = self._disorder(audit.history, given)
        if any(item.sources is not None for item, _ in given):
            self._sourced = True
            names |= self._sources(view, audit, given)
        found = [
            view.violation(name, "C4", audit.unit, _chain(due), problem)
            for name, problem in names.items()
            if problem
        ]
        self.sheet.test(names, view.ledger.turns, *found)

    def _given(self, view: View, audit: Audit) -> list[tuple[Item, str]]:
        """The entries given that speak of the unit, each with the value that it is about."""
        given = []
        for item, claims in view.versions:
            about = [c for c in claims if c.unit == audit.unit and c.value]
            stated = [c for c in about if c.meaning == "states"] or [c for c in about if c.meaning == "past"]  # fmt: skip
            if stated and stated[0].value:
                given.append((item, stated[0].value))
        return given

    def _lost(self, due: list[Past], given: list[tuple[Item, str]], told: list[str]) -> str:
        """Values that are there no more, each as often as it held.

        Args:
            due: the entries asked for.
            given: the entries given, each with its value.
            told: values that entries about others tell of.
        """
        need = Counter(value for value, _ in groupby(p.value for p in due) if value)
        have = Counter(value for _, value in given)
        have += Counter(value for value in dict.fromkeys(told) if value not in have)
        missing = need - have if self._ordered else [value for value in need if value not in have]
        return "".join(f"lost {values.display(value)}; " for value in missing).removesuffix("; ")

    def _disorder(self, history: list[Past], given: list[tuple[Item, str]]) -> str:
        """Whether the entries given stand in another order than they held."""
        order = [value for value, _ in groupby(value for _, value in given)]
        true = [p.value for p in history if p.value is not None]
        rest = iter(true)
        if all(value in rest for value in order if value in true):
            return ""
        if not Counter(order) - Counter(true):
            return "order " + ", ".join(values.display(value) for value in order)
        return ""

    def _sources(self, view: View, audit: Audit, given: list[tuple[Item, str]]) -> dict[str, str]:
        """Entries without the turn that wrote them, and turns that never said so."""
        lost, invented = [], []
        known = {turn for p in audit.history for turn in (p.source, *p.also)}
        for value in dict.fromkeys(value for _, value in given):
            entries = [p for p in audit.history if p.value == value]
            named = [item.sources or () for item, spoken in given if spoken == value]
            found = sum(any(p.source in sources for sources in named) for p in entries)
            if found < min(len(entries), len(named)):
                lost.append(value)
            strange = [
                source
                for item, spoken in given
                for source in item.sources or ()
                if spoken == value and source not in known and not self._spoke(view, source, item)
            ]
            if entries and strange:
                invented.append(value)
        return {
            "lost-source": ", ".join(f"no source for {values.display(v)}" for v in lost),
            "invented-source": ", ".join(f"wrong source for {values.display(v)}" for v in invented),
        }

    def _spoke(self, view: View, source: str, item: Item) -> bool:
        """Whether a turn spoke of anything that the item speaks of."""
        claims = next(claims for known, claims in view.versions if known is item)
        return any(view.catalogue.speaks_of(source, claim.unit) for claim in claims)

    def finish(self) -> None:
        """Say what could not be seen."""
        if not self._sourced:
            for name in ("lost-source", "invented-source"):
                self.sheet.block(name, "no sources are given")


def _chain(due: list[Past]) -> str:
    return " -> ".join(values.display(p.value) for p in due if p.value)


class BoundedState:
    """C5, at every gauge, at audits, and wherever a vital unit is asked for."""

    def __init__(self, capabilities: list[str]) -> None:
        self.sheet = Sheet("C5")
        self._lists = "list" in capabilities
        self._recovers = "recover" in capabilities
        if not self._lists:
            self.sheet.block("over-bound", "the state cannot be listed")
            if not self._recovers:
                self.sheet.block("unrecoverable", "the state can be neither listed nor recovered")

    def gauge(self, view: View) -> None:
        """Hold the active tokens against beta(n)."""
        gauge = view.step
        assert isinstance(gauge, Gauge)
        units, true_tokens = gauge.footprint
        beta = view.ledger.header.beta(true_tokens)
        if not self._lists or not view.event.items or not beta:  # of public data there is no bound
            return
        found = []
        if view.event.tokens > beta:
            found = [Violation(
                "over-bound", "C5", view.i, "", "",
                f"at most {beta:g} tokens ({units} live units of {true_tokens})",
                f"{view.event.tokens} tokens in {view.event.items} items",
            )]  # fmt: skip
        self.sheet.test(("over-bound",), view.ledger.turns, *found)

    def probe(self, view: View) -> None:
        """A vital unit must not be missing while a trivial one is there."""
        finding = view.finding
        if finding is None or finding.probe.ask != "current" or finding.verdict == "unknown":
            return
        probe = finding.probe
        assert probe.unit is not None and probe.expect is not None
        account = view.ledger.account(probe.unit)
        if account.importance != "vital" or probe.expect.state != "set":
            return
        if self._lists and not _fresh(view, tenant_of(probe.unit)):
            return
        found = []
        if finding.verdict == "missing" and not self._listed(view, probe.unit):
            stays = self._trivial_that_stays(view, tenant_of(probe.unit))
            if stays:
                found = [view.violation("inverted-retention", "C5", probe.unit, values.display(probe.expect.value or ""), f"gone, while {stays} stays")]  # fmt: skip
        self.sheet.test(("inverted-retention",), view.ledger.turns, *found)

    def _listed(self, view: View, unit: str) -> bool:
        return view.listing is not None and bool(view.listing.claims(unit))

    def _trivial_that_stays(self, view: View, tenant: str) -> str:
        """A trivial unit of a tenant that is listed, or else was answered at the same point."""
        if self._lists:
            assert view.listing is not None
            return view.listing.trivial.get(tenant, "")
        return view.trivial.get(tenant, "")

    def audit(self, view: View) -> None:
        """A live unit that was there must be active, or be had back by explicit look-up."""
        audit = view.step
        assert isinstance(audit, Audit)
        account = view.ledger.account(audit.unit)
        if not audit.live or account.unsure or account.began not in account.shown:
            return
        if not self._lists and not self._recovers:
            return
        attenuated = not self._listed(view, audit.unit) and account.last_verdict == "missing"
        found = []
        if attenuated and not self._recovered(view, account):
            found = [view.violation("unrecoverable", "C5", audit.unit, values.display(account.value or ""), "neither active nor recovered")]  # fmt: skip
        self.sheet.test(("unrecoverable",), view.ledger.turns, *found)

    def _recovered(self, view: View, account: Account) -> bool:
        claims = [claim for item in view.recovered for claim in item]
        return any(c.unit == account.unit and c.value == account.value for c in claims)


def _fresh(view: View, tenant: str) -> bool:
    """Whether the latest listing of a tenant shows the present state."""
    return view.listing is not None and view.listing.turns.get(tenant) == view.ledger.turns
