"""The script's time and stable ids, where the packages would take the wall clock and chance.

The store stamps what it stores, and the manager names new memories and the sessions of its prompts;
their interfaces take neither. So `datetime` and `uuid` are replaced in their two modules, which
changes nothing else of what they do.
"""

from __future__ import annotations

import uuid
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from steeltrap.adapters import present
from steeltrap.adapters.present import Present

__all__ = ["Present", "install"]


def install() -> None:
    """Put the time and the ids of `Present.at_work` into LangGraph's store and LangMem's manager."""
    present.install(import_module("langgraph.store.memory"))
    manager: Any = import_module("langmem.knowledge.extraction")
    manager.uuid = SimpleNamespace(
        uuid4=lambda: Present.at_work.uuid4(), uuid5=uuid.uuid5, NAMESPACE_DNS=uuid.NAMESPACE_DNS
    )
