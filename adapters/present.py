"""The script's time and stable ids, where the package would take the wall clock and chance.

The package stamps and names what it stores by itself, and writes today's date into its prompts;
its interface takes neither. So `datetime` and `uuid` are replaced in its modules by what stands
here, which changes nothing else of what the package does.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, tzinfo
from hashlib import sha256
from types import ModuleType, SimpleNamespace
from uuid import UUID

__all__ = ["Present", "install"]

_EPOCH = "1970-01-01T00:00"


class Present:
    """When and for whom one memory works, and how many ids it has given each tenant."""

    at_work: Present
    """Of the memory that does something now; one at a time in a process."""

    def __init__(self) -> None:
        self.at = _EPOCH
        self._tenant = ""
        self._given: Counter[str] = Counter()

    def enter(self, tenant: str, at: str = "") -> None:
        """Let the package see this present from now on; without `at`, time stands still."""
        self.at = at or self.at
        self._tenant = tenant
        Present.at_work = self

    def uuid4(self) -> UUID:
        """The tenant's next id: later ones are greater, and other tenants do not matter."""
        self._given[self._tenant] += 1
        name = sha256(self._tenant.encode()).digest()[:8]
        return UUID(int=int.from_bytes(name) << 64 | self._given[self._tenant])


class _Datetime(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromisoformat(Present.at_work.at).replace(tzinfo=tz)


_UUID = SimpleNamespace(uuid4=lambda: Present.at_work.uuid4())


def install(*modules: ModuleType) -> None:
    """Put the script's time and stable ids into modules of the package."""
    for module in modules:
        module.__dict__["datetime"] = _Datetime
        if "uuid" in module.__dict__:
            module.__dict__["uuid"] = _UUID
