from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness import tokens
from steeltrap.harness.gateway.backend import BackendError, Call
from steeltrap.harness.gateway.budget import Budgeted, BudgetError
from steeltrap.harness.gateway.recording import Recorded, Replay
from steeltrap.harness.gateway.upstream import Upstream
from steeltrap.harness.models import Ask, Message, Reply

MODEL = "gpt-4o-mini"
VECTORS = "text-embedding-3-small"
CALL_TOKENS = 1205
CALL_USD = (176 * 0.15 + 1024 * 0.075 + 5 * 0.60) / 1e6


def call(nth: int = 0) -> Call:
    return Call("responses", {}, "k", nth, Ask("m", (Message("user", "Where?"),)))


def upstream(**more: Any) -> Upstream:
    return Upstream("openai", MODEL, retries=0, **more)


def chat(backend: Any, nth: int = 0) -> Reply:
    return asyncio.run(backend.chat(call(nth)))


def refused(backend: Any, nth: int = 0) -> str:
    with pytest.raises(BackendError) as caught:
        chat(backend, nth)
    assert (caught.value.kind, caught.value.status) == ("budget", 402)
    return caught.value.message


def test_tokens_run_out(provider: Any) -> None:
    """Calls are answered as long as something is left, then refused without asking anybody."""
    budgeted = Budgeted(upstream(), model=MODEL, limit_tokens=2 * CALL_TOKENS + 1)
    for nth in range(3):
        assert not budgeted.purse.spent
        assert chat(budgeted, nth).text == "Lisbon."
    for nth in range(3, 6):
        assert refused(budgeted, nth) == budgeted.purse.spent
    assert budgeted.purse.spent == (
        f"the budget of 2411 tokens is spent (3615 in 3 calls of {budgeted.name});"
        " run again with a larger one to go on: what is recorded is not asked twice"
    )
    assert len(provider.seen) == 3


def test_dollars_run_out(provider: Any) -> None:
    """Money is counted by the price table, what was cached at its own price."""
    budgeted = Budgeted(upstream(), model=MODEL, limit_usd=1.5 * CALL_USD)
    chat(budgeted)
    assert budgeted.purse.used_usd == pytest.approx(CALL_USD)
    chat(budgeted, 1)
    assert "dollars is spent (0.0002 in 2 calls" in refused(budgeted, 2)


def test_vectors_cost_too(provider: Any) -> None:
    """Embeddings of the provider are counted, by their own price."""
    of = Call("embeddings", {}, "e", 0, texts=("some text to embed", "more"))
    counted = sum(tokens.count(text) for text in of.texts)
    budgeted = Budgeted(
        upstream(embedding_model=VECTORS), model=MODEL, embedding_model=VECTORS, limit_usd=1.0,
        limit_tokens=counted,
    )  # fmt: skip
    asyncio.run(budgeted.embed(of))
    assert budgeted.purse.used.embedded_tokens == counted
    assert budgeted.purse.used_usd == pytest.approx(counted * 0.02 / 1e6)
    with pytest.raises(BackendError, match="is spent"):
        asyncio.run(budgeted.embed(of))


def test_what_the_provider_does_not_count(provider: Any) -> None:
    """A server that says nothing of usage is counted here, not free."""
    provider.plan(200, {"choices": [{"message": {"content": "one two three"}}]})
    budgeted = Budgeted(upstream(), model=MODEL, limit_tokens=10**6)
    chat(budgeted)
    assert budgeted.purse.used.prompt_tokens == tokens.count("Where?")
    assert budgeted.purse.used.completion_tokens == tokens.count("one two three")


def test_no_limit(provider: Any) -> None:
    """Without a limit nothing is refused, whatever the model."""
    budgeted = Budgeted(Upstream("openai", "unheard-of"), model="unheard-of")
    budgeted.begin()
    for nth in range(3):
        chat(budgeted, nth)
    assert (budgeted.purse.used.calls, budgeted.purse.spent) == (3, "")


def test_failures_cost_nothing(provider: Any) -> None:
    """A call that was not answered is not counted, and is no end of the budget."""
    provider.plan(503, {"error": {"message": "overloaded"}})
    budgeted = Budgeted(upstream(), model=MODEL, limit_tokens=1)
    with pytest.raises(BackendError, match="overloaded"):
        chat(budgeted)
    assert (budgeted.purse.used.calls, budgeted.purse.spent) == (0, "")


def test_an_empty_account_is_a_spent_budget(provider: Any) -> None:
    """A provider that will not answer any more stops a run as the budget does."""
    provider.plan(429, {"error": {"message": "no credit", "code": "insufficient_quota"}})
    budgeted = Budgeted(upstream(), model=MODEL)
    assert "no credit" in refused(budgeted)
    assert "no credit" in budgeted.purse.spent
    assert len(provider.seen) == 1


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"model": "unheard-of", "limit_usd": 1.0}, "the price table has no unheard-of"),
        ({"embedding_model": "unheard-of", "limit_usd": 1.0}, "the price table has no unheard-of"),
        ({"limit_usd": 0.0}, "limit_usd=0.0: write a number above 0"),
        ({"limit_usd": float("nan")}, "write a number above 0"),
        ({"limit_tokens": -5}, "limit_tokens=-5: write a number above 0"),
    ],
)
def test_budgets_that_cannot_be_kept(provider: Any, limits: dict[str, Any], words: str) -> None:
    """An unknown price is an error at the start, never free; so is a limit that is none."""
    with pytest.raises(BudgetError, match=words):
        Budgeted(upstream(), **({"model": MODEL} | limits))


def test_a_stopped_run_goes_on_with_more(provider: Any, tmp_path: Path) -> None:
    """Recorded answers cost nothing: a second run with a new budget pays for the rest alone."""

    def go(limit_tokens: int) -> list[str]:
        budgeted = Budgeted(upstream(), model=MODEL, limit_tokens=limit_tokens)
        recorded = Recorded(budgeted, tmp_path)
        answered = []
        for nth in range(5):
            try:
                answered.append(chat(recorded, nth).text)
            except BackendError:
                assert budgeted.purse.spent
        return answered

    assert len(go(CALL_TOKENS + 1)) == 2
    assert len(provider.seen) == 2
    assert len(go(CALL_TOKENS * 10)) == 5
    assert len(provider.seen) == 5
    replay = Replay(tmp_path)
    assert [chat(replay, nth).text for nth in range(5)] == ["Lisbon."] * 5
