"""Policies of memories whose policy is learned in the papers: named, never learned here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

__all__ = ["MODEL", "policy_class"]

MODEL: Final = "model"
"""The chat model behind the gateway decides."""


def policy_class(path: str, model: type[Any]) -> Any:
    """The class of a policy; it is called with the memory's `Chat`, and keeps nothing between calls.

    Args:
        path: `model`, or where the class is: `package.module.Class`.
        model: the class for `model`.

    Raises:
        ValueError: there is no such class.
    """
    if path == MODEL:
        return model
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name) if module else None
    except (ImportError, AttributeError) as error:
        raise ValueError(f"policy={path}: {error}") from error
    if not callable(found):
        raise ValueError(f"policy={path}: write {MODEL}, or package.module.Class of your own")
    return found
