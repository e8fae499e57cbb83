"""What was erased and is left on disk: the files of a memory, searched byte by byte.

Searched for are the texts and values that must be gone, in the encodings in which programs write
text, and their vectors, where it is known who makes them; also within zlib and gzip streams.
What anything else that the memory was told holds as well tells nothing and is left out, and so is
what is too short to be told from chance.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steeltrap.harness import values
from steeltrap.harness.history import Left, Remains
from steeltrap.harness.memory import Item
from steeltrap.harness.script import Audit, Erasure, Probe, Script, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Search", "Vectors"]

Vectors = Callable[[list[str]], Any]
"""Texts to an array of float32 of shape (texts, dimension)."""

_LEAST_CHARS: Final = 6
"""Shorter words stand anywhere by chance."""
_PIECE_CHARS: Final = 200
"""A longer text is searched for in pieces: stores break it up."""
_WINDOW: Final = 12
"""So many numbers in a row tell one vector from another,"""
_NUMBERS: Final = 4
"""if so many of them are not zero."""
_KUZU: Final = b"\x21\x0c" + bytes(6)
"""What kuzu and its heirs write before each number of a list in their log."""
_BLOCK_BYTES: Final = 1 << 24
_PACKED: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08")
"""How streams of zlib and gzip begin."""


class _Needle(NamedTuple):
    what: str
    how: str
    data: bytes
    vector: bool = False


class Search:
    """Searches the folder of one run.

    Args:
        folder: where the memory writes.
        script: what the memory is told, and what must be gone after which erasure.
        vectors: makes the vectors that the memory may have written; None: nobody knows how.
    """

    def __init__(self, folder: Path, script: Script, vectors: Vectors | None = None) -> None:
        self._folder = folder
        self._steps = script.steps
        self._vectors = vectors

    def after(self, i: int, shown: Iterable[Item]) -> Remains | None:
        """What is left after step `i`: after an erasure of what it removed, at the end of all.

        Args:
            i: place of the step that was just done.
            shown: everything that the memory has shown so far.

        Returns:
            None where nothing need be gone.
        """
        due = self._steps if i == len(self._steps) - 1 else self._steps[i : i + 1]
        gone = [step.gone for step in due if isinstance(step, Erasure) and step.gone]
        if not gone:
            return None
        files = sorted(path for path in self._folder.rglob("*") if _holds(path))
        if not files:
            return Remains(files=0, things=0)
        told = self._told(i)
        texts = [
            needle for one in gone for needle in _texts(one, [t for t in told if t not in one])
        ]
        things = dict.fromkeys(needle.what for needle in texts)
        every = {what for one in gone for what in one}
        made = dict.fromkeys([*things, *_made(list(things), shown)])
        needles = texts + self._embedded(made, [text for text in told if text not in every])
        left = [
            Left(str(path.relative_to(self._folder)), needle.what, needle.how, needle.vector)
            for path in files
            for needle in _found(path, needles)
        ]
        searched = {(needle.what, needle.vector) for needle in needles}
        return Remains(files=len(files), things=len(searched), left=left)

    def _told(self, i: int) -> list[str]:
        """All that the memory was told or asked until now, what followed, and when it was."""
        told: dict[str, None] = {}
        for step in self._steps[: i + 1]:
            told |= {step.at: None, step.at.replace("T", " "): None}
            told |= {values.display(c.value): None for c in step.changes if c.value}
            if isinstance(step, Turn | Probe | Audit):
                told[step.text] = None
        return list(told)

    def _embedded(self, texts: Iterable[str], told: list[str]) -> list[_Needle]:
        """The vectors of texts in the forms in which programs write them."""
        texts = list(texts)
        if self._vectors is None or not texts:
            return []
        others = {row.tobytes() for row in self._vectors(told)} if told else set()
        return [
            needle
            for text, row in zip(texts, self._vectors(texts), strict=True)
            if row.tobytes() not in others
            for needle in _vector(text, row)
        ]


def _holds(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size > 0


def _made(things: Sequence[str], shown: Iterable[Item]) -> Iterator[str]:
    """What the memory itself made of what must be gone: texts of its own that hold some of it."""
    folded = [what.casefold() for what in things]
    for item in shown:
        text = item.text.casefold()
        if any(what in text for what in folded):
            yield item.text


# ---------------------------------------------------------------- how it may be written


def _texts(gone: Iterable[str], others: Iterable[str]) -> Iterator[_Needle]:
    """What one erasure removed, in the encodings of text, as far as no other text holds it."""
    live = "\n".join(others).casefold()
    for what in gone:
        if len(what) >= _LEAST_CHARS and what.casefold() not in live:
            yield from _text(what, live)


def _text(what: str, live: str) -> Iterator[_Needle]:
    """A text in the encodings of text; in pieces, where it is long."""
    pieces = [what[at : at + _PIECE_CHARS] for at in range(0, len(what), _PIECE_CHARS)]
    for piece in pieces:
        if len(piece) < _LEAST_CHARS or piece.casefold() in live:
            continue
        written = {
            "UTF-8": piece.encode(errors="replace"),
            "JSON": json.dumps(piece)[1:-1].encode(),
            "UTF-16": piece.encode("utf-16-le", errors="replace"),
        }
        for how, data in written.items():
            if how != "JSON" or data != written["UTF-8"]:
                yield _Needle(what, how, data.lower())


def _vector(what: str, row: NDArray[np.float32]) -> Iterator[_Needle]:
    """A vector as programs write it; nothing for one that is all but empty."""
    import numpy as np

    # A window begins at a multiple of three numbers, where base64 of the whole can be cut.
    starts = range(0, max(1, len(row) - _WINDOW + 1), 3)
    start = max(starts, key=lambda at: int(np.count_nonzero(row[at : at + _WINDOW])))
    window = row[start : start + _WINDOW]
    if np.count_nonzero(window) < _NUMBERS:
        window = row  # one of few numbers, such as a count of words
    if np.count_nonzero(window) < _NUMBERS:
        return
    numbers = [float(number) for number in window]
    single = window.astype("<f4").tobytes()
    yield _Needle(what, "float32", single, vector=True)
    yield _Needle(what, "float16", window.astype("<f2").tobytes(), vector=True)
    yield _Needle(what, "float64", window.astype("<f8").tobytes(), vector=True)
    yield _Needle(what, "base64 of float32", base64.b64encode(single), vector=True)
    pickled = b"".join(b"G" + struct.pack(">d", number) for number in numbers)
    yield _Needle(what, "pickled float64", pickled, vector=True)
    logged = b"".join(_KUZU + struct.pack("<f", number) for number in numbers)
    yield _Needle(what, "float32 in a log of kuzu", logged, vector=True)
    for gap in (", ", ","):
        yield _Needle(what, "JSON numbers", gap.join(map(repr, numbers)).encode(), vector=True)


# ---------------------------------------------------------------- looking


def _found(path: Path, needles: Sequence[_Needle]) -> list[_Needle]:
    """The needles that a file holds, one for each text and one for each vector."""
    found: dict[tuple[str, bool], _Needle] = {}
    overlap = max((len(needle.data) for needle in needles), default=1)
    for block in _blocks(path, overlap):
        for data, packed in ((block, ""), *((part, " packed") for part in _unpacked(block))):
            folded = data.lower()
            for needle in needles:
                known = (needle.what, needle.vector)
                if known not in found and needle.data in (data if needle.vector else folded):
                    found[known] = needle._replace(how=needle.how + packed)
    return list(found.values())


def _blocks(path: Path, overlap: int) -> Iterator[bytes]:
    """A file in parts, each beginning with the end of the one before."""
    end = b""
    try:
        with path.open("rb") as file:
            while part := file.read(_BLOCK_BYTES):
                yield end + part
                end = (end + part)[-overlap:]
    except OSError:
        return  # it has gone since it was listed


def _unpacked(block: bytes) -> Iterator[bytes]:
    """What streams that begin in a block unpack to, as far as they go."""
    whole = memoryview(block)
    for start in _PACKED.finditer(block):
        stream = zlib.decompressobj(wbits=47)  # zlib or gzip
        try:
            data = stream.decompress(whole[start.start() :], _BLOCK_BYTES)
        except zlib.error:
            continue
        if data:
            yield data
