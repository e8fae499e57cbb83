"""From HTTP bodies to calls and back, one module for each dialect."""

from typing import Final

from steeltrap.harness.gateway.dialects import chat, messages, responses
from steeltrap.harness.gateway.dialects.shared import Dialect

__all__ = ["DIALECTS"]

DIALECTS: Final[dict[str, Dialect]] = {
    "chat": chat, "responses": responses, "messages": messages,
}  # fmt: skip
"""The chat dialects by the name that `Call` has for them."""
