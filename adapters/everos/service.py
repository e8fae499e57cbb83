"""EverOS' server as a process of its own, and its HTTP interface."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Literal

from steeltrap.adapters.logged import HalfDone
from steeltrap.harness.memory import MemoryFault
from steeltrap.harness.models import Models
from steeltrap.harness.tokens import count

__all__ = ["Refused", "Service"]

_PATIENCE_S: Final = 600.0
"""What strategies and index together may need; a hung worker is stopped earlier."""
_END_S: Final = 10.0
_API: Final = "/api/v2"


class Refused(RuntimeError):
    """The server answered with an error, and may have done a part of what was asked."""


class Service:
    """A server over one folder, from its start until `close`.

    Args:
        folder: EverOS' memory root; it exists.
        models: where it finds its models.
        strategies: of its offline engine, those that are switched on or off.

    Raises:
        MemoryFault: it does not start.
    """

    def __init__(self, folder: Path, models: Models, strategies: dict[str, bool]) -> None:
        lines = [f"[strategies.{name}]\nenabled = {str(on).lower()}\n" for name, on in strategies.items()]  # fmt: skip
        (folder / "ome.toml").write_text("\n".join(lines))
        count("")  # lays the ranks where tiktoken looks, which would download them otherwise
        program = Path(__file__).with_name("server.py")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(program)],
            env={**os.environ, **_variables(folder, models)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        port = self._process.stdout.readline()
        if not port.strip().isdigit():
            self.close()
            raise MemoryFault("everos: the server did not start; standard error says why")
        self._port = int(port)

    def close(self) -> None:
        """End it; all that it has written stays."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def post(self, path: str, at: str, **body: Any) -> dict[str, Any]:
        """Ask something of the package's interface as of a time; what it gives as `data`.

        Raises:
            Refused: it answered with an error.
        """
        answer = self._ask(_API + path, at, body)
        return answer.get("data") or answer

    def wait(self, at: str, what: Literal["idle", "indexed"]) -> None:
        """Wait until strategies have ended, or until the index has followed all files.

        Raises:
            HalfDone: some of it was given up.
        """
        answer = self._ask(f"/{what}", at, {})
        if answer["given_up"] or not answer["done"]:
            given_up = "; ".join(answer["given_up"])
            raise HalfDone(f"everos: not {what} after {_PATIENCE_S:g} s, or given up: {given_up}")

    def _ask(self, path: str, at: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE_S)
        headers = {"Content-Type": "application/json", "X-Now": at or "2000-01-01T00:00"}
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            said = response.read()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise Refused(f"everos: {path} answered {response.status}: {said[:500].decode()}")
        answer: dict[str, Any] = json.loads(said)
        return answer


def _variables(folder: Path, models: Models) -> dict[str, str]:
    """EverOS' settings; what is not named here has the package's default."""
    access = {"API_KEY": models.key, "BASE_URL": models.openai_url}
    timeout = {"TIMEOUT_SECONDS": str(models.timeout_s)}
    sections = {
        "LLM": {"MODEL": models.chat, **access, **timeout},
        "EMBEDDING": {
            "MODEL": models.embedding,
            "DIM": str(models.dimension),
            "MAX_RETRIES": str(models.retries),
            **access,
            **timeout,
        },
        "MEMORIZE": {"MODE": "chat"},
        "OBSERVABILITY": {"ENABLED": "false"},
        # The index follows when it is told to: by the clock it would differ from run to run.
        "CASCADE": {"SCAN_INTERVAL_SECONDS": "1000000"},
    }
    named = {
        f"EVEROS_{section}__{key}": value
        for section, settings in sections.items()
        for key, value in settings.items()
    }
    return named | {
        "EVEROS_DISABLE_CASCADE_WATCHER": "1",
        "EVEROS_ROOT": str(folder),
        "STEELTRAP_PATIENCE_S": str(_PATIENCE_S),
        "STEELTRAP_RETRIES": str(models.retries),
    }
