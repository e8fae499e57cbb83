"""LangMem and LangGraph, made and connected: what is imported only in their own environment."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, Final

from steeltrap.adapters import logged
from steeltrap.adapters.langmem import present
from steeltrap.adapters.logged import HalfDone
from steeltrap.harness.models import Models

__all__ = ["check_written", "heard", "made", "unanswered"]

heard = partial(logged.heard, "trustcall", "extraction")
"""Raise what trustcall logs about an answer that it could not use; see `adapters.logged`."""
NAMESPACE: Final = ("memories", "{langgraph_user_id}")
"""The manager's default."""


class _Unanswered(BaseException):
    """The model gave no answer.

    No `Exception`: the package takes those for mistakes in an answer and asks again, 10,007 times.
    """


def made(models: Models, *, enable_deletes: bool, query_limit: int) -> tuple[Any, Any]:
    """A memory manager and the store that it writes to, both empty."""
    langmem: Any = import_module("langmem")
    stores: Any = import_module("langgraph.store.memory")
    present.install()
    store = stores.InMemoryStore(index={"dims": models.dimension, "embed": _embeddings(models)})
    manager = langmem.create_memory_store_manager(
        _chat(models), namespace=NAMESPACE, store=store,
        enable_deletes=enable_deletes, query_limit=query_limit,
    )  # fmt: skip
    return manager, store


def unanswered() -> tuple[type[BaseException], ...]:
    """What is raised when a model does not answer."""
    return _Unanswered, import_module("openai").OpenAIError


def _chat(models: Models) -> Any:
    openai: Any = import_module("openai")
    base: Any = import_module("langchain_openai").ChatOpenAI

    class Chat(base):  # type: ignore[misc]
        """LangChain's client, whose failures nothing passes over."""

        def _generate(self, *args: Any, **options: Any) -> Any:
            try:
                return super()._generate(*args, **options)
            except openai.OpenAIError as error:
                raise _Unanswered(f"{type(error).__name__}: {error}") from error

    return Chat(model=models.chat, temperature=0, **_access(models))


def _embeddings(models: Models) -> Any:
    """LangChain's client; it sends texts, not tokens of a vocabulary that it would download."""
    made: Any = import_module("langchain_openai").OpenAIEmbeddings
    return made(model=models.embedding, check_embedding_ctx_length=False, **_access(models))


def _access(models: Models) -> dict[str, Any]:
    return {
        "base_url": models.openai_url,
        "api_key": models.key,
        "timeout": models.timeout_s,
        "max_retries": models.retries,
    }


# ---------------------------------------------------------------- what is passed over


def check_written(store: Any, puts: list[dict[str, Any]]) -> None:
    """See that the store holds what the manager says that it wrote.

    The manager does not look whether its writes succeed.

    Raises:
        HalfDone: something is missing.
    """
    lost = sum(not _holds(store, put) for put in puts)
    if lost:
        raise HalfDone(f"langmem: {lost} of {len(puts)} memories could not be stored")


def _holds(store: Any, put: dict[str, Any]) -> bool:
    item = store.get(put["namespace"], put["key"])
    return item is not None and item.value == put["value"]
