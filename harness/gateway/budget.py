"""A limit on what a run may spend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.gateway import prices
from steeltrap.harness.gateway.backend import Backend, BackendError, Call, Vectors
from steeltrap.harness.models import Reply, Usage

__all__ = ["BudgetError", "Budgeted", "Purse", "counted"]

_NOTHING: Final = Usage()


class BudgetError(ValueError):
    """A budget cannot be kept; the message says why and what to do."""


class Purse:
    """What was spent so far; several back ends may spend from one.

    Attributes:
        used: what was used.
        used_usd: what that cost; 0 without a limit in dollars.
        spent: why no further call can be answered; empty as long as they can.
    """

    def __init__(self) -> None:
        self.used = Usage()
        self.used_usd = 0.0
        self.spent = ""


class Budgeted:
    """Lets another back end answer until the budget is spent, and then nobody.

    A call that is asked while something is left is answered whole, so the last calls may go over
    the budget, by as many calls as run at a time. What stands around it counts nothing: in
    `Recorded(Budgeted(…), folder)` recorded answers are free, and a run that was stopped goes on
    with a larger budget where it stood.

    Args:
        inner: the back end that costs.
        model: of its chat, as the price table calls it.
        embedding_model: of its vectors; empty where they cost nothing.
        limit_tokens: sent, received and embedded; None for any number.
        limit_usd: by the price table; None for any sum.
        purse: from which all is paid; by default one of its own.

    Raises:
        BudgetError: a limit that is none, or one in dollars for a model without a price.
    """

    def __init__(
        self,
        inner: Backend,
        *,
        model: str,
        embedding_model: str = "",
        limit_tokens: int | None = None,
        limit_usd: float | None = None,
        purse: Purse | None = None,
    ) -> None:
        self._inner = inner
        self.name = inner.name
        self._model = model
        self._embedding_model = embedding_model
        self._limit_tokens = limit_tokens
        self._limit_usd = limit_usd
        self.purse = purse or Purse()
        _check(model, limit_tokens, limit_usd)
        if embedding_model and limit_usd is not None:
            _price(embedding_model)

    def begin(self) -> None:
        """A new life of a memory begins; what was spent stays spent."""
        self._inner.begin()

    async def chat(self, call: Call) -> Reply:
        """The other back end's answer.

        Raises:
            BackendError: budget: it is spent; or the other back end's.
        """
        self._stop_if_spent()
        with self._watching():
            reply = await self._inner.chat(call)
        self._count(self._model, counted(call, reply))
        return reply

    async def embed(self, call: Call) -> Vectors:
        """The other back end's vectors.

        Raises:
            BackendError: budget: it is spent; or the other back end's.
        """
        self._stop_if_spent()
        with self._watching():
            vectors = await self._inner.embed(call)
        if self._embedding_model:
            embedded = sum(tokens.count(text) for text in call.texts)
            self._count(self._embedding_model, Usage(embeddings=1, embedded_tokens=embedded))
        return vectors

    def _stop_if_spent(self) -> None:
        if self.purse.spent:
            raise BackendError(self.purse.spent, status=402, kind="budget")

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """What is spent further in (an account without money) is spent here too."""
        try:
            yield
        except BackendError as error:
            if error.kind == "budget":
                self.purse.spent = error.message
            raise

    def _count(self, model: str, usage: Usage) -> None:
        """Add up what a call used; the call after the one that reaches a limit is refused."""
        purse = self.purse
        purse.used += msgspec.structs.replace(usage, calls=1)
        if self._limit_usd is not None:
            purse.used_usd += _price(model, usage)
        used = purse.used.prompt_tokens + purse.used.completion_tokens + purse.used.embedded_tokens
        if self._limit_tokens is not None and used >= self._limit_tokens:
            self._say(f"{self._limit_tokens} tokens", f"{used}")
        elif self._limit_usd is not None and purse.used_usd >= self._limit_usd:
            self._say(f"{self._limit_usd:g} dollars", f"{purse.used_usd:.4f}")

    def _say(self, limit: str, used: str) -> None:
        self.purse.spent = (
            f"the budget of {limit} is spent ({used} in {self.purse.used.calls} calls of {self.name});"
            " run again with a larger one to go on: what is recorded is not asked twice"
        )


def counted(call: Call, reply: Reply) -> Usage:
    """What a chat call used; counted here where the provider does not say."""
    said = reply.usage
    written = reply.text + "".join(
        msgspec.json.encode(made.arguments).decode() for made in reply.calls
    )
    return msgspec.structs.replace(
        said,
        prompt_tokens=said.prompt_tokens or tokens.count(call.ask.text if call.ask else ""),
        completion_tokens=said.completion_tokens or tokens.count(written),
    )


def _check(model: str, limit_tokens: int | None, limit_usd: float | None) -> None:
    for name, limit in (("limit_tokens", limit_tokens), ("limit_usd", limit_usd)):
        if limit is not None and not limit > 0:
            raise BudgetError(f"{name}={limit}: write a number above 0, or leave it out")
    if limit_usd is not None:
        _price(model)


def _price(model: str, usage: Usage = _NOTHING) -> float:
    dollars = prices.cost_usd(model, usage)
    if dollars is None:
        raise BudgetError(
            f"limit_usd: the price table has no {model}, so nobody knows when the dollars are"
            " spent; give a budget in tokens, or add the price to harness/gateway/prices.toml"
        )
    return dollars
