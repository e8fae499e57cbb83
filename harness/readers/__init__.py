"""Readers turn what was served into an answer."""

from __future__ import annotations

from steeltrap.harness.readers.answers import Answer, Oracle, Reader, Top1
from steeltrap.harness.readers.claims import Catalogue, Claim

__all__ = ["READERS", "Answer", "Catalogue", "Claim", "Oracle", "Reader", "Top1"]

READERS: dict[str, type[Reader]] = {"oracle": Oracle, "top1": Top1}
