"""What makers say of their systems, condition by condition."""

from __future__ import annotations

import tomllib
from typing import Literal

import msgspec

from steeltrap.harness.verdict import CONDITIONS

__all__ = ["Claim", "ClaimsError", "read_claims"]


class ClaimsError(ValueError):
    """A file of claims cannot be read; the message says where and why."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim; where makers claim nothing there is none."""

    system: str
    """As in `configs/system`."""
    condition: str
    """C1 to C6."""
    claimed: Literal["yes", "some", "no"]
    """Whether they say that the condition is kept: no, where they say that it is not meant to be."""
    words: str
    """What they say, in other words."""
    source: str
    """Name of the page or paper."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    claim: list[Claim] = []


def read_claims(text: str) -> list[Claim]:
    """The claims of a TOML file, a `[[claim]]` each, in its order.

    Raises:
        ClaimsError: not TOML, a field missing, unknown or empty, a condition that is none of the
            six, or two claims of one system about one condition.
    """
    try:
        claims = msgspec.convert(tomllib.loads(text), type=_File).claim
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ClaimsError(f"claims: {error}") from None
    seen: set[tuple[str, str]] = set()
    for number, claim in enumerate(claims, 1):
        for field in ("system", "words", "source"):
            if not getattr(claim, field).strip():
                raise ClaimsError(f"claims: claim {number} has no {field}")
        if claim.condition not in CONDITIONS:
            raise ClaimsError(
                f"claims: claim {number} ({claim.system}) is about {claim.condition!r}, which is "
                f"none of {', '.join(CONDITIONS)}"
            )
        if (claim.system, claim.condition) in seen:
            raise ClaimsError(
                f"claims: {claim.system} has two claims about {claim.condition}; say both in one"
            )
        seen.add((claim.system, claim.condition))
    return claims
