"""WordLlama: a static embedding that comes whole in its package and needs only numpy."""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from steeltrap.adapters.embedders.base import Vectors, unit

if TYPE_CHECKING:
    from wordllama import WordLlamaInference

__all__ = ["WordLlamaEmbedder"]


@cache
def _model() -> WordLlamaInference:
    """The model from the package's own folder, with downloads off."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # wordllama configures the root logger when it is imported, unless that has a handler
    root, guard = logging.getLogger(), logging.NullHandler()
    root.addHandler(guard)
    try:
        import wordllama
    finally:
        root.removeHandler(guard)
    # without cache_dir it looks for a folder `tokenizer` and ships `tokenizers`
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


class WordLlamaEmbedder:
    """Mean of token vectors taken from Llama's input embeddings, 256 dimensions; the default.

    Fast and the same bits everywhere, and weaker than a sentence transformer: say that a
    static embedder was used where results are compared.
    """

    name = "wordllama-l2-supercat-256"
    dimension = 256

    @property
    def version(self) -> str:
        """The version of the package, which holds the weights."""
        return importlib.metadata.version("wordllama")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one text at a time: a batch would be padded to its longest text."""
        return unit(_model().embed(list(texts), batch_size=1))
