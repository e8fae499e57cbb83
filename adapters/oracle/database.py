"""The same on the package's own store, in a user's Oracle database."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

from steeltrap.adapters.hosted import Guests
from steeltrap.adapters.oracle.memory import AgentMemory, made, models_of
from steeltrap.harness.memory import MemoryFault
from steeltrap.harness.models import Models

__all__ = ["OracleDatabase"]

PASSWORD: Final = "ORACLE_PASSWORD"
"""The variable of the environment that holds the password of the database's user."""
_WAIT_S: Final = 20.0


class OracleDatabase(AgentMemory):
    """Each tenant is a user of the package's with a name of the run's own, which is deleted again.

    The database needs vector memory (`vector_memory_size`), and its user the right to make tables.

    Args:
        dsn: where the database is: `host:1521/service`, or a name of a `tnsnames.ora`.
        user: of the database, in whose schema the records lie.
        memory_store_id: what the names of the package's tables begin with; they are made where
            they are missing, and stay.
        options: as `AgentMemory` takes them.
    """

    name: ClassVar = "oracle-database"

    def __init__(
        self,
        *,
        dsn: str = "",
        user: str = "",
        memory_store_id: str = "STEELTRAP",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._dsn, self._login, self._store_id = dsn, user, memory_store_id
        self._pool: Any = None
        self._guests: Guests | None = None
        self._users: dict[str, str] = {}
        self._ids: dict[str, dict[str, str]] = {}

    def _begin(self, folder: Path, models: Models) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._pool = self._connected()
        core: Any = import_module("oracleagentmemory.core")
        llm, embedder = models_of(models)
        try:
            self._client = made(
                connection=self._pool, llm=llm, embedder=embedder,
                schema_policy=core.SchemaPolicy.CREATE_IF_NECESSARY,
                memory_store_id=self._store_id,
            )  # fmt: skip
        except Exception as error:
            raise MemoryFault(f"{self.name}: no tables for memories: {_first(error)}") from error
        self._store = self._client._store
        self._guests = Guests(folder / "oracle-users.txt", self._remove)
        self._guests.clear()

    def _connected(self) -> Any:
        """A pool of connections, one of which has been tried.

        Raises:
            MemoryFault: a setting is missing, or no database answers.
        """
        password = os.environ.get(PASSWORD, "")
        given = {"system.dsn": self._dsn, "system.user": self._login, PASSWORD: password}
        missing = [name for name, value in given.items() if not value]
        if missing:
            raise MemoryFault(
                f"{self.name}: {', '.join(missing)} not set; it needs an Oracle database with vectors"
                " (23ai or later): its address, a user of it, and in the environment the password"
            )
        oracledb: Any = import_module("oracledb")
        try:
            pool = oracledb.create_pool(
                user=self._login, password=password, dsn=self._dsn, min=1, max=4,
                tcp_connect_timeout=_WAIT_S, retry_count=0,
            )  # fmt: skip
            with pool.acquire() as connection:
                connection.ping()
        except oracledb.Error as error:
            raise MemoryFault(
                f"{self.name}: no database answers at {self._dsn} as {self._login}: {_first(error)}"
            ) from error
        return pool

    def _end(self) -> None:
        self._users, self._ids = {}, {}
        self._pool, pool = None, self._pool
        if pool is not None:
            pool.close(force=True)

    def close(self) -> None:
        """Delete the users that were made, as far as that is possible, and close the connections."""
        if self._guests is not None:
            self._guests.clear()
        self._guests = None
        super().close()

    def _remove(self, name: str) -> None:
        self._client.delete_user(name, cascade=True)

    def _user(self, tenant: str) -> str:
        if tenant not in self._users:
            assert self._guests is not None
            self._users[tenant] = self._guests.name(tenant)
        return self._users[tenant]

    def _id(self, record: Any) -> str:
        """By the order of first sight: the package's own name has a part that differs by run."""
        ids = self._ids.setdefault(record.user_id, {})
        return ids.setdefault(record.id, f"m{len(ids)}")


def _first(error: Exception) -> str:
    """The first line of what went wrong, without a number that the driver gives each attempt."""
    return re.sub(r" \(CONNECTION_ID=[^)]*\)", "", str(error).split("\n", 1)[0])
