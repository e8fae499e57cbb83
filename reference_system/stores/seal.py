"""A note beside a store of what its files were when they were last known to be whole.

The engines of the graph store do not notice a byte that has changed in their main file, and may
end the process over one, so the file is compared with its note before an engine sees it. Both
engines write to the main file only while they checkpoint, and between two checkpoints only add
to their log, so the note costs one pass over the main file for each checkpoint, and for each
commit one over what that commit has added to the log.

A log that goes on after its noted end holds a commit that was cut off, or that ended just before
the note could be written. What was noted is whole, so there the log may be cut.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Final, Literal

import msgspec

from steeltrap.reference_system.stores.base import DamagedStore

__all__ = ["Note", "Seal", "checksum"]

_LINE_BYTES: Final = 256
"""Within a sector of a disk, so that a note is written whole or not at all."""


class Note(msgspec.Struct, frozen=True):
    """What was seen of the files."""

    engine: str
    state: Literal["closed", "open", "checkpoint"]
    """checkpoint: one has begun, and nothing can be said of the files until it ends."""
    main_bytes: int = 0
    main_crc: int = 0
    log_bytes: int = 0
    log_crc: int = 0


def checksum(path: Path, begin: int = 0, end: int | None = None, crc: int = 0) -> tuple[int, int]:
    """Where reading ended, and the CRC-32 of the bytes from `begin` on; no file is an empty one."""
    if not path.exists():
        return 0, 0
    with path.open("rb") as file:
        file.seek(begin)
        while end is None or begin < end:
            block = file.read(1 << 20 if end is None else min(1 << 20, end - begin))
            if not block:
                break
            crc = zlib.crc32(block, crc)
            begin += len(block)
    return begin, crc


class Seal:
    """Keeps the note of one store, in `<path>.seal`.

    Args:
        path: the main file.
        log: the file to which commits are added.
        engine: who writes them.
    """

    def __init__(self, path: Path, log: Path, engine: str) -> None:
        self._main = path
        self._log = log
        self._engine = engine
        self._path = path.with_name(path.name + ".seal")
        self.note = self._read()
        """None: there is none, or it cannot be read."""

    def begin(self) -> None:
        """Note that nothing can be said of the files until the next `take`."""
        self._write(Note(self._engine, "checkpoint"), last=True)

    def take(self, state: Literal["closed", "open"]) -> None:
        """Note both files as they are now."""
        main = checksum(self._main)
        log = checksum(self._log)
        self._write(Note(self._engine, state, *main, *log), last=True)

    def grow(self) -> None:
        """Note what was added to the log."""
        note = self.note
        if note is not None and note.state == "open":
            size, crc = checksum(self._log, note.log_bytes, None, note.log_crc)
            self._write(msgspec.structs.replace(note, log_bytes=size, log_crc=crc))

    def compare(self, note: Note) -> None:
        """Compare the files with a note of them.

        Raises:
            DamagedStore: they are not as they were.
        """
        size, crc = checksum(self._main)
        if (size, crc) != (note.main_bytes, note.main_crc):
            what = "some of it has changed" if size == note.main_bytes else f"it was {note.main_bytes} bytes long and is {size}"  # fmt: skip
            raise DamagedStore(
                f"{self._main} is not as it was written: {what}. Nothing was touched. Bring it "
                f"back from a copy; if another program has written to it, or it is itself such a "
                f"copy, remove {self._path.name} and it is read through instead"
            )
        size, crc = checksum(self._log, 0, note.log_bytes)
        left_over = note.state == "closed" and self._log.exists() and self._log.stat().st_size
        if (size, crc) != (note.log_bytes, note.log_crc) or left_over:
            raise DamagedStore(
                f"{self._log} is not as it was written: the first {note.log_bytes} bytes of it "
                f"are commits, and they have changed or are gone, or it is not of this store. "
                f"Nothing was touched. Bring both files back from a copy; without this file the "
                f"store is what it was at its last checkpoint, if {self._path.name} is removed too"
            )

    def cut(self) -> bool:
        """Cut a log that goes on after its noted end; False where there is nothing to cut."""
        note = self.note
        if note is None or note.state != "open" or not self._log.exists():
            return False
        if self._log.stat().st_size <= note.log_bytes:
            return False
        os.truncate(self._log, note.log_bytes)
        return True

    # ------------------------------------------------------------ the file

    def _read(self) -> Note | None:
        try:
            crc, text = self._path.read_bytes().split(b" ", 1)
            text = text.rstrip()
            return (
                msgspec.json.decode(text, type=Note) if int(crc, 16) == zlib.crc32(text) else None
            )
        except (OSError, ValueError):
            return None

    def _write(self, note: Note, *, last: bool = False) -> None:
        """Write a note over the one before; `last`: it must outlive a loss of power."""
        text = msgspec.json.encode(note)
        line = (b"%08x " % zlib.crc32(text) + text).ljust(_LINE_BYTES - 1) + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.pwrite(file, line, 0)
            if last:
                os.fsync(file)
        finally:
            os.close(file)
        self.note = note
