"""Faults of model providers, on purpose and on a schedule.

What becomes of a call depends on the seed, on what is asked and on how often it was asked before,
and on nothing else: neither order nor concurrency changes it, and a retry draws anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

import msgspec

from steeltrap.harness.gateway.backend import Backend, BackendError, Call, Understands, Vectors
from steeltrap.harness.models import Reply, ToolCall
from steeltrap.harness.script import Script

__all__ = ["Fault", "FaultError", "Faulty"]

Fault = Literal["429", "500", "timeout", "cut", "malformed", "empty", "wrong-schema"]
"""429 and 500: that status. timeout: no answer until the client gives up. cut: the connection breaks half-way through the
answer. malformed: its JSON ends in the middle. empty: it says nothing. wrong-schema: it is JSON of
another shape."""

FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)
_STRANGE: Final = {"unexpected": [1, 2, 3]}
"""JSON that is of nobody's schema."""


class FaultError(ValueError):
    """A schedule of faults makes no sense; the message says why."""


class Faulty:
    """Lets another back end answer, and has a share of the answers go wrong.

    The other back end counts the calls that came to it whole: a call that is asked again after a
    fault is to it the call that the fault took. So a recording made without faults serves a run
    under faults.

    Args:
        inner: the back end that answers.
        shares: of all calls, for each fault. Vectors have no text that could be empty or of
            another shape: those two leave embeddings as they are, and `wrong-schema` plain text.
        seed: of the schedule.
        retry_after_s: what a 429 asks clients to wait.

    Raises:
        FaultError: an unknown fault, or shares that are none.
    """

    def __init__(
        self,
        inner: Backend,
        shares: Mapping[str, float],
        *,
        seed: int = 0,
        retry_after_s: float = 0.1,
    ) -> None:
        self._inner = inner
        self.name = inner.name
        self._shares = _checked(shares)
        self._seed = seed
        self._retry_after_s = retry_after_s

    def begin(self) -> None:
        """A new life of a memory begins."""
        self._inner.begin()

    def understand(self, script: Script) -> None:
        """Tell whoever answers of another script, where that matters."""
        if isinstance(self._inner, Understands):
            self._inner.understand(script)

    def fault(self, key: str, nth: int) -> Fault | None:
        """What becomes of a call when it is asked for the nth time, from 0 on."""
        drawn = hashlib.sha256(f"{self._seed}\0{key}\0{nth}".encode()).digest()
        point = int.from_bytes(drawn[:8], "big") / 2**64
        for fault, share in self._shares.items():
            if point < share:
                return fault
            point -= share
        return None

    async def chat(self, call: Call) -> Reply:
        """The other back end's answer.

        Raises:
            BackendError: the fault, or the other back end's.
        """
        fault = self.fault(call.key, call.nth)
        _fail(fault, self._retry_after_s)
        reply = await self._inner.chat(self._whole(call))
        if fault == "cut":
            raise BackendError("the connection broke off", kind="cut", reply=reply)
        broken = _BREAK[fault](reply) if fault else reply
        if broken != reply:
            raise BackendError(
                f"a broken answer ({fault})", status=200, kind="malformed", reply=broken
            )
        return reply

    async def embed(self, call: Call) -> Vectors:
        """The other back end's vectors.

        Raises:
            BackendError: the fault, or the other back end's.
        """
        fault = self.fault(call.key, call.nth)
        _fail(fault, self._retry_after_s)
        if fault == "cut":
            raise BackendError("the connection broke off", kind="cut")
        if fault == "malformed":
            raise BackendError("a broken answer (malformed)", status=200, kind="malformed")
        return await self._inner.embed(self._whole(call))

    def _whole(self, call: Call) -> Call:
        """The call as it counts without the faults before it."""
        whole = sum(self.fault(call.key, nth) is None for nth in range(call.nth))
        return msgspec.structs.replace(call, nth=whole)


def _checked(shares: Mapping[str, float]) -> dict[Fault, float]:
    """The shares in the order of `FAULTS`."""
    given = {str(fault): share for fault, share in shares.items()}
    if unknown := sorted(set(given) - set(FAULTS)):
        raise FaultError(f"faults.{unknown[0]}: there are {', '.join(FAULTS)}")
    for fault, share in given.items():
        if not 0 <= share <= 1:
            raise FaultError(f"faults.{fault}={share}: write a share from 0 to 1")
    if sum(given.values()) > 1 + 1e-9:
        raise FaultError(f"faults: the shares add up to {sum(given.values()):g}, more than 1")
    return {fault: given[fault] for fault in FAULTS if given.get(fault)}


def _fail(fault: Fault | None, retry_after_s: float) -> None:
    """Raise a fault that leaves no answer at all."""
    if fault == "429":
        raise BackendError("too many requests", status=429, retry_after_s=retry_after_s)
    if fault == "500":
        raise BackendError("the server had an error", status=500)
    if fault == "timeout":  # the server holds the connection until the client gives up
        raise BackendError("no answer in time", status=0, kind="timeout")


# ---------------------------------------------------------------- broken answers


def _malformed(reply: Reply) -> Reply:
    """JSON that ends in the middle; arguments of a function become the text that they were."""
    text = reply.text.strip()
    if reply.calls:
        text = msgspec.json.encode(reply.calls[0].arguments).decode()
    return msgspec.structs.replace(
        reply, text=text[: len(text) // 2], calls=(), finish="length", logprobs=()
    )


def _empty(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, text="", calls=(), logprobs=())


def _wrong_schema(reply: Reply) -> Reply:
    """JSON of another shape; plain text has none that could be another."""
    if reply.calls:
        calls = tuple(ToolCall(call.name, _STRANGE) for call in reply.calls)
        return msgspec.structs.replace(reply, calls=calls)
    if not _is_json(reply.text):
        return reply
    text = msgspec.json.encode(_STRANGE).decode()
    return msgspec.structs.replace(reply, text=text, logprobs=())


def _is_json(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict | list)
    except msgspec.DecodeError:
        return False


_BREAK: Final[dict[Fault, Callable[[Reply], Reply]]] = {
    "malformed": _malformed, "empty": _empty, "wrong-schema": _wrong_schema,
}  # fmt: skip
