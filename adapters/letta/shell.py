"""Which shell commands of the agent are run: those that only read and write its memory.

What a script says may be hostile, and a real model may do as it is told. So the agent asks before
each command, and a command that is not plainly about files below its memory is refused.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["allowed"]

_HOME: Final = 'cd "$MEMORY_DIR"'
_WORD: Final = r"(?:'[^'\n]*'|[\w@%+=:,./-]+)"
_WORDS: Final = rf"(?: {_WORD})*"
_PLAIN: Final = re.compile(
    rf"(?:mkdir -p|cat|ls|grep|rm|mv){_WORDS}"
    rf"|git (?:add|commit|diff|grep|log|mv|rm|show|status){_WORDS}"
)
_HEREDOC: Final = re.compile(rf"cat >>? (?P<path>{_WORD}) <<'(?P<end>\w+)'")
_OPTIONS: Final = {
    "--", "--oneline", "--stat", "--name-only", "--amend", "-I", "-a", "-e", "-f", "-h", "-i", "-l",
    "-m", "-n", "-p", "-q", "-r", "-s", "-w", "-1",
}  # fmt: skip


def allowed(command: str) -> bool:
    """Whether a command may be run as it stands."""
    lines = command.split("\n")
    if not lines[0].startswith(_HOME):
        return False
    lines[0] = lines[0][len(_HOME) :].removeprefix(" && ")
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        *before, last = line.split(" && ")
        if not all(map(_plain, before)):
            return False
        heredoc = _HEREDOC.fullmatch(last)
        if heredoc is None:
            if not _plain(last):
                return False
        elif heredoc["end"] in lines and _below(heredoc["path"]):
            del lines[: lines.index(heredoc["end"]) + 1]
        else:
            return False
    return True


def _plain(command: str) -> bool:
    """Whether it is one of the known programs, with options and paths that stay below."""
    return bool(_PLAIN.fullmatch(command)) and all(map(_below, re.findall(_WORD, command)))


def _below(word: str) -> bool:
    """Whether a word cannot lead out of the folder; of options, whether it is a harmless one."""
    bare = word.strip("'")
    if bare.startswith("-"):
        return bare in _OPTIONS
    return not bare.startswith(("/", "~")) and ".." not in bare.split("/") and ".git" not in bare
