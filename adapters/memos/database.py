"""A Postgres server of one memory's own, with pgvector, from the binaries of `pgserver`.

`pgserver` starts servers too. As root it adds a user to the machine and opens up the folders above
its data; here, a server that root starts runs as nobody, and nothing outside of the folder is changed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from steeltrap.harness.memory import MemoryFault

__all__ = ["Database"]

USER: Final = "memos"
_NOBODY: Final = 65534
_AS_NOBODY: Final = (
    "setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups",
    "--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup", "--",
)  # fmt: skip
"""Postgres refuses to run as root. The folders above its data may be root's alone, so it keeps the
right to pass through them."""
_SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "fsync": "off",
    "autovacuum": "off",
    "ivfflat.probes": "100",
    "timezone": "UTC",
    "max_parallel_workers_per_gather": "0",
}
"""No network; no guard against power cuts, for a memory that lives as long as a run; nothing that
works by the clock. The package cuts its index of vectors into 100 lists while the table is empty,
and by default one of them is looked at: most of what is near would be missed. With all of them
the search is exact."""
_SOCKET_CHARS: Final = 85
"""Longer names of folders leave no room for a socket's."""
_STARTS_S: Final = 30.0


class Database:
    """A server that runs from now on.

    Args:
        folder: takes its files; new.

    Raises:
        MemoryFault: it does not start; the message has its last words.

    Attributes:
        host: where clients find its socket.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        self._short = len(str(folder)) <= _SOCKET_CHARS
        self.host = str(folder) if self._short else tempfile.mkdtemp(dir="/tmp", prefix="memos-")
        self._log = folder.parent / "postgres.log"
        self._as: tuple[str, ...] = ()
        if os.geteuid() == 0:
            self._as = _AS_NOBODY
            for owned in {str(folder), self.host}:
                os.chown(owned, _NOBODY, _NOBODY)
        self._process: subprocess.Popen[bytes] | None = None
        self._make()
        self._start()

    def close(self) -> None:
        """Stop the server; its files stay."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None
        if not self._short:
            shutil.rmtree(self.host, ignore_errors=True)

    def config(self, tenant: str, dimension: int) -> dict[str, Any]:
        """How the package is told of it."""
        return {
            "host": self.host,
            "port": 5432,
            "user": USER,
            "password": "none",
            "db_name": "postgres",
            "user_name": tenant,
            "embedding_dimension": dimension,
        }

    def _make(self) -> None:
        self._run(
            "initdb", "-D", str(self._folder), "-U", USER, "--auth=trust", "--encoding=utf8",
            "--locale=C", "--no-sync", "--no-instructions",
        )  # fmt: skip
        lines = "".join(f"{name} = '{value}'\n" for name, value in _SETTINGS.items())
        with (self._folder / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(lines)

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as, _binary("postgres"), "-D", str(self._folder), "-k", self.host],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        ends = time.monotonic() + _STARTS_S
        pid = self._folder / "postmaster.pid"
        while not (pid.exists() and pid.read_text().rstrip().endswith("ready")):
            if self._process.poll() is not None or time.monotonic() > ends:
                self.close()
                said = self._log.read_text(errors="replace").strip()[-300:]
                raise MemoryFault(f"memos: Postgres does not start; it says: {said}")
            time.sleep(0.02)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as, _binary(program), *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-300:]
            raise MemoryFault(f"memos: Postgres' {program} failed: {said}")


def _binary(program: str) -> str:
    found = find_spec("pgserver")  # not imported: that makes folders
    if found is None or not found.submodule_search_locations:
        raise MemoryFault("memos: pgserver is not installed; run: steeltrap systems install memos")
    return str(Path(found.submodule_search_locations[0]) / "pginstall" / "bin" / program)
