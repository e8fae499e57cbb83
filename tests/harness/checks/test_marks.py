"""The marks of units: what a listing is held against is counted as it changes, and counted right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.checks import Scorer
from steeltrap.harness.checks.ledger import Account, Ledger, Mark
from steeltrap.harness.drive import drive
from steeltrap.harness.history import joined, read_events, read_header
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import tenant_of
from steeltrap.workloads.compose import ScriptSettings, compose

BORNE = {
    "outdated": lambda a: not a.erased and a.outdated and a.shown and (not a.hop or a.right),
    "rumoured": lambda a: not a.erased and a.rumoured,
    "erased": lambda a: a.erased,
    "injected": lambda a: not a.erased and a.injected,
}


def counted(ledger: Ledger, accounts: list[Account], mark: Mark, tenant: str) -> Counter[str]:
    """Families of the units that bear a mark, by going over all of them."""
    known = (a for a in accounts if tenant_of(a.unit) == tenant and not a.unsure)
    return Counter(account.family for account in known if BORNE[mark](account))


@pytest.mark.parametrize("name", ["never-supersedes", "forgets-by-age"])
def test_the_counts_are_those_of_all_accounts(name: str, tmp_path: Path) -> None:
    """After every step each mark is counted as going over all accounts would count it."""
    script = compose(ScriptSettings(name="adversarial", turns=150), 2)
    memory, history = MUTANTS[name](), tmp_path / "history.jsonl"
    memory.told(script)
    memory.open(tmp_path)
    drive(memory, script, history, limit=10)
    scorer, most = Scorer(script.header, read_header(history).capabilities, Oracle()), Counter()
    marks: tuple[Mark, ...] = ("outdated", "rumoured", "erased", "injected")
    for number, (step, event) in enumerate(joined(script, read_events(history))):
        if number % 7 == 0:  # a step that is doubtful now and then
            event.type = "info"
        scorer.observe(step, event)
        ledger = scorer.ledger
        accounts = list(ledger.accounts.values())
        for mark in marks:
            for tenant in ledger.tenants:
                true = counted(ledger, accounts, mark, tenant)
                assert true == Counter(dict(ledger.marked(mark, [tenant]))), (step.id, mark)
                most[mark] = max(most[mark], true.total())
    assert all(most[mark] for mark in marks)
