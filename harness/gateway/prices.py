"""What models cost, from the table `prices.toml` beside this module."""

from __future__ import annotations

import importlib.resources
import re
import tomllib
from functools import cache

import msgspec

from steeltrap.harness.models import Usage

__all__ = ["Price", "cost_usd", "price"]

_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the table: dollars per million tokens."""

    models: list[str]
    source: str
    """Whose page: a name that stands at the head of the table."""
    input: float = 0.0
    cached_input: float | None = None
    """Of a prompt's part that the provider had in its cache; None: no discount."""
    cache_write: float | None = None
    """Of what is put into the cache; None: as any input. Not used here, because usage does not
    say how much that was: it is counted as plain input."""
    output: float = 0.0
    embedding: float | None = None
    """Of what is embedded; None: not an embedding model."""
    second_hand: bool = False
    """No page of the provider was seen."""


class _Table(msgspec.Struct):
    price: list[Price]


@cache
def _table() -> list[Price]:
    file = importlib.resources.files("steeltrap.harness.gateway") / "prices.toml"
    return msgspec.convert(tomllib.loads(file.read_text("utf-8")), _Table).price


@cache
def price(model: str) -> Price | None:
    """The entry of a model or of a dated snapshot of it; None: the table has none."""
    name = re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", model)
    return next((entry for entry in _table() if name in entry.models), None)


def cost_usd(model: str, usage: Usage) -> float | None:
    """What a usage costs with a model, in dollars.

    Args:
        model: a chat model, for what was sent and answered; an embedding model, for what was
            embedded.
        usage: of that model alone.

    Returns:
        None where the table does not have the model: unknown is not free.
    """
    known = price(model)
    if known is None:
        return None
    if known.embedding is not None:
        return usage.embedded_tokens * known.embedding / _MILLION
    cached = known.input if known.cached_input is None else known.cached_input
    fresh_tokens = usage.prompt_tokens - usage.cached_tokens
    dollars = fresh_tokens * known.input + usage.cached_tokens * cached
    return (dollars + usage.completion_tokens * known.output) / _MILLION
