"""A real provider behind the gateway: OpenAI, Anthropic, or any server that is compatible.

Key and address come from the usual environment variables. The key stands in a header of the
request and nowhere else: not in a message, a recording or a `repr`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from email.utils import parsedate_to_datetime
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from steeltrap.harness.gateway.backend import (
    Backend,
    BackendError,
    Call,
    Embedder,
    Local,
    Vectors,
)
from steeltrap.harness.gateway.providers import (
    ChatCompletions,
    Forms,
    MessagesAPI,
    Provider,
    request,
    vectors,
)
from steeltrap.harness.models import Reply

if TYPE_CHECKING:
    import httpx

__all__ = ["LocalEmbeddings", "ProviderName", "Upstream", "UpstreamError", "address"]

ProviderName = Literal["openai", "anthropic", "compatible"]
Answer = TypeVar("Answer")


class UpstreamError(ValueError):
    """A provider cannot be asked as it is configured; the message says what to set."""


class _UnreachableError(BackendError):
    """Nobody is there to be asked."""

    def __init__(self, failure: BackendError) -> None:
        super().__init__(failure.message, status=failure.status)


class _Access(NamedTuple):
    speaks: Provider
    key_variable: str
    url_variable: str
    url: str
    """Where the variable is not set; empty where there is no usual address."""


_ACCESS: Final[dict[str, _Access]] = {
    "openai": _Access(
        ChatCompletions("max_completion_tokens"),
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1",
    ),
    "anthropic": _Access(
        MessagesAPI(), "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"
    ),
    "compatible": _Access(ChatCompletions("max_tokens"), "OPENAI_API_KEY", "OPENAI_BASE_URL", ""),
}  # fmt: skip
_REFUSING: Final = {400, 422, 500, 501}
"""With these, servers refuse a parameter; llama-cpp-python says 500 to a JSON schema."""
_STOPPING: Final = {401, 402, 404}
"""With these, every further call would fail alike: a wrong key, no money, no such model."""
_KEY: Final = re.compile(r"\b(sk|pk)-[A-Za-z0-9_*-]{6,}")
"""Providers repeat a wrong key, some in part."""
_CODED_CHARS: Final = 8
"""Less in base64 may stand in any word."""
_SHOWN_CHARS: Final = 500
"""Of what a provider says to explain itself."""


class Upstream:
    """Asks a real provider.

    Args:
        provider: openai, anthropic, or compatible: OpenAI's dialect at another address.
        model: the one that is asked, whatever name the system uses.
        base_url: instead of OPENAI_BASE_URL (with `/v1`) or ANTHROPIC_BASE_URL (without).
        embedding_model: of the same provider; empty where the embedding is done elsewhere.
        concurrency: requests at a time; more wait.
        retries: of a request that met 429, 5xx, a time-out or a broken connection.
        timeout_s: after which a request is given up.
        wait_s: before the first retry; doubled with each, unless the provider names a time.
        longest_wait_s: a provider that names a longer time is not waited for.

    Attributes:
        name: provider, model, and a hash of the address where it is not the maker's, as in
            `openai:gpt-4o-mini`; recordings are kept by it.
        spent: why no further call can be answered; empty as long as they can.

    Raises:
        UpstreamError: key, address or model are missing.
    """

    def __init__(
        self,
        provider: ProviderName,
        model: str,
        *,
        base_url: str = "",
        embedding_model: str = "",
        concurrency: int = 8,
        retries: int = 5,
        timeout_s: float = 120.0,
        wait_s: float = 1.0,
        longest_wait_s: float = 60.0,
    ) -> None:
        access = _access(provider, model, embedding_model)
        self._speaks = access.speaks
        self._url = _address(base_url, access)
        self._key = _key(access, provider)
        self._key_forms = _forms(self._key)
        self.model = model
        self.embedding_model = embedding_model
        # recordings travel, so that the address itself stays out of them
        hashed = hashlib.sha256(_shown(self._url).encode()).hexdigest()[:8]
        elsewhere = f"@{hashed}" if self._url != access.url else ""
        self.name = f"{provider}:{model}{elsewhere}"
        if embedding_model:
            self.name += f"+{embedding_model}"
        self.spent = ""
        self._concurrency = concurrency
        self._retries = retries
        self._timeout_s = timeout_s
        self._wait_s = wait_s
        self._longest_wait_s = longest_wait_s
        self._forms = Forms(access.speaks.kept)
        self._embedding_forms = Forms(frozenset({"model", "input"}))
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<Upstream {self.name.partition('@')[0]} at {_shown(self._url)}>"

    def begin(self) -> None:
        """A new life of a memory begins; a provider does not notice."""

    async def chat(self, call: Call) -> Reply:
        """Answer a chat call.

        Raises:
            BackendError: the provider does not answer; kind `budget` where it never will.
        """
        body = request(self._speaks, call, self.model)
        reply, ms = await self._answered(self._speaks.path, body, self._forms, self._speaks.reply)
        return msgspec.structs.replace(reply, usage=msgspec.structs.replace(reply.usage, ms=ms))

    async def embed(self, call: Call) -> Vectors:
        """One vector for each text.

        Raises:
            BackendError: as `chat`; or no embedding model is set.
        """
        if not self.embedding_model:
            raise BackendError(f"{self.name} is asked for vectors, and no embedding model is set")
        body = {
            "model": self.embedding_model,
            "input": list(call.texts),
            "encoding_format": "float",
        }
        if "dimensions" in call.body:
            body["dimensions"] = call.body["dimensions"]

        def read(answer: bytes) -> list[list[float]]:
            return vectors(answer, len(call.texts))

        return (await self._answered("/embeddings", body, self._embedding_forms, read))[0]

    # ------------------------------------------------------------ requests

    async def _answered(
        self, path: str, body: dict[str, Any], forms: Forms, read: Callable[[bytes], Answer]
    ) -> tuple[Answer, float]:
        """The answer, and the milliseconds that the request took which brought it."""
        if self.spent:
            raise BackendError(self.spent, status=402, kind="budget")
        client, places = await self._opened()
        async with places:
            for attempt in count():
                try:
                    return await self._asked(client, path, body, forms, read)
                except BackendError as failure:
                    wait_s = self._wait(failure, attempt)
                    if wait_s is None:
                        raise self._stopped(failure) from None
                await asyncio.sleep(wait_s)
        raise AssertionError("the loop ends by itself")

    async def _asked(
        self,
        client: httpx.AsyncClient,
        path: str,
        body: dict[str, Any],
        forms: Forms,
        read: Callable[[bytes], Answer],
    ) -> tuple[Answer, float]:
        """Ask once, and again at once in an older form as often as a parameter is refused."""
        while True:
            sent = forms.fit(body)
            start = perf_counter()
            response = await self._sent(client, path, sent)
            ms = (perf_counter() - start) * 1000
            if response.is_success:
                if any(form.encode() in response.content for form in self._key_forms):
                    raise self._told("an answer repeats the key and is not taken", status=403)
                try:
                    return read(response.content), round(ms, 3)
                except BackendError as failure:
                    raise self._told(failure.message, status=failure.status) from None
            if response.status_code in _REFUSING and forms.learn(body, sent, response.content):
                continue
            raise self._refused(response)

    async def _sent(
        self, client: httpx.AsyncClient, path: str, body: dict[str, Any]
    ) -> httpx.Response:
        import httpx

        headers = self._speaks.headers(self._key) | {"Content-Type": "application/json"}
        try:
            return await client.post(
                self._url + path, content=msgspec.json.encode(body), headers=headers
            )
        except httpx.TimeoutException:
            raise self._told(
                f"no answer within {self._timeout_s:g} s", status=504, kind="timeout"
            ) from None
        except httpx.ConnectError as error:
            raise _UnreachableError(self._told(f"no connection ({error})", status=502)) from None
        except httpx.HTTPError as error:
            raise self._told(
                f"no connection ({type(error).__name__}: {error})", status=502
            ) from None

    def _refused(self, response: httpx.Response) -> BackendError:
        words, code = _error(response)
        status = response.status_code
        failure = self._told(f"{status}: {words}", status=status)
        failure.retry_after_s = _retry_after_s(response)
        if status in _STOPPING or code == "insufficient_quota":
            failure.kind, failure.status = "budget", 402
        return failure

    def _told(
        self, message: str, *, status: int, kind: BackendError.Kind = "error"
    ) -> BackendError:
        """A failure that says who failed, without keys."""
        said = f"{self.name.partition('@')[0]} at {_shown(self._url)}: {message}"
        for form in self._key_forms:
            said = said.replace(form, "***")
        return BackendError(_KEY.sub("***", said)[:_SHOWN_CHARS], status=status, kind=kind)

    def _wait(self, failure: BackendError, attempt: int) -> float | None:
        """Seconds until the request is tried again; None where that is no use."""
        passing = failure.status in (408, 409, 429) or failure.status >= 500
        asked_s = failure.retry_after_s
        if attempt >= self._retries or not passing or failure.kind == "budget":
            return None
        if asked_s is None:
            return float(min(self._wait_s * 2**attempt, self._longest_wait_s))
        return asked_s if asked_s <= self._longest_wait_s else None

    def _stopped(self, failure: BackendError) -> BackendError:
        if isinstance(failure, _UnreachableError):
            # nothing is lost by stopping: the run goes on when the server is there again
            failure.kind, failure.status = "budget", 402
        elif failure.kind == "budget":
            self.spent = failure.message
        return failure

    async def _opened(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """Connections and places of the event loop that runs; closed when it ends."""
        import httpx

        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._places = asyncio.Semaphore(self._concurrency)
            self._client = httpx.AsyncClient(
                timeout=self._timeout_s,
                limits=httpx.Limits(max_keepalive_connections=self._concurrency),
                trust_env=not _loopback(self._url),
            )
            self._closing = _closing(self._client)
            await anext(self._closing)
        return self._client, self._places


async def _closing(client: httpx.AsyncClient) -> AsyncIterator[None]:
    """Closes the client with the event loop, which finishes the generators begun on it."""
    async with client:
        yield


class LocalEmbeddings(Local):
    """Lets another back end chat, and embeds on this machine."""

    def __init__(self, inner: Backend, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._inner = inner
        self.name = inner.name

    async def chat(self, call: Call) -> Reply:
        """Answer a chat call."""
        return await self._inner.chat(call)

    def begin(self) -> None:
        """A new life of a memory begins."""
        self._inner.begin()


# ---------------------------------------------------------------- configuration


def _access(provider: str, model: str, embedding_model: str) -> _Access:
    if provider not in _ACCESS:
        raise UpstreamError(f"provider={provider}: there are {', '.join(_ACCESS)}")
    if not model:
        raise UpstreamError(f"provider={provider}: name the model that is to be asked")
    if provider == "anthropic" and embedding_model:
        raise UpstreamError(
            f"embedding_model={embedding_model}: Anthropic gives no embeddings; embed locally"
        )
    return _ACCESS[provider]


def address(provider: str, base_url: str = "") -> str:
    """Where a provider is asked, without credentials; empty where nobody has said.

    Raises:
        UpstreamError: it is no address.
    """
    access = _ACCESS.get(provider)
    if access is None or not (base_url or os.environ.get(access.url_variable) or access.url):
        return ""
    return _shown(_address(base_url, access))


def _address(base_url: str, access: _Access) -> str:
    url = base_url or os.environ.get(access.url_variable, "").strip() or access.url
    if not url:
        raise UpstreamError(
            f"{access.url_variable} is not set: give the address of the server there or as"
            " base_url, such as http://127.0.0.1:8000/v1"
        )
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UpstreamError(
            f"{_shown(url)}: the address of a server begins with http:// or https://"
        )
    url = url.rstrip("/")
    return url.removesuffix("/v1") if access.speaks.path.startswith("/v1") else url


def _key(access: _Access, provider: str) -> str:
    key = os.environ.get(access.key_variable, "").strip()
    if not key and provider != "compatible":  # a server on one's own machine may want none
        raise UpstreamError(
            f"{access.key_variable} is not set: export it with the key of your account, or use"
            " model=ideal or model=replay, which need none"
        )
    return key


def _forms(key: str) -> list[str]:
    """A key as somebody may repeat it: as it is, as in an address, and in base64, where the place at
    which it begins decides how it is written."""
    if not key:
        return []
    coded = [base64.b64encode(b"_" * lead + key.encode()).decode()[4:-4] for lead in range(3)]
    return [
        key,
        quote(key),
        quote(key, safe=""),
        *(one for one in coded if len(one) >= _CODED_CHARS),
    ]


def _shown(url: str) -> str:
    """An address without user, password and query, which may be secrets."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


# ---------------------------------------------------------------- errors of providers


def _error(response: httpx.Response) -> tuple[str, str]:
    """What an error says, and its code."""
    try:
        given = msgspec.json.decode(response.content)
        error = given.get("error", given)
        error = error if isinstance(error, dict) else {"message": error}
        words, code = error.get("message") or error.get("detail") or given, error.get("code")
    except (msgspec.DecodeError, RecursionError, AttributeError):
        words, code = response.text, ""
    return " ".join(str(words).split()), str(code or "")


def _retry_after_s(response: httpx.Response) -> float | None:
    """When to come back: seconds, milliseconds or a date beside the server's own."""
    headers = response.headers
    try:
        if given := headers.get("retry-after-ms"):
            return max(0.0, float(given) / 1000)
        given = headers.get("retry-after", "")
        if not given or given.strip().replace(".", "", 1).isdigit():
            return float(given) if given else None
        wait = parsedate_to_datetime(given) - parsedate_to_datetime(headers["date"])
        return max(0.0, wait.total_seconds())
    except (ValueError, KeyError, TypeError):
        return None
