"""The server: where it listens, how it stops, and what becomes of calls that go wrong."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import openai
import pytest

from steeltrap.harness.gateway import BackendError, Call, Embedder, Gateway, Local, Vectors
from steeltrap.harness.gateway.dialects.shared import key
from steeltrap.harness.models import Message, Reply

Opener = Callable[..., Gateway]

HELLO: Any = {"role": "user", "content": "hello"}


class Slow(Local):
    """A back end that does not answer within the time of a test."""

    name = "slow"

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self.given_up = threading.Event()

    async def chat(self, call: Call) -> Reply:  # noqa: ARG002
        try:
            await asyncio.sleep(3_600)
        finally:
            self.given_up.set()
        return Reply()

    def begin(self) -> None: ...


def client(gateway: Gateway, **settings: Any) -> openai.OpenAI:
    models = gateway.models
    return openai.OpenAI(
        base_url=models.openai_url, api_key=models.key, **{"max_retries": 0} | settings
    )


def ask(gateway: Gateway, text: str = "hello", **settings: Any) -> str | None:
    with client(gateway, **settings) as asking:
        reply = asking.chat.completions.create(
            model="ideal", messages=[{"role": "user", "content": text}]
        )
    return reply.choices[0].message.content


def failing(*errors: BackendError) -> Callable[[Call], Reply]:
    """Answers only after it has raised each error once."""
    left = list(errors)

    def answer(call: Call) -> Reply:
        if left:
            raise left.pop(0)
        return Reply("in the end")

    return answer


def own_addresses() -> list[tuple[socket.AddressFamily, str]]:
    """Addresses of this machine other than the one on which the gateway listens."""
    found = {(socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")}
    for family, _, _, _, where in socket.getaddrinfo(socket.gethostname(), None):
        found.add((family, str(where[0])))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing, but chooses an interface
            found.add((socket.AF_INET, probe.getsockname()[0]))
        except OSError:
            pass
    return [where for where in found if where[1] != "127.0.0.1"]


def test_only_loopback_reaches_it(opened: Opener) -> None:
    """The gateway listens on 127.0.0.1 and on no other address of the machine."""
    url = opened().models.url
    assert url.startswith("http://127.0.0.1:")
    port = int(url.rsplit(":", 1)[1])
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    for family, address in own_addresses():
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(2)
            with pytest.raises((ConnectionRefusedError, TimeoutError)):
                probe.connect((address, port))


def test_stopping_releases_everything(
    embedder: Embedder, opened: Opener, capfd: pytest.CaptureFixture[str]
) -> None:
    """After its end the port is free, no thread is left and nothing was printed.

    Also with a connection that is kept open and a call that is never answered.
    """

    def ask_in_vain() -> None:
        with pytest.raises(openai.APIError):
            ask(gateway)

    before = set(threading.enumerate())
    with Gateway(Slow(embedder), embedder) as gateway:
        port = int(gateway.models.url.rsplit(":", 1)[1])
        kept = client(gateway)
        kept.models.list()
        stuck = threading.Thread(target=ask_in_vain)
        stuck.start()
        time.sleep(0.2)
        start = time.perf_counter()
    assert not [thread for thread in threading.enumerate() if thread.name == "gateway"]
    assert time.perf_counter() - start < 3
    stuck.join(5)
    assert not stuck.is_alive()
    kept.close()
    assert set(threading.enumerate()) <= before
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
    with pytest.raises(RuntimeError, match="not running"):
        _ = gateway.models
    assert capfd.readouterr() == ("", "")


def test_fifty_calls_at_a_time(opened: Opener) -> None:
    """Fifty concurrent calls each get their own answer, and each is counted once."""
    gateway = opened(lambda call: Reply(call.ask.messages[0].text.upper()))

    async def all_of_them() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=gateway.models.openai_url, api_key="k") as asking:

            async def one(i: int) -> str | None:
                reply = await asking.chat.completions.create(
                    model="ideal", messages=[{"role": "user", "content": f"call {i}"}]
                )
                return reply.choices[0].message.content

            return await asyncio.gather(*(one(i) for i in range(50)))

    gateway.meter.at(0, "ingest")
    assert asyncio.run(all_of_them()) == [f"CALL {i}" for i in range(50)]
    used = gateway.meter.taken()["ingest"]
    assert (used.calls, used.failed) == (50, 0)


def test_unknown_paths_say_what_there_is(opened: Opener) -> None:
    """Any other path or method is answered 404 or 405 with the paths that exist."""
    url = opened().models.url
    for method, path, status in [
        ("GET", "/", 404), ("POST", "/v1/completions", 404), ("GET", "/v1/messages", 405),
    ]:  # fmt: skip
        found = httpx.request(method, url + path)
        assert found.status_code == status
        said = found.json()["error"]["message"]
        assert f"{method} {path} is not served" in said
        assert "POST /v1/chat/completions" in said and "GET /v1/models" in said
    found = httpx.post(f"{url}/v1/complete", headers={"anthropic-version": "2023-06-01"})
    assert found.json()["type"] == "error"


def test_malformed_requests(opened: Opener) -> None:
    """A request that cannot be read is answered 400 in its dialect's shape, and counted."""
    gateway = opened()
    paths = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"]
    bad = [
        (b"{", "no JSON object"), (b"[]", "no JSON object"), (b"\xff", "no JSON object"),
        (b"{}", "missing required field `m"),
        (b'{"model": 1}', "Expected `str`, got `int` - at `$.model`"),
    ]  # fmt: skip
    for path, (body, said) in itertools.product(paths, bad):
        found = httpx.post(gateway.models.url + path, content=body)
        assert found.status_code == 400
        error = found.json()["error"]
        assert said in error["message"] and error["type"] == "invalid_request_error"
        assert ("code" in error) == (path != "/v1/messages")
        assert (found.json().get("type") == "error") == (path == "/v1/messages")
        assert gateway.meter.taken()[""].failed == 1


def test_errors_reach_openai_clients(opened: Opener) -> None:
    """A back end's error arrives as the client's own exception, with its message."""
    kinds = {
        400: openai.BadRequestError, 401: openai.AuthenticationError, 404: openai.NotFoundError,
        429: openai.RateLimitError, 500: openai.InternalServerError,
        503: openai.InternalServerError,
    }  # fmt: skip
    gateway = opened(failing(*(BackendError("so it is", status=status) for status in kinds)))
    for kind in kinds.values():
        with pytest.raises(kind, match="so it is"):
            ask(gateway)


def test_errors_reach_anthropic_clients(opened: Opener) -> None:
    """Anthropic's client gets its own exception and type of error."""
    kinds = {
        400: (anthropic.BadRequestError, "invalid_request_error"),
        429: (anthropic.RateLimitError, "rate_limit_error"),
        500: (anthropic.InternalServerError, "api_error"),
        529: (anthropic.InternalServerError, "overloaded_error"),
    }
    gateway = opened(failing(*(BackendError("so it is", status=status) for status in kinds)))
    with anthropic.Anthropic(base_url=gateway.models.url, api_key="k", max_retries=0) as asking:
        for kind, name in kinds.values():
            with pytest.raises(kind, match="so it is") as caught:
                asking.messages.create(model="ideal", max_tokens=9, messages=[HELLO])
            assert isinstance(caught.value, anthropic.APIStatusError)
            assert caught.value.body == {
                "type": "error",
                "error": {"type": name, "message": "so it is"},
                "request_id": None,
            }


def test_a_client_asks_again_when_it_may(opened: Opener) -> None:
    """`retry_after_s` is told in the headers that clients read, and each try is a call."""
    gateway = opened(
        failing(
            BackendError("slow down", status=429, retry_after_s=0.01),
            BackendError("slow down", status=503, retry_after_s=0.02),
        )
    )
    start = time.perf_counter()
    assert ask(gateway, max_retries=2) == "in the end"
    assert time.perf_counter() - start < 0.4, "the client's own waiting would be longer"
    used = gateway.meter.taken()[""]
    assert (used.calls, used.failed) == (3, 2)
    assert gateway.meter.unrecovered() == ""
    assert [call.nth for call in gateway.backend.calls] == [0, 1, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["budget", "unknown-prompt"])
def test_nobody_asks_again_in_vain(opened: Opener, kind: Any) -> None:
    """After a spent budget or an unknown prompt clients do not retry, and the run must stop."""
    gateway = opened(failing(BackendError("no more", status=429, kind=kind)))
    with pytest.raises(openai.RateLimitError):
        ask(gateway, max_retries=2)
    assert gateway.meter.taken()[""].calls == 1
    assert gateway.meter.stopped() == "no more"
    assert gateway.meter.stopped() == ""


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_answer(opened: Opener, stream: bool) -> None:
    """`cut` breaks the connection off half-way through the answer."""
    whole = Reply("a long answer " * 50)
    gateway = opened(failing(BackendError("the line is dead", kind="cut", reply=whole)))
    with client(gateway) as asking, pytest.raises(openai.APIConnectionError) as caught:
        list(asking.chat.completions.create(model="m", messages=[HELLO], stream=stream))
    assert "closed connection without sending complete" in str(caught.value.__cause__)
    assert "broke off half-way (the line is dead)" in gateway.meter.unrecovered()


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_no_json(opened: Opener, stream: bool) -> None:
    """`malformed` without a reply gives a body, or an event, that is no JSON."""
    gateway = opened(failing(BackendError("garbled", kind="malformed")))
    with client(gateway) as asking, pytest.raises((ValueError, openai.APIError)):
        list(asking.chat.completions.create(model="m", messages=[HELLO], stream=stream))
    assert "was answered brokenly (garbled)" in gateway.meter.unrecovered()


def test_an_answer_that_is_broken_on_purpose(opened: Opener) -> None:
    """`malformed` with a reply gives that reply as it is, and counts it as failed."""
    broken = Reply('{"memory": [{"te')
    gateway = opened(failing(BackendError("it ends too early", kind="malformed", reply=broken)))
    assert ask(gateway) == broken.text
    assert "brokenly (it ends too early)" in gateway.meter.unrecovered()
    assert gateway.meter.taken()[""].failed == 1


def test_vectors_that_are_cut_or_no_json(embedder: Embedder, opened: Opener) -> None:
    """Embeddings break like chat calls do."""

    class Breaking(Slow):
        async def embed(self, call: Call) -> Vectors:
            if call.nth < 2:
                raise BackendError("gone", kind="malformed" if call.nth else "cut")
            return await super().embed(call)

    gateway = opened(Breaking(embedder))
    with client(gateway) as asking:
        with pytest.raises(openai.APIConnectionError):
            asking.embeddings.create(model="e", input="x")
        assert gateway.meter.unrecovered() == (
            "a request for embeddings broke off half-way (gone),"
            " and no later call of its kind was answered"
        )
        with pytest.raises((ValueError, openai.APIError)):
            asking.embeddings.create(model="e", input="x")
        assert asking.embeddings.create(model="e", input="x").data
    assert gateway.meter.unrecovered() == ""
    used = gateway.meter.taken()[""]
    assert (used.calls, used.embeddings, used.failed) == (3, 3, 2)


def test_no_answer_at_all(opened: Opener) -> None:
    """Status 0 leaves the client waiting until it gives up."""
    gateway = opened(failing(BackendError("silence", status=0, kind="timeout")))
    with pytest.raises(openai.APITimeoutError):
        ask(gateway, timeout=0.3)
    assert "was not answered (silence)" in gateway.meter.unrecovered()
    assert ask(gateway) == "in the end"
    assert gateway.meter.unrecovered() == ""


def test_a_client_that_gives_up(embedder: Embedder, opened: Opener) -> None:
    """A call whose client is gone is given up and counted as failed at once."""
    slow = Slow(embedder)
    gateway = opened(slow)
    gateway.meter.at(7, "ingest")
    with pytest.raises(openai.APITimeoutError):
        ask(gateway, timeout=0.2)
    assert "the client is gone" in gateway.meter.unrecovered()
    assert slow.given_up.wait(2)
    assert gateway.meter.taken()["ingest"].failed == 1


def test_a_back_end_that_breaks_down(opened: Opener) -> None:
    """A bug in a back end is answered 500 with its words, and the gateway goes on."""

    def answer(call: Call) -> Reply:
        raise ZeroDivisionError("by nothing")

    gateway = opened(answer)
    for _ in range(2):
        with pytest.raises(openai.InternalServerError, match="ZeroDivisionError: by nothing"):
            ask(gateway)


def test_what_a_recording_is_found_by(opened: Opener) -> None:
    """Calls that ask for the same have one key, however the answer is sent; others do not."""
    gateway = opened(Reply("yes"))
    with client(gateway) as asking:
        create = asking.chat.completions.create
        create(model="m", messages=[HELLO], temperature=0, user="one")
        list(create(model="m", temperature=0, messages=[HELLO], stream=True))
        create(model="m", messages=[HELLO], temperature=1)
        create(model="m", messages=[HELLO], temperature=0, extra_headers={"x-request-id": "9"})
        asking.responses.create(model="m", input="hello", temperature=0)
    calls = gateway.backend.calls  # type: ignore[attr-defined]
    same, other, dialect = calls[0].key, calls[2].key, calls[4].key
    assert [call.key for call in calls] == [same, same, other, same, dialect]
    assert len({same, other, dialect}) == 3
    assert [call.nth for call in calls] == [0, 1, 0, 2, 0]
    assert key("messages", calls[0].body) != key("chat", calls[0].body) == same
    assert calls[0].body["temperature"] == 0 and calls[0].ask.messages == (
        Message("user", "hello"),
    )


def test_a_new_life_begins(opened: Opener) -> None:
    """A new life counts occurrences, usage and prefixes anew, and tells the back end."""
    gateway = opened(failing(BackendError("no more", status=429, kind="budget")))
    long = "word " * 2_000
    gateway.meter.at(3, "ingest")
    with pytest.raises(openai.RateLimitError):
        ask(gateway, long)
    ask(gateway, long)
    gateway.begin()
    assert gateway.meter.taken() == {}
    assert gateway.meter.unrecovered() == gateway.meter.stopped() == ""
    ask(gateway, long)
    assert gateway.meter.taken()[""].prefix_tokens == 0
    ask(gateway, long)
    assert gateway.meter.taken()[""].prefix_tokens == 1_920
    assert [call.nth for call in gateway.backend.calls] == [0, 1, 0, 1]  # type: ignore[attr-defined]
    assert gateway.backend.lives == 1  # type: ignore[attr-defined]


def test_the_list_of_models(opened: Opener) -> None:
    """Both clients can list the chat and the embedding model."""
    gateway = opened(chat="gpt-9")
    names = [gateway.models.chat, gateway.models.embedding]
    assert names[0] == "gpt-9"
    with client(gateway) as asking:
        assert [model.id for model in asking.models.list()] == names
    with anthropic.Anthropic(base_url=gateway.models.url, api_key="k") as asking:
        assert [model.id for model in asking.models.list()] == names
