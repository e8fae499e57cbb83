"""The mutant that proves the check of the page "Add a check"."""

# region mutant
from steeltrap.adapters.mutants.base import Mutant
from steeltrap.harness.memory import Item


class SaysItTwice(Mutant):
    """Serves the present value twice."""

    name = "says-it-twice"
    raises = ("repeated-item",)
    families = ("revision-chain",)

    def now(self, name: str) -> list[Item]:
        """The right answer, and once more."""
        return [*self.present(name), *self.present(name)]


# endregion
