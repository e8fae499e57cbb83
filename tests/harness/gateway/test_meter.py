"""The meter: who caused which call, and which failures were never made good."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec
import openai
import pytest

from steeltrap.harness import tokens
from steeltrap.harness.gateway import BackendError, Call, Gateway
from steeltrap.harness.gateway.meter import Kind, Meter, kind_of
from steeltrap.harness.models import Ask, Message, Reply, Tool, ToolCall, Usage

Opener = Callable[..., Gateway]
A, B = Kind("chat", "extract"), Kind("chat", "update")
VECTORS = Kind("embeddings")


def failed(meter: Meter, kind: Kind = A, why: str = "was answered 500 (no)") -> None:
    meter.answered(meter.arrived(kind.dialect), kind, Usage(), why)


def whole(meter: Meter, kind: Kind = A) -> None:
    meter.answered(meter.arrived(kind.dialect), kind, Usage())


def asking(gateway: Gateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=gateway.models.openai_url, api_key="k", max_retries=0)


def create(client: openai.OpenAI, *said: tuple[str, str], **more: Any) -> Any:
    messages: Any = [{"role": role, "content": text} for role, text in said]
    return client.chat.completions.create(model="m", messages=messages, **more)


def test_calls_are_counted_where_they_were_caused() -> None:
    """A call belongs to the phase in force when it arrived, also when it is answered later."""
    meter = Meter()
    meter.at(3, "ingest")
    late = meter.arrived("chat")
    meter.at(3, "retrieve")
    meter.answered(meter.arrived("embeddings"), VECTORS, Usage(embedded_tokens=5, ms=2.0))
    meter.answered(late, A, Usage(prompt_tokens=100, completion_tokens=7), "was answered 500 (no)")
    assert meter.taken() == {
        "retrieve": Usage(calls=1, embeddings=1, embedded_tokens=5, ms=2.0),
        "ingest": Usage(calls=1, failed=1, prompt_tokens=100, completion_tokens=7),
    }
    assert meter.taken() == {}


def test_a_call_of_an_earlier_life_counts_in_none() -> None:
    """What a memory had asked when its process died is answered to nobody, and awaited by nobody."""
    meter = Meter()
    meter.at(3, "ingest")
    late = meter.arrived("chat")
    meter.begin()
    meter.at(0, "ingest")
    meter.answered(late, A, Usage(prompt_tokens=100), "was not answered (gone)", stops="spent")
    assert {} == meter.taken()
    assert "" == meter.unrecovered() == meter.stopped()


def test_a_step_waits_for_calls_that_are_still_open() -> None:
    """What a client gave up just now is not missed, because its failure comes in a moment later."""
    meter = Meter()
    meter.at(0, "ingest")
    arrival = meter.arrived("chat")
    later = threading.Timer(0.05, meter.answered, (arrival, A, Usage(), "was not answered (gone)"))
    later.start()
    assert "was not answered (gone)" in meter.unrecovered()
    assert meter.taken()["ingest"].failed == 1
    later.join()


def test_a_failure_is_made_good_by_a_later_call_of_its_kind() -> None:
    """Only a whole answer that came after it, to a call of the same kind, makes a failure good."""
    meter = Meter()
    meter.at(0, "ingest")
    whole(meter)
    failed(meter)
    assert meter.unrecovered()
    whole(meter, B)
    assert meter.unrecovered()
    whole(meter)
    assert meter.unrecovered() == ""


def test_an_older_call_makes_nothing_good() -> None:
    """A call that was under way before the failing one came is no second try."""
    meter = Meter()
    older = meter.arrived("chat")
    failed(meter)
    meter.answered(older, A, Usage())
    assert meter.unrecovered()


def test_a_step_answers_for_itself() -> None:
    """A new step begins with a clean slate; a new phase of the same step does not."""
    meter = Meter()
    meter.at(0, "settle")
    failed(meter)
    meter.at(0, "retrieve")
    assert "during settle" in meter.unrecovered()
    meter.at(1, "retrieve")
    assert meter.unrecovered() == ""


def test_the_sentence_names_the_call() -> None:
    """The sentence says which call it was, when, what became of it, and how many there are."""
    meter = Meter()
    meter.at(0, "ingest")
    system = (
        "You are a Memory Extractor.\nRead what follows and write down every fact that it states"
    )
    failed(meter, Kind("chat", system), "was answered 503 (overloaded)")
    assert meter.unrecovered() == (
        "the chat call 'You are a Memory Extractor. Read what follows and write …' during ingest"
        " was answered 503 (overloaded), and no later call of its kind was answered"
    )
    failed(meter, Kind("chat", "", "ExtractedEdges"))
    assert meter.unrecovered().endswith("was answered (2 such calls)")
    for kind, named in [
        (Kind("chat", "s", "ExtractedEdges"), "the chat call for ExtractedEdges"),
        (Kind("responses", tools=("f", "g")), "the responses call with the tools f, g"),
        (Kind("messages"), "a messages call without a system message"),
        (VECTORS, "a request for embeddings"),
        (Kind("messages", None), "a messages request that cannot be read"),
    ]:
        assert str(kind) == named


def test_kinds_of_calls() -> None:
    """Calls are of one kind whose dialect, system message, schema and tools have the same names."""

    def kind(dialect: str = "chat", system: str = "s", user: str = "u", **more: Any) -> Any:
        ask = Ask("m", (Message("system", system), Message("user", user)), **more)
        return kind_of(dialect, Call(dialect, {}, "", 0, ask))  # type: ignore[arg-type]

    assert kind() == kind(user="other", temperature=1.0)
    others = [
        kind("responses"), kind(system="t"), kind(schema_name="n"), kind(tools=(Tool("f"),)),
        kind(tools=(Tool("g"),)), kind_of("embeddings", None), kind_of("chat", None),
    ]  # fmt: skip
    assert len({kind(), *others}) == 8


def test_counted_where_the_provider_says_nothing(opened: Opener) -> None:
    """Tokens of prompt, tools, schema and answer are counted with the real encoding."""
    call = ToolCall("f", {"a": "ä"})
    gateway = opened(Reply("three short words", calls=(call,)))
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    with asking(gateway) as client:
        found = create(client, ("system", "Be brief."), ("user", "Hello there"), tools=tools)
    used = gateway.meter.taken()[""]
    shown = msgspec.json.encode([Tool("f", "", {"type": "object"})]).decode()
    prompt = sum(map(tokens.count, ["Be brief.", "Hello there", shown]))
    assert used.prompt_tokens == found.usage.prompt_tokens == prompt
    said = tokens.count("three short words") + tokens.count('f{"a":"ä"}')
    assert used.completion_tokens == found.usage.completion_tokens == said


def test_the_provider_counts_better(opened: Opener) -> None:
    """Where the back end knows the provider's own counts, these stand."""
    counts = Usage(prompt_tokens=50, completion_tokens=4, cached_tokens=40)
    gateway = opened(Reply("yes", usage=counts))
    gateway.meter.at(0, "ingest")
    with asking(gateway) as client:
        create(client, ("user", "hello"))
    used = gateway.meter.taken()["ingest"]
    assert msgspec.structs.replace(used, ms=0.0) == counts + Usage(calls=1)
    assert used.ms > 0


def test_the_time_of_the_back_end(opened: Opener) -> None:
    """`ms` is the back end's wall time alone, also of a failed call."""

    def answer(call: Call) -> Reply:
        threading.Event().wait(0.05)
        raise BackendError("no")

    gateway = opened(answer)
    with asking(gateway) as client, pytest.raises(openai.InternalServerError):
        create(client, ("user", "hello"))
    used = gateway.meter.taken()[""]
    assert (used.calls, used.failed, used.prompt_tokens) == (1, 1, 0)
    assert 50 <= used.ms < 90


def test_a_swallowed_failure_is_found(opened: Opener) -> None:
    """A system that catches an error and goes on as if nothing was is found out; one that tries again is not."""
    failures = ["extract", "extract"]

    def answer(call: Call) -> Reply:
        assert call.ask is not None
        if call.ask.said("system") in failures:
            failures.remove(call.ask.said("system"))
            raise BackendError("overloaded", status=503)
        return Reply("{}")

    gateway = opened(answer)
    with asking(gateway) as client:
        gateway.meter.at(0, "ingest")
        with pytest.raises(openai.InternalServerError):
            create(client, ("system", "extract"), ("user", "a"))
        create(client, ("system", "update"), ("user", "a"))
        assert gateway.meter.unrecovered() == (
            "the chat call 'extract' during ingest was answered 503 (overloaded),"
            " and no later call of its kind was answered"
        )
        gateway.meter.at(1, "ingest")
        with pytest.raises(openai.InternalServerError):
            create(client, ("system", "extract"), ("user", "b"))
        create(client, ("system", "extract"), ("user", "b, please"))
        assert gateway.meter.unrecovered() == ""


def test_a_failed_call_is_made_good_only_by_one_that_asks_the_same() -> None:
    """Another sentence of the same kind, or another text to embed, makes up for nothing."""
    meter = Meter()
    meter.at(1, "ingest")

    def call(kind: Kind, *asked: str, broken: str = "") -> None:
        meter.answered(meter.arrived(kind.dialect), kind, Usage(), broken, asked=asked)

    call(A, "extract: one", broken="was answered 500 (no)")
    call(A, "extract: two")
    assert meter.unrecovered()
    call(A, "extract: one\nYour last answer could not be used")
    assert not meter.unrecovered()
    call(VECTORS, "one", "two", broken="was cut off")
    call(VECTORS, "one")
    assert meter.unrecovered()
    call(VECTORS, "two")
    assert not meter.unrecovered()
