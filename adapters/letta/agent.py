"""The process of one agent: a conversation over its standard input and output."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from steeltrap.adapters.letta.shell import allowed
from steeltrap.harness.memory import MemoryFault
from steeltrap.harness.models import Models

__all__ = ["Agent", "AgentError", "connect"]

_SWITCHES: Final = {
    "DISABLE_AUTOUPDATER": "1",
    "DO_NOT_TRACK": "1",
    "LETTA_CODE_OFFLINE": "1",
    "LETTA_CODE_TELEM": "0",
    "LETTA_DISABLE_CRON_SCHEDULER": "1",
}
_READING: Final = ("Read", "Memory", "Glob", "Grep", "LS", "TaskList", "TaskGet")
_REFUSED: Final = "Only files below the memory folder may be read, written and committed."
_STARTS_S: Final = 120.0
_ENDS_S: Final = 5.0


class AgentError(RuntimeError):
    """The agent ended, or did not end its turn; it is open what it has done."""


def connect(models: Models, folder: Path) -> None:
    """Make the gateway the provider of an agent that will live in a folder.

    Raises:
        MemoryFault: the package refuses it, or is not installed.
    """
    command = ["connect", "openai-compatible", "--base-url", models.openai_url]
    done = subprocess.run(
        [*_program(), "--backend", "local", *command], cwd=_work(folder), env=_variables(folder),
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_STARTS_S,
    )  # fmt: skip
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()[-300:]
        raise MemoryFault(f"letta: the gateway cannot be connected: {said}")


class Agent:
    """A conversation with an agent, which is made where there is none yet.

    Args:
        models: whom it asks.
        folder: where it lives.
        name: of the agent; empty for a new one.
        trusted: run whatever it wants to run.
    """

    def __init__(self, models: Models, folder: Path, name: str, *, trusted: bool) -> None:
        self._timeout_s = models.timeout_s * (models.retries + 1) + _STARTS_S
        self._trusted = trusted
        self.name = name
        self._memory = ""
        who = ("--agent", name, "--new") if name else ("--new-agent",)
        self._process = subprocess.Popen(
            [
                *_program(), "--backend", "local", *who, "-m", f"openai-compatible/{models.chat}",
                "-p", "--input-format", "stream-json", "--output-format", "stream-json",
                "--permission-mode", "standard", "--reflection-trigger", "off",
                "--no-skills", "--no-mods", "--no-system-info-reminder",
            ],
            cwd=_work(folder), env=_variables(folder),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._unread = b""

    def say(self, text: str) -> None:
        """Say something, and wait until the agent's turn is over.

        Raises:
            AgentError: it failed, ended, or takes too long.
        """
        self._send({"type": "user", "message": {"role": "user", "content": text}})
        ends = time.monotonic() + self._timeout_s
        while True:
            heard = self._heard(ends)
            match heard.get("type"):
                case "system" if heard.get("agent_id"):
                    self.name = heard["agent_id"]
                case "control_request":
                    self._permit(heard["request_id"], heard.get("request") or {})
                case "result":
                    if heard.get("subtype") != "success":
                        raise AgentError(f"letta: the turn failed: {str(heard)[:300]}")
                    return

    def close(self) -> None:
        """End the conversation; the agent's files stay."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]

    def _permit(self, request: str, asked: dict[str, Any]) -> None:
        tool, given = asked.get("tool_name"), asked.get("input") or {}
        fine = tool in _READING or (tool == "Bash" and allowed(str(given.get("command", ""))))
        granted = self._trusted or fine
        decision = {"behavior": "allow"} if granted else {"behavior": "deny", "message": _REFUSED}
        response = {"subtype": "success", "request_id": request, "response": decision}
        self._send({"type": "control_response", "response": response})

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except OSError as error:
            raise AgentError(f"letta: the agent has ended: {error}") from error

    def _heard(self, ends: float) -> dict[str, Any]:
        """The next message."""
        pipe = self._process.stdout
        assert pipe is not None
        while b"\n" not in self._unread:
            ready, _, _ = select.select([pipe], [], [], max(0.0, ends - time.monotonic()))
            piece = os.read(pipe.fileno(), 1 << 16) if ready else b""
            if not piece:
                raise AgentError("letta: the agent " + ("ended" if ready else "takes too long"))
            self._unread += piece
        line, self._unread = self._unread.split(b"\n", 1)
        try:
            heard = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return {}
        return heard if isinstance(heard, dict) else {}


def _program() -> tuple[str, ...]:
    """How the package's command is run; the one that is installed knows another place."""
    if find_spec("letta_code") is None:
        raise MemoryFault("letta: not installed; run: steeltrap systems install letta")
    return sys.executable, "-c", "from letta_code import main; main()"


def _work(folder: Path) -> Path:
    """Where the agent believes to work: an empty folder."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    return work


def _variables(folder: Path) -> dict[str, str]:
    """Nothing of the user's: the agent's files lie in its folder, and it talks to nobody."""
    kept = {
        name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG", "TZ") if name in os.environ
    }
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    own = {"HOME": str(home), "LETTA_LOCAL_BACKEND_DIR": str(folder / "backend")}
    return kept | _SWITCHES | own
