"""What a cache of prompt prefixes would save: an estimate, alike for every back end.

Providers keep the prompts that they read, in blocks of 128 tokens, and read the beginning of a
new one from there as far as it is exactly the same, from 1 024 tokens on. Of the prompt, tools and
schema come first. How long a provider keeps a prompt is left out: here it is a memory's life.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.models import Ask

__all__ = ["BLOCK_TOKENS", "LEAST_TOKENS", "Prefixes", "Prompt", "packed"]

BLOCK_TOKENS: Final = 128
LEAST_TOKENS: Final = 1_024
_TOKEN_BYTES: Final = 4
_BLOCK_BYTES: Final = BLOCK_TOKENS * _TOKEN_BYTES


class Prompt(NamedTuple):
    """The size of a prompt."""

    tokens: int
    """Of the text of all messages, the tools and the schema."""
    prefix_tokens: int
    """The part that is the beginning of an earlier prompt to the same model."""


class Prefixes:
    """The prompts of one life."""

    def __init__(self) -> None:
        self._blocks: dict[str, set[bytes]] = {}

    def begin(self) -> None:
        """A new life: no prompt was read before."""
        self._blocks.clear()

    def read(self, ask: Ask) -> Prompt:
        """The size of a prompt, which counts as read from now on."""
        return self.read_packed(b"".join(_packed(part) for part in _parts(ask)), ask.model)

    def read_packed(self, numbers: bytes, model: str = "") -> Prompt:
        """The same of a prompt as the numbers of its tokens (`packed`)."""
        known = self._blocks.setdefault(model, set())
        blocks = _chain(numbers)
        same = next((at for at, block in enumerate(blocks) if block not in known), len(blocks))
        known.update(blocks[same:])
        prefix = same * BLOCK_TOKENS
        return Prompt(len(numbers) // _TOKEN_BYTES, prefix if prefix >= LEAST_TOKENS else 0)


def _parts(ask: Ask) -> Iterator[str]:
    if ask.tools:
        yield _json(ask.tools)
    if ask.schema:
        yield _json(ask.schema)
    for message in ask.messages:
        yield message.text


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def packed(text: str) -> bytes:
    """The numbers of a text's tokens, four bytes each."""
    return array("I", tokens.numbers(text)).tobytes()


_packed = lru_cache(maxsize=256)(packed)
"""Long system prompts come again and again."""


def _chain(numbers: bytes) -> list[bytes]:
    """For each whole block a digest of all up to its end."""
    digest = blake2b(digest_size=16)
    chain = []
    for end in range(_BLOCK_BYTES, len(numbers) + 1, _BLOCK_BYTES):
        digest.update(numbers[end - _BLOCK_BYTES : end])
        chain.append(digest.digest())
    return chain
