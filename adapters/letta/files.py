"""The agent's memory as it stands in its repository, and how it came to be so."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["Files", "Line", "slug"]

_GIT: Final = (
    "git", "-c", "core.quotePath=false", "-c", "user.name=operator",
    "-c", "user.email=operator@localhost",
)  # fmt: skip
_STRUCTURE: Final = re.compile(r"#|- \[.*\]\(.*\)")
"""Headings, and the entries of an index."""
_PLAIN: Final = re.compile(r"[^0-9a-z]+")
_NAME_CHARS: Final = 100


class Line(msgspec.Struct):
    """A line of a file, from when it was committed until it was no more."""

    path: str
    text: str
    turn: str
    since: str
    until: str = ""
    """ISO 8601; empty while it stands."""


class Files:
    """What is committed in a memory's repository.

    The system's own texts, from before the first turn, do not count as memory of what was said.

    Args:
        folder: the repository; it may come into being later.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = ""
        self.lines: list[Line] = []

    @property
    def standing(self) -> list[Line]:
        """The lines that stand now, oldest first."""
        return [line for line in self.lines if not line.until]

    def begin(self) -> None:
        """Take the first commit, which is the system's own, for the beginning."""
        self._seen = self._git("rev-list", "--max-parents=0", "HEAD").strip()

    def follow(self, turn: str, at: str) -> bool:
        """Read what was committed since the last time, as the work of a turn.

        Returns:
            Whether anything was.
        """
        head = self._git("rev-parse", "HEAD").strip()
        if head == self._seen:
            return False
        told = self._git(
            "log", "--reverse", "--no-renames", "--no-color", "-p", "-U1000000", "--format=",
            f"{self._seen}..{head}", "--", "*.md",
        )  # fmt: skip
        self._seen = head
        for path, old, new in _changes(told.split("\n")):
            gone, come = Counter(_said(old)), Counter(_said(new))
            for text in (gone - come).elements():
                self._end(path, text, at)
            fresh = come - gone
            for text in _said(new):
                if fresh[text] > 0:
                    fresh[text] -= 1
                    self.lines.append(Line(path, text, turn, at))
        return True

    def remove(self, lines: Sequence[Line], at: str) -> None:
        """Delete lines from their files, and commit that."""
        texts: dict[str, set[str]] = {}
        for line in lines:
            texts.setdefault(line.path, set()).add(line.text)
        for path, gone in texts.items():
            file = self._folder / path
            kept = [
                text for text in file.read_text("utf-8").split("\n") if text.strip() not in gone
            ]
            file.write_text("\n".join(kept), "utf-8")
            self._git("add", "--", path)
        if texts:
            self._git("commit", "-q", "-m", "operator: erase", "--", *texts)
            self.follow("", at)

    def _end(self, path: str, text: str, at: str) -> None:
        """The oldest of the lines that read so stands no longer."""
        line = next(
            (each for each in self.standing if (each.path, each.text) == (path, text)), None
        )
        if line is not None:
            line.until = at

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(
            [*_GIT, "-C", str(self._folder), *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-300:]
            raise RuntimeError(f"letta: git {arguments[0]} failed: {said}")
        return done.stdout.decode(errors="replace")


def slug(text: str) -> str:
    """Words in small letters with dashes; of what has no such letters, the numbers of its signs."""
    plain = "".join(c if c.isascii() else f" u{ord(c):x} " for c in text.casefold())
    return _PLAIN.sub("-", plain).strip("-")[:_NAME_CHARS]


def _changes(lines: list[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Path, old and new text of each file of each commit, out of a log with all context."""
    path, old, new = "", [], []  # type: ignore[var-annotated]
    inside = False
    for line in [*lines, "diff --git"]:
        if line.startswith("diff --git"):
            if path:
                yield path, old, new
            path, old, new, inside = "", [], [], False
        elif line.startswith("@@ "):
            inside = True
        elif not inside:
            if line.startswith(("--- a/", "+++ b/")):
                path = line[6:]
        elif line.startswith(("-", " ", "+")):
            if line[0] != "+":
                old.append(line[1:])
            if line[0] != "-":
                new.append(line[1:])


def _said(lines: list[str]) -> list[str]:
    """The lines of a Markdown file that say something: no front matter, headings or links."""
    if lines and lines[0] == "---" and "---" in lines[1:]:
        lines = lines[lines.index("---", 1) + 1 :]
    texts = (line.strip() for line in lines)
    return [text for text in texts if text and not _STRUCTURE.match(text)]
