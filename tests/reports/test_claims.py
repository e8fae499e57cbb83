"""Claims: what makers say, read from a file that is checked line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from steeltrap.harness.verdict import CONDITIONS
from steeltrap.reports.claims import Claim, ClaimsError, read_claims

ONE = """
[[claim]]
system = "gem"
condition = "C1"
claimed = "yes"
words = "it answers with what holds"
source = "its README"
"""


def test_claims_are_read_in_order() -> None:
    """Each entry is a claim; a file without any has none."""
    assert [] == read_claims("")
    first, second = read_claims(ONE + ONE.replace("C1", "C2"))
    assert Claim("gem", "C1", "yes", "it answers with what holds", "its README") == first
    assert "C2" == second.condition


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[claim", "claims: "),
        (ONE.replace('"yes"', '"maybe"'), "maybe"),
        (ONE.replace("words", "wrds"), "wrds"),
        (ONE.replace('source = "its README"', ""), "source"),
        (ONE.replace('"its README"', '" "'), "claim 1 has no source"),
        (ONE.replace('"gem"', '""'), "claim 1 has no system"),
        (ONE.replace("C1", "C7"), "'C7', which is none of C1, C2"),
        (ONE + ONE, "gem has two claims about C1"),
        ("claim = 3", "claim"),
        ("other = 3", "other"),
    ],
)
def test_mistakes_are_named(text: str, told: str) -> None:
    """A file with a mistake is refused with what is wrong in it."""
    with pytest.raises(ClaimsError, match=r"^claims: ") as raised:
        read_claims(text)
    assert told in str(raised.value)


def test_own_claims_are_in_order(root: Path) -> None:
    """The file of the adapters can be read, names systems that exist, and gem claims all six."""
    claims = read_claims((root / "adapters" / "claims.toml").read_text())
    systems = {claim.system for claim in claims}
    assert {"mem0", "mem0-classic", "graphiti", "gem", "helix-recipe"} <= systems
    assert all((root / "configs" / "system" / f"{system}.yaml").is_file() for system in systems)
    assert list(CONDITIONS) == [claim.condition for claim in claims if claim.system == "gem"]
