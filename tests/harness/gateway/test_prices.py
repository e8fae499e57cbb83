"""The price table."""

from __future__ import annotations

import importlib.resources
import tomllib
from collections import Counter

import pytest

from steeltrap.harness.gateway.prices import cost_usd, price
from steeltrap.harness.models import Usage


def table() -> dict[str, object]:
    file = importlib.resources.files("steeltrap.harness.gateway") / "prices.toml"
    return tomllib.loads(file.read_text("utf-8"))


def test_every_entry_can_be_read() -> None:
    """Each model has one price, of a source that the table names; cached is never dearer."""
    raw = table()
    names = Counter(name for entry in raw["price"] for name in entry["models"])  # type: ignore[attr-defined]
    assert max(names.values()) == 1
    for name in names:
        found = price(name)
        assert found is not None
        assert str(raw[found.source]).startswith("https://")
        if found.embedding is not None:
            assert found.embedding > 0
        else:
            assert 0 < found.input < found.output
            assert found.cached_input is not None and found.cached_input < found.input
            assert found.cache_write is None or found.cache_write == pytest.approx(
                1.25 * found.input
            )


def test_what_a_usage_costs() -> None:
    """Fresh, cached and answered tokens have each their price per million."""
    used = Usage(prompt_tokens=3_000_000, cached_tokens=1_000_000, completion_tokens=500_000)
    assert cost_usd("gpt-4.1-mini", used) == pytest.approx(2 * 0.40 + 0.10 + 0.5 * 1.60)
    assert cost_usd("claude-haiku-4-5", used) == pytest.approx(2 * 1.00 + 0.10 + 0.5 * 5.00)
    embedded = Usage(embedded_tokens=1_000_000, prompt_tokens=9)
    assert cost_usd("text-embedding-3-small", embedded) == pytest.approx(0.02)
    assert cost_usd("gpt-4.1", Usage(embedded_tokens=9)) == 0


def test_dated_snapshots_cost_what_their_model_costs() -> None:
    """A date at the end of a name changes nothing; any other ending is another model."""
    assert price("gpt-4.1-2025-04-14") == price("gpt-4.1") != price("gpt-4.1-mini")
    assert price("claude-haiku-4-5-20251001") == price("claude-haiku-4-5")
    assert price("gpt-4.1-turbo") is None


def test_an_unknown_model_is_not_free() -> None:
    """There is no price for a model that the table does not have."""
    for model in ("ideal", "llama", "", "gpt-4"):
        assert cost_usd(model, Usage(prompt_tokens=1)) is None
