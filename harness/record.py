"""What a run states: where it came from, what it found, what it cost.

`Record.outcome` is the same for the same script, seed and versions; wall times stand apart in
`Record.timing` and are never compared. Two results are compared only where their specs agree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from steeltrap.harness.models import Usage
from steeltrap.harness.verdict import ConditionVerdict

__all__ = [
    "CostAt",
    "Dose",
    "DoseResponse",
    "Kept",
    "Outcome",
    "Percentiles",
    "Record",
    "RecordError",
    "Request",
    "RunSpec",
    "Timing",
    "read_record",
]

FORMAT: Final = "steeltrap-record"
VERSION: Final = 1


class RecordError(ValueError):
    """A record cannot be read; the message says why and what to do."""


class RunSpec(msgspec.Struct, kw_only=True):
    """Everything that decides what a run does; written before it starts."""

    system: str
    """Name of the system, as in `configs/system`, with what was set differently."""
    settings: dict[str, Any]
    """The adapter's settings."""
    script: str
    script_sha256: str
    seed: int
    reader: str
    limit: int
    """Items that a query may be served."""
    twins: int = 1
    """Twins of each kind that are run beside the script, at most."""
    repeats: int = 1
    """Further runs of the same script, where a twin is compared with what chance does."""
    steeltrap: str
    """Version of this package."""
    packages: dict[str, str] = {}
    """Versions of the packages that the system stands on."""
    embedder: str = ""
    model: dict[str, Any] = {}
    """What answered the system's model calls, with its dials and faults; empty where it makes none."""
    revision: str = ""
    """git revision of the code, with `+` where the tree had changes; empty outside a checkout."""


class Percentiles(msgspec.Struct):
    """Wall times of one kind of operation."""

    n: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    total_ms: float


class CostAt(msgspec.Struct, kw_only=True):
    """What a system took at one length of its life: `steeltrap.harness.growth`."""

    turns: int
    """The length: so many turns had been told."""
    operations: dict[str, int]
    """By phase, how many operations were timed."""
    costs: dict[str, float]
    """By name, as far as there were any; the unit stands last in a name."""


class Timing(msgspec.Struct, kw_only=True):
    """Wall times by phase; not compared."""

    phases: dict[str, Percentiles]
    """ingest, settle, retrieve, maintain, list, audit, erase, as far as they happened: the
    system's own time, without what it waited for models."""
    models: dict[str, Percentiles] = {}
    """The models' time by phase, over the steps that asked any."""
    size_bytes: int | None = None
    """On disk at the last full gauge, where the system tells; file formats differ from run to run."""
    growth: list[CostAt] = []
    """What it took as its life grew longer; empty for short lives."""
    run_s: float | None = None
    """The limit at which the run, or one beside it, ended early; None: all went to their ends."""


class Evidence(msgspec.Struct, kw_only=True):
    """Evidence retrieval of public data at one cut-off: `steeltrap.harness.evidence`."""

    category: str
    k: int
    """Items, or at the grain of sessions sessions, that count; 0 where a budget cuts."""
    n: int
    """Questions counted."""
    recall: float
    """Mean share of a question's evidence that was found."""
    hit: float
    """Share of questions with any of their evidence found."""
    all: float
    """Share of questions with all of it found."""
    ndcg: float | None = None
    """Mean discounted cumulative gain over that of the best order; None with a window."""
    mrr: float | None = None
    """Mean of 1 / place of the first evidence; None with a window."""
    tokens: float = 0.0
    """Mean tokens (o200k_base) of what counts."""
    grain: Literal["turn", "session"] = "turn"
    """What evidence is made of."""
    budget_tokens: int = 0
    """Items count as long as they fit into so many tokens together; 0: `k` cuts."""
    window: int = 0
    """So many turns before and after each are put beside it, within its session."""
    left_out: str = ""
    """Which questions were left out, if any."""
    convention: str = ""
    """Whose rules decide which questions count: ours, or a benchmark's own scorer."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """What an agent would send to answer one turn: `steeltrap.harness.requests`.

    Tokens are those of o200k_base; `cached` are those that a cache of exact prefixes would have.
    """

    turn: int
    """Its number, from 1."""
    tokens: int
    """Instructions, what the memory served, and the turn."""
    memory_tokens: int
    """The part that the memory served."""
    characters: int
    cached_tokens: int
    """Instructions first, then the memory, then the turn."""
    cached_memory_first_tokens: int
    """The memory first."""


class Effect(msgspec.Struct, kw_only=True):
    """What differs between a run and its twin, beyond what runs of one script differ."""

    twin: str
    about: str
    """What the two scripts differ in: `script.TwinSpec.about`."""
    what: str
    """What was looked at, such as `served`, `order`, `history`, `salience`, `files`."""
    n: int
    """Points at which the two could be compared."""
    differing: int
    """Those at which they differ."""
    null: int | None = None
    """Those at which runs of the same script differ, at most; None without such a run."""
    value: float | None = None
    """A size of the effect, where it has one; what it is, `measure` says."""
    null_value: float | None = None
    """The same between runs of one script, at most; None without such a run."""
    low: float | None = None
    high: float | None = None
    """Its 95% interval."""
    measure: str = ""


class Dose(msgspec.Struct, kw_only=True):
    """What became of units that were read so often."""

    reads: int
    n: int
    """Units, one of each group."""
    left: int | None = None
    """Those that were still listed after the pressure, or served where nothing is listed; None
    where that was not seen."""
    recovered: int | None = None
    """Those that an explicit recovery gave then; None without that capability."""
    place: float
    """Mean place within its group after the reads, from 1."""
    salience: float | None = None
    """Mean after the last read; None where it is not visible."""
    rise: float | None = None
    """By how much it rose from before the first read on, mean."""


class DoseResponse(msgspec.Struct, kw_only=True):
    """What answers how often a unit is read."""

    groups: int
    """Groups of units that are alike but for their doses."""
    doses: list[Dose]
    """By dose."""
    trends: dict[str, list[float]]
    """What answers (salience, standing, survival) -> of each group: pairs that moved with the dose
    less those that moved against it, over all pairs (-1 to 1)."""


class Kept(msgspec.Struct, kw_only=True):
    """What became of units of one kind, where what decides is tried: `checks.retention`."""

    when: Literal["told", "waited"]
    """told: after pressure, no time having passed; waited: after silence as well."""
    late: bool
    """Told after the others."""
    vital: bool
    """And not trivial."""
    read: bool
    """And not left alone."""
    n: int
    """Those that were listed after they were told, before the pressure."""
    left: int
    """Those that were listed then."""
    back: int | None = None
    """waited: of the others, those that an explicit recovery gave, or without that capability the
    question that followed; None where neither was seen."""


class Outcome(msgspec.Struct, kw_only=True):
    """What a run found; the same for the same script, seed and versions."""

    turns: int
    steps: int
    failed: int
    """Steps that ended in `fail` or `info`."""
    stopped: str = ""
    """Why the run ended before its script did; empty: it went to the end."""
    lost: dict[str, str] = {}
    """The turns among them, with what became of each."""
    answers: dict[str, int]
    """Verdicts of current-value probes: correct, stale, ambiguous, wrong, missing, inherited."""
    verdicts: dict[str, ConditionVerdict]
    """By condition, C1 to C6 and `beyond`."""
    by_family: dict[str, dict[str, list[int]]] = {}
    """By family and condition: [violations, opportunities]; under `missing`: [set current values
    that were not answered, those asked for]. Where a script says which conditions, or names, a
    family is there to test, those alone."""
    recall: float | None
    """Share of set current values answered right; None without such a probe."""
    evidence_recall: float | None
    """Share of them whose right value stood among the items served."""
    recall_at: dict[str, float] = {}
    """The same within the first k items, by k."""
    recall_within: dict[str, float] = {}
    """Recall where the reader is given no more than the first items that fit into so many tokens
    (o200k_base) together, by tokens: systems at an equal context budget."""
    exposed: int = 0
    """Superseded values served unmarked to questions about the present (literal reading of C1)."""
    inferable: int = 0
    """Missed propagations at which both the rule and the new source value were served."""
    staleness_by_lag: dict[str, list[int]] = {}
    """By lag in turns: [violations of C1 to C3 that answered a superseded value, probes]."""
    missed_by_hop: dict[str, list[int]] = {}
    """By hop: [missed propagations, opportunities]."""
    by_rule: dict[str, list[int]] = {}
    """By kind of rule, for dependents one edge away: [missed, wrong, served as waiting for review,
    opportunities]."""
    served_tokens_mean: float | None = None
    """Tokens (o200k_base) put before the reader, per query."""
    served_tokens_total: int = 0
    served_curve: list[tuple[int, int, int]] = []
    """Curve: (turn, queries so far, tokens served to them so far) at each gauge."""
    ingested_tokens: int = 0
    """Tokens of all turns."""
    usage: dict[str, Usage] = {}
    """What models were asked, by phase; without their time."""
    cost_usd: float | None = None
    """By the price table, embeddings apart; None where the model's price is not known."""
    footprint: list[tuple[int, int, int, int, float]] = []
    """Curve: (turn, active items, active tokens, true tokens, beta tokens) at each gauge."""
    footprint_ratio: float | None = None
    """Active over true tokens, mean over the gauges; None where the state cannot be listed."""
    growth_exponent: float | None = None
    """Slope of log active tokens against log turns."""
    evidence: list[Evidence] = []
    requests: list[Request] = []
    """Turn by turn, where the script asks with its turns."""
    effects: list[Effect] = []
    """What twins showed, other than of reading (C6)."""
    dose: DoseResponse | None = None
    """None where the script gives no doses."""
    retention: list[Kept] = []
    """By kind of unit, where the script tries what decides."""
    fingerprint: str = ""
    """sha256 of the history without its wall times."""
    twins: dict[str, str] = {}
    """Fingerprints of the twin histories, by twin."""


class Record(msgspec.Struct, kw_only=True):
    """The result of one cell: a system, a script, a seed."""

    format: str = FORMAT
    version: int = VERSION
    spec: RunSpec
    outcome: Outcome
    timing: Timing

    def write(self, path: Path) -> None:
        """Write the record as indented JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        RecordError: missing, malformed or of another version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        record = msgspec.json.decode(data, type=Record)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"{path}: not a record ({error}); score the run again") from None
    if record.version != VERSION:
        raise RecordError(f"{path}: version {record.version}, this steeltrap reads {VERSION}")
    return record
