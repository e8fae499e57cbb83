"""OpenAI's embeddings."""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec
import numpy as np

from steeltrap.harness.gateway.backend import Call, Vectors
from steeltrap.harness.gateway.dialects.shared import BadRequestError, read

__all__ = ["answer", "texts"]


class _Request(msgspec.Struct):
    model: str
    input: str | list[str | int | list[int]]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None


def texts(body: dict[str, Any], dimension: int) -> tuple[str, ...]:
    """What is to be embedded.

    Args:
        body: the request.
        dimension: of the vectors that can be had.

    Raises:
        BadRequestError: it is no request of this dialect, or one for token numbers or for
            vectors of another length.
    """
    asked = read(body, _Request)
    given = [asked.input] if isinstance(asked.input, str) else asked.input
    if not given:
        raise BadRequestError("input: there is nothing to embed")
    found = tuple(text for text in given if isinstance(text, str))
    if len(found) < len(given):
        raise BadRequestError("input: give texts; the gateway does not take token numbers")
    if asked.dimensions not in (None, dimension):
        raise BadRequestError(
            f"dimensions: the vectors have {dimension} numbers, not {asked.dimensions}"
        )
    return found


def answer(call: Call, vectors: Vectors, tokens: int) -> dict[str, Any]:
    """The body of an answer: vectors as base64 of little-endian float32, or as numbers."""
    rows = np.asarray(vectors, dtype="<f4")
    packed = call.body.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding", "index": index,
            "embedding": base64.b64encode(row.tobytes()).decode() if packed else row.tolist(),
        }
        for index, row in enumerate(rows)
    ]  # fmt: skip
    return {
        "object": "list", "data": data, "model": call.body["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }  # fmt: skip
