"""The summarizer's output: a few lines that stand before whatever is served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from steeltrap.adapters.helix.asks import Line
from steeltrap.adapters.helix.graph import Row, Store, dsl, keyed, live, named

__all__ = ["Profile", "keep", "load"]

_LINES: Final = msgspec.json.Decoder(list[Line])


class Profile(msgspec.Struct, frozen=True):
    """What is stored of one user's profile."""

    lines: Sequence[Line] = ()
    """Those whose memories hold now: the filters of recall are put to them as well."""
    at: str = ""
    stale: bool = False
    """A line had to be left out, so it should be written again."""

    @property
    def text(self) -> str:
        """A line a fact."""
        return "\n".join(line.text for line in self.lines)


def load(store: Store, tenant: str, at: str) -> Profile:
    """The profile of a user, as it may be served."""
    h = dsl()
    node = keyed("Profile", [_key(tenant)])
    holds = node.out("BUILT_FROM").where(h.Predicate.and_(live(tenant, tenant, at)))
    found = store.read(
        profile=node.value_map(["lines", "updatedAt"]), holds=holds.value_map(["number"])
    )
    if not found["profile"]:
        return Profile()
    (stored,) = found["profile"]
    written = _LINES.decode(stored["lines"])
    numbers = {row["number"] for row in found["holds"]}
    lines = [line for line in written if numbers >= set(line.memories)]
    return Profile(lines, stored["updatedAt"], stale=len(lines) < len(written))


def keep(
    store: Store, tenant: str, lines: Sequence[Line], memories: Sequence[Row], at: str
) -> None:
    """Store a profile in the place of the one before, with edges to what it was built from."""
    h, key = dsl(), _key(tenant)
    batch = h.write_batch().var_as("before", keyed("Profile", [key]).drop())
    if lines:
        shown = {row.number: row.key for row in memories}
        cited = [
            shown[number] for number in dict.fromkeys(n for line in lines for n in line.memories)
        ]
        properties: dict[str, Any] = {
            "key": key, "tenant": tenant, "user": tenant, "updatedAt": at,
            "lines": msgspec.json.encode(list(lines)).decode(),
        }  # fmt: skip
        batch = (
            batch.var_as("profile", h.g().add_n("Profile", properties))
            .var_as("user", keyed("User", [named("user", tenant)]))
            .var_as("owned", h.g().n(h.NodeRef.var("user")).add_e("HAS_PROFILE", h.NodeRef.var("profile")))
            .var_as("cited", keyed("Memory", cited))
            .var_as("built", h.g().n(h.NodeRef.var("profile")).add_e("BUILT_FROM", h.NodeRef.var("cited")))
        )  # fmt: skip
    store.commit(batch.returning([]))


def _key(tenant: str) -> str:
    return named("profile", tenant)
