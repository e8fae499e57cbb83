"""The six conditions as checks: functions from a script and a history to named violations."""

from __future__ import annotations

from steeltrap.harness.checks.adaptation import Standing, standings
from steeltrap.harness.checks.scorer import Scored, Scorer, score

__all__ = ["Scored", "Scorer", "Standing", "score", "standings"]
