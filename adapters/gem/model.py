"""The reference system with a model that reads for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from steeltrap.adapters.gem.memory import Gem
from steeltrap.harness.memory import MemoryFault
from steeltrap.harness.models import Models
from steeltrap.reference_system.interpret import ModelInterpreter

__all__ = ["ModelGem"]


class ModelGem(Gem):
    """`Gem` whose interpreter asks a model.

    Args:
        dialect: `openai` or `anthropic`: the client through which it asks.
        settings: as for `Gem`.
    """

    def __init__(
        self, *, dialect: Literal["openai", "anthropic"] = "openai", **settings: Any
    ) -> None:
        super().__init__(**settings)
        self._dialect = dialect
        self._models: Models | None = None

    def connect(self, models: Models) -> None:
        """Ask this model."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Begin an empty memory in `folder`.

        Raises:
            MemoryFault: there is no model.
        """
        if self._models is None:
            raise MemoryFault("gem: no model is connected; call connect(models) first")
        if self._dialect == "openai":
            make, url = ModelInterpreter.openai, self._models.openai_url
        else:
            make, url = ModelInterpreter.anthropic, self._models.url
        self._interpreter = make(
            self._models.chat, url, self._models.key,
            timeout_s=self._models.timeout_s, retries=self._models.retries,
        )  # fmt: skip
        super().open(folder)

    def close(self) -> None:
        """Close the store and the connections."""
        super().close()
        if isinstance(self._interpreter, ModelInterpreter):
            self._interpreter.close()
