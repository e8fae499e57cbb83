from __future__ import annotations

import asyncio
import hashlib
import math
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.harness.gateway.backend import BackendError, Call, Vectors
from steeltrap.harness.gateway.faults import FAULTS, FaultError, Faulty
from steeltrap.harness.models import Ask, Message, Reply, ToolCall, Usage

ASK = Ask("m", (Message("user", "I like tea."),), form="json")
USAGE = Usage(prompt_tokens=7, completion_tokens=3)


class Speaker:
    name = "m"

    def __init__(self, reply: Reply | None = None) -> None:
        self.reply = reply or Reply('{"facts": ["likes tea"]}', usage=USAGE)
        self.asked: list[int] = []
        self.lives = 0

    def begin(self) -> None:
        self.lives += 1

    async def chat(self, call: Call) -> Reply:
        self.asked.append(call.nth)
        return self.reply

    async def embed(self, call: Call) -> Vectors:
        self.asked.append(call.nth)
        return [[1.0] for _ in call.texts]


def call(key: str = "k", nth: int = 0) -> Call:
    return Call("chat", {}, key, nth, ASK)


def embeddings(key: str = "k", nth: int = 0) -> Call:
    return Call("embeddings", {}, key, nth, texts=("a", "b"))


def keys(n: int) -> list[str]:
    return [hashlib.sha256(str(i).encode()).hexdigest() for i in range(n)]


def broken(reply: Reply | None, fault: str, **more: Any) -> BackendError:
    with pytest.raises(BackendError) as caught:
        asyncio.run(Faulty(Speaker(reply), {fault: 1.0}, **more).chat(call()))
    return caught.value


# ---------------------------------------------------------------- the schedule


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), weights=st.lists(st.integers(0, 9), min_size=7, max_size=7))
def test_shares_are_kept(seed: int, weights: list[int]) -> None:
    """Over many calls every fault comes as often as its share says, within six sigma."""
    shares = {fault: weight / 100 for fault, weight in zip(FAULTS, weights, strict=True)}
    faulty = Faulty(Speaker(), shares, seed=seed)
    n = 2000
    drawn = [faulty.fault(key, 0) for key in keys(n)]
    for fault, share in shares.items():
        bound = 6 * math.sqrt(n * share * (1 - share))
        assert abs(drawn.count(fault) - n * share) <= bound


def test_same_seed_same_schedule() -> None:
    """The seed, the key and the occurrence decide, in whatever order calls come."""
    shares = dict.fromkeys(FAULTS, 0.1)
    calls = [(key, nth) for key in keys(50) for nth in range(4)]
    first = {name: Faulty(Speaker(), shares, seed=3).fault(*name) for name in calls}
    random.Random(1).shuffle(calls)
    again = Faulty(Speaker(), shares, seed=3)
    assert {name: again.fault(*name) for name in calls} == first
    other = Faulty(Speaker(), shares, seed=4)
    assert {name: other.fault(*name) for name in calls} != first


def test_the_schedule_stays() -> None:
    """Draws are pinned: a published run under faults can be had again."""
    faulty = Faulty(Speaker(), dict.fromkeys(FAULTS, 0.1), seed=0)
    assert [faulty.fault("k", nth) for nth in range(8)] == [
        None, "cut", "cut", "cut", "malformed", "malformed", "empty", None,
    ]  # fmt: skip


def test_a_retry_draws_anew() -> None:
    """A call that failed does not fail for ever."""
    faulty = Faulty(Speaker(), {"500": 0.5})
    for key in keys(20):
        drawn = {faulty.fault(key, nth) for nth in range(30)}
        assert drawn == {None, "500"}


def test_the_inner_back_end_counts_whole_calls() -> None:
    """A call asked again after faults is to the model behind them the one it never answered."""
    inner = Speaker()
    faulty = Faulty(inner, {"500": 0.3, "429": 0.2, "empty": 0.2}, seed=1)
    whole = []
    for nth in range(40):
        inner.asked.clear()
        try:
            asyncio.run(faulty.chat(call(nth=nth)))
        except BackendError:
            continue
        whole += inner.asked
    assert whole == list(range(len(whole)))
    assert 3 < len(whole) < 25


def test_no_faults() -> None:
    """Without shares everything passes through, and lives are told."""
    inner = Speaker()
    faulty = Faulty(inner, {})
    faulty.begin()
    assert asyncio.run(faulty.chat(call(nth=3))) is inner.reply
    assert asyncio.run(faulty.embed(embeddings())) == [[1.0], [1.0]]
    assert (inner.asked, inner.lives, faulty.name) == ([3, 0], 1, "m")


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"503": 0.1}, "faults.503: there are 429, 500, timeout"),
        ({"cut": 1.5}, "faults.cut=1.5: write a share from 0 to 1"),
        ({"cut": -0.1}, "write a share"),
        ({"cut": float("nan")}, "write a share"),
        ({"cut": 0.7, "empty": 0.7}, "add up to 1.4"),
    ],
)
def test_schedules_that_make_no_sense(shares: dict[str, float], words: str) -> None:
    """They are refused before anything runs."""
    with pytest.raises(FaultError, match=words):
        Faulty(Speaker(), shares)


def test_numbers_as_names() -> None:
    """YAML reads 429 as a number; it is the same fault."""
    assert Faulty(Speaker(), {429: 1.0}).fault("k", 0) == "429"  # type: ignore[dict-item]


# ---------------------------------------------------------------- the faults


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [("429", 429, "error"), ("500", 500, "error"), ("timeout", 0, "timeout"), ("cut", 500, "cut")],
)
def test_faults_of_the_line(fault: str, status: int, kind: str, embed: bool) -> None:
    """They are errors of their kind, for chat and vectors alike; a 429 says when to come back."""
    faulty = Faulty(Speaker(), {fault: 1.0}, retry_after_s=0.5)
    work = faulty.embed(embeddings()) if embed else faulty.chat(call())
    with pytest.raises(BackendError) as caught:
        asyncio.run(work)  # type: ignore[arg-type]
    error = caught.value
    assert (error.status, error.kind) == (status, kind)
    assert error.retry_after_s == (0.5 if fault == "429" else None)


def test_a_cut_answer_has_a_beginning() -> None:
    """What breaks off is the true answer."""
    assert broken(None, "cut").reply == Speaker().reply


@settings(deadline=None)
@given(
    value=st.dictionaries(st.text(), st.text() | st.lists(st.integers()) | st.none()),
    indent=st.sampled_from([None, 2]),
)
def test_malformed_json_never_parses(value: dict[str, Any], indent: int | None) -> None:
    """JSON that ends in the middle is no JSON, whatever it was."""
    encoded = msgspec.json.encode(value)
    text = msgspec.json.format(encoded, indent=indent or 0).decode()
    reply = broken(Reply(f" {text}\n"), "malformed").reply
    assert reply is not None
    assert text.startswith(reply.text)
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(reply.text)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("malformed", Reply('{"facts": ["', finish="length", usage=USAGE)),
        ("empty", Reply("", usage=USAGE)),
        ("wrong-schema", Reply('{"unexpected":[1,2,3]}', usage=USAGE)),
    ],
)
def test_broken_answers(fault: str, expected: Reply) -> None:
    """They are given as answers, cost what the true one costs, and are marked as broken."""
    error = broken(None, fault)
    assert (error.kind, error.status, error.reply) == ("malformed", 200, expected)
    assert fault in error.message


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("malformed", Reply('{"fac', finish="length")),
        ("empty", Reply("", finish="tools")),
        (
            "wrong-schema",
            Reply(calls=(ToolCall("save", {"unexpected": [1, 2, 3]}),), finish="tools"),
        ),
    ],
)
def test_broken_function_calls(fault: str, expected: Reply) -> None:
    """Calls of functions break too: cut arguments become text, as they do with real models."""
    reply = Reply(calls=(ToolCall("save", {"fact": 1}),), finish="tools")
    assert broken(reply, fault).reply == expected


def test_what_has_no_shape_keeps_it() -> None:
    """Plain text is no other schema's, and vectors are not empty: nothing is done to them."""
    text = Reply("Lisbon.", logprobs=({"Lisbon": -0.1},))
    assert asyncio.run(Faulty(Speaker(text), {"wrong-schema": 1.0}).chat(call())) is text
    for fault in ("wrong-schema", "empty"):
        rows = asyncio.run(Faulty(Speaker(), {fault: 1.0}).embed(embeddings()))
        assert rows == [[1.0], [1.0]]
    with pytest.raises(BackendError) as caught:
        asyncio.run(Faulty(Speaker(), {"malformed": 1.0}).embed(embeddings()))
    assert (caught.value.kind, caught.value.reply) == ("malformed", None)
