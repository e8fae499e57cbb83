"""C6 by twins: only what could have differed accuses anybody."""

from __future__ import annotations

from steeltrap.harness.checks.adaptation import Adaptation, Standing
from steeltrap.harness.script import TwinSpec

PAIR = TwinSpec("twin", a="acme/Atlas/colour", b="acme/Borealis/colour", until="p9")
BEFORE = {"p1": {PAIR.a: (0, 0.0), PAIR.b: (1, 0.0)}}


def test_a_pair_that_is_compared_nowhere_accuses_nobody() -> None:
    """Where nothing is asked after the reads, nothing could have differed: no opportunity."""
    c6 = Adaptation()
    c6.twin(PAIR, Standing(ranks=BEFORE), Standing(ranks=BEFORE), 3, 5)
    assert c6.sheet.verdict().opportunities == 0


def test_a_pair_that_stands_alike_whichever_is_read_shows_inert_retrieval() -> None:
    """Where both are asked for after the reads and nothing differs, reading changed nothing."""
    c6 = Adaptation()
    after = BEFORE | {"p2": BEFORE["p1"]}
    c6.twin(PAIR, Standing(ranks=after), Standing(ranks=after), 3, 5)
    assert [v.name for v in c6.sheet.violations] == ["inert-retrieval"]
