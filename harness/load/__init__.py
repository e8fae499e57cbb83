"""Open-loop load: many tenants at once, and whether what they are answered can still be right.

`plan` fixes what is asked and when, `running` asks it, `judging` holds the answers against every
order that is possible, `measuring` goes from rate to rate, and `record` is what is kept.
"""

from __future__ import annotations

from steeltrap.harness.load.judging import NAMES, Findings, judge
from steeltrap.harness.load.measuring import alone, at_rate, next_rate
from steeltrap.harness.load.plan import LoadSettings, Plan, planned
from steeltrap.harness.load.record import LoadRecord, LoadSpec, Step, read_load
from steeltrap.harness.load.running import Trace, apply

__all__ = [
    "NAMES",
    "Findings",
    "LoadRecord",
    "LoadSettings",
    "LoadSpec",
    "Plan",
    "Step",
    "Trace",
    "alone",
    "apply",
    "at_rate",
    "judge",
    "next_rate",
    "planned",
    "read_load",
]
