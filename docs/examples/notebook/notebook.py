"""A memory in a package of its own, as the page "Add a system" builds it."""

# region five
from pathlib import Path

from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance


class Notebook:
    """Keeps the last turns and serves those that share a word with the question, newest first."""

    def __init__(self, keep: int = 50) -> None:
        self.keep = keep
        self.turns: list[Utterance] | None = None

    def open(self, folder: Path) -> None:  # noqa: ARG002
        """Begin empty; files, if any, go below the folder."""
        self.turns = []

    def ingest(self, turn: Utterance) -> None:
        """Write a turn down, and let the oldest go."""
        self.turns = [*self._opened(), turn][-self.keep :]

    def retrieve(self, query: Query) -> list[Item]:
        """Best first, at most as many as may be served."""
        words = _words(query.text)
        found = [t for t in reversed(self._of(query.tenant)) if words & _words(t.text)]
        return [_item(turn) for turn in found[: query.limit]]

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._opened()

    def close(self) -> None:
        """Let everything go."""
        self.turns = None

    def _opened(self) -> list[Utterance]:
        if self.turns is None:
            raise MemoryFault("not open")
        return self.turns

    def _of(self, tenant: str) -> list[Utterance]:
        return [turn for turn in self._opened() if turn.tenant == tenant]

    # endregion
    # region more
    def active(self, tenant: str) -> list[Item]:
        """`list`: everything that competes for a place in an answer."""
        return [_item(turn) for turn in self._of(tenant)]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """`erase`: what names the topic, or everything of the tenant."""
        self.turns = [
            turn
            for turn in self._opened()
            if turn.tenant != tenant or (subject and subject.topic not in turn.text)
        ]

    def fork(self) -> "Notebook":
        """`fork`: a copy to be asked, so that a question changes nothing."""
        copy = Notebook(self.keep)
        copy.turns = list(self._opened())
        return copy

    # endregion


# region help
def _words(text: str) -> set[str]:
    return {word.strip(".,?!'").lower() for word in text.split()}


def _item(turn: Utterance) -> Item:
    return Item(text=turn.text, sources=(turn.id,), valid_from=turn.at)


# endregion
