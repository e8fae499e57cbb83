"""Models that turn texts into vectors, chosen so that they work without a network.

`WordLlamaEmbedder` is the default, `MiniLMEmbedder` the model that most users have (extra
`minilm`), `HashEmbedder` is for unit tests; `Cached` keeps any of them from embedding a text
twice. Name, version and dimension belong to every result.
"""

from __future__ import annotations

from steeltrap.adapters.embedders.base import Embedder
from steeltrap.adapters.embedders.cached import Cached
from steeltrap.adapters.embedders.hashed import HashEmbedder
from steeltrap.adapters.embedders.minilm import MiniLMEmbedder
from steeltrap.adapters.embedders.static import WordLlamaEmbedder

__all__ = ["Cached", "Embedder", "HashEmbedder", "MiniLMEmbedder", "WordLlamaEmbedder"]
