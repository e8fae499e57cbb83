"""The dials of language, apart from a script's structure."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Surface"]


@dataclass(frozen=True, slots=True)
class Surface:
    """How varied the language is; every dial but `paste_chars` is a share from 0 to 1.

    With all shares at 0 every op has one plain English wording.

    Raises:
        ValueError: a share is outside 0 to 1, or `paste_chars` is not positive.
    """

    paraphrase: float = 1.0
    """Turns and questions in varied wordings instead of the one plain wording."""
    spelling: float = 0.5
    """Values in another spelling than the plain one: 2 pm, €4.3k, 20.04.2026; never 04/05/2026."""
    ellipsis: float = 0.2
    """Turns that leave the topic out where the turn before was about it."""
    languages: float = 0.0
    """German and Japanese, half each, where the op has wordings in them."""
    decoration: float = 0.1
    """Emoji, greetings, code fences, mail subjects."""
    paste: float = 0.05
    """Noise turns that are one long paste."""
    paste_chars: int = 30_000
    """The length of a long paste, at least; at most a paragraph more."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "paste_chars":
                if value < 1:
                    raise ValueError(f"surface.paste_chars is {value}; it must be at least 1")
            elif not 0 <= value <= 1:
                raise ValueError(f"surface.{field.name} is {value}; it must lie between 0 and 1")
