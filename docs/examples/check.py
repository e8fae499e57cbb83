"""A check, as the page "Add a check" builds it."""

# region check
from steeltrap.harness.checks.sheet import Sheet, View
from steeltrap.harness.script import Probe


class Repetition:
    """Beyond the six: the same item is served twice to one question."""

    def __init__(self) -> None:
        self.sheet = Sheet("beyond")

    def probe(self, view: View) -> None:
        """Look at what one question was served."""
        probe, served = view.step, view.event.served
        assert isinstance(probe, Probe)
        if not served:
            return  # nothing could have been repeated: no opportunity
        found = []
        if len(set(served)) < len(served):
            twice = len(served) - len(set(served))
            found = [view.violation("repeated-item", "beyond", probe.unit or "",
                                    "each item once", f"{twice} of {len(served)} again")]  # fmt: skip
        self.sheet.test(("repeated-item",), view.ledger.turns, *found)


# endregion
