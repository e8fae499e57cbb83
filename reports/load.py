"""The tables of a load: latency at each rate, and what was answered that no order explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steeltrap.harness.load.histogram import Histogram
from steeltrap.harness.load.record import LoadRecord, Step
from steeltrap.reports.layout import escaped, markdown
from steeltrap.reports.table import Numbers, Say, Table, listed

__all__ = ["facts_of", "load_page", "load_tables"]


def load_tables(record: LoadRecord) -> list[Table]:
    """Latency, truth and what went wrong, a line for each rate."""
    rows = [_numbers(record, step) for step in _steps(record)]
    return [_latency(rows), _truth(rows)]


def load_page(record: LoadRecord) -> str:
    """The same as a Markdown page, with the circumstances and examples."""
    lines = [f"# {escaped(record.spec.run.system)} under load", ""]
    lines += [f"- {escaped(fact)}" for fact in facts_of(record)]
    lines += ["", *(part for table in load_tables(record) for part in (markdown(table), ""))]
    for title, said in (
        ("Examples of violations", [(s, w) for s in _steps(record) for w in s.examples]),
        ("What operations failed with", [(s, w) for s in _steps(record) for w in s.errors]),
    ):
        told = [f"- {_rate(step)}: {escaped(' '.join(words.split()))}" for step, words in said]
        lines += [f"### {title}", "", *told, ""] if told else []
    return "\n".join(lines)


def facts_of(record: LoadRecord) -> list[str]:
    """The circumstances, and the knee."""
    spec = record.spec
    run, load = spec.run, spec.load
    asked = "several at once" if spec.concurrent else "one at a time, as it claims no concurrency"
    packages = ", ".join(f"{name} {version}" for name, version in sorted(run.packages.items()))
    model = run.model.get("name", "none")
    faults = run.model.get("faults", {}).get("name", "none")
    facts = [
        f"asked by {spec.threads} threads, {asked}; {load.tenants} tenants, {load.arrivals} arrivals"
        f" for {load.seconds:g} s a rate, {load.writes:.0%} writes, seed {load.seed}",
        f"model {model}, faults {faults}, limit {run.limit}, embedder {run.embedder or 'none'}",
        f"steeltrap {run.steeltrap} {run.revision}; {packages}",
        "generator and memory share this machine, and where the memory runs in this process its"
        " interpreter too",
    ]
    if record.knee is None:
        return [*facts, f"no rate kept its 99th percentile within {spec.bound_ms:g} ms"]
    return [
        *facts,
        f"knee: {record.knee:g} operations a second is the highest rate whose 99th percentile, from"
        f" the intended start, stayed within {spec.bound_ms:g} ms",
    ]


def _steps(record: LoadRecord) -> list[Step]:
    alone = [record.alone] if record.alone else []
    return [*alone, *sorted(record.steps, key=lambda step: step.rate)]


def _rate(step: Step) -> str:
    return f"{step.rate:g} a second" if step.rate else "one after the other"


def _numbers(record: LoadRecord, step: Step) -> dict[str, Any]:
    ended: dict[str, int] = {}
    for kind, outcomes in step.operations.items():
        for outcome, n in outcomes.items():
            if kind != "poll":
                ended[outcome] = ended.get(outcome, 0) + n
    row: dict[str, Any] = {
        "system": record.spec.run.system, "rate": step.rate, "reached": step.reached,
        "bound_ms": record.spec.bound_ms, "holds": step.holds(record.spec.bound_ms),
        "settle_ms": step.settle_ms, "cut": step.cut, "unknown": step.unknown,
        "missing": step.missing, "unread": step.unread,
    }  # fmt: skip
    row |= {name: ended.get(name, 0) for name in ("ok", "fail", "info", "unserved")}
    row |= _times("lag", step.lag) | _times("late", step.late)
    for kind in ("write", "read"):
        for how, found in (("intended", step.intended), ("service", step.service)):
            row |= _times(f"{kind}_{how}", found.get(kind))
    for name in ("C1", "C1-quiet", "C2"):
        row |= {f"{name}_broken": step.broken[name], f"{name}_n": step.opportunities[name]}
    row["writes_n"] = step.opportunities["writes"]
    return row | {name: step.violations.get(name, 0) for name in ("lost", "doubled", "leak", "kept-refused")}  # fmt: skip


def _times(name: str, histogram: Histogram | None) -> dict[str, Any]:
    if histogram is None or not histogram.n:
        return {f"{name}_p50_ms": None, f"{name}_p99_ms": None}
    return {f"{name}_p50_ms": histogram.p50_ms, f"{name}_p99_ms": histogram.p99_ms}


def _latency(rows: Sequence[Numbers]) -> Table:
    def ms(name: str) -> Say:
        return lambda row: _ms(row[name])

    return listed(
        "load-latency",
        "Latency in ms",
        rows,
        [
            ("rate", _asked), ("reached", lambda row: f"{row['reached']:,.1f}"),
            ("write\np50", ms("write_intended_p50_ms")), ("\np99", ms("write_intended_p99_ms")),
            ("service\np99", ms("write_service_p99_ms")),
            ("read\np50", ms("read_intended_p50_ms")), ("\np99", ms("read_intended_p99_ms")),
            ("service\np99", ms("read_service_p99_ms")),
            ("lag\np50", ms("lag_p50_ms")), ("\np99", ms("lag_p99_ms")), ("settle", ms("settle_ms")),
        ],
        about=("rate",),
        notes=[
            "Write and read count from the intended start. Service counts from when a thread was free"
            " for them: a closed loop would report that.",
            "Lag: from the acknowledgement of a write to the first read that served it, without"
            " settling; looked for after 0, 10, 20, 50, 100, 200, 500 ms, 1, 2 and 5 s.",
            "Alone: one after the other, so that nothing waits.",
        ],
    )  # fmt: skip


def _truth(rows: Sequence[Numbers]) -> Table:
    def share(name: str) -> Say:
        return lambda row: (
            f"{row[f'{name}_broken']}/{row[f'{name}_n']}" if row[f"{name}_n"] else "-"
        )

    def quiet(name: str) -> Say:
        return lambda row: "?" if row["unknown"] else str(row[name])

    return listed(
        "load-truth",
        "What no order of the operations explains",
        rows,
        [
            ("rate", _asked), ("C1", share("C1")), ("C1,\nsettled", share("C1-quiet")),
            ("C2,\nsettled", share("C2")), ("writes", "writes_n"), ("lost", quiet("lost")),
            ("doubled", quiet("doubled")), ("leak", "leak"), ("silent", "missing"),
            ("failed/\nunsure/\nunserved", _undone),
        ],
        about=("rate",),
        notes=[
            "C1: answers with a value, under way, that no order of what was acknowledged or under way"
            " explains; C1 and C2, settled: when all was quiet.",
            "Silent: answered by nothing, under way, though something had been acknowledged.",
            "Lost: acknowledged, and nowhere when all was quiet; doubled: shown more often than what"
            " is told alone. What goes wrong alone is no fault of concurrency.",
        ],
    )  # fmt: skip


def _undone(row: Numbers) -> str:
    return f"{row['fail']}/{row['info']}/{row['unserved']}"


def _asked(row: Numbers) -> str:
    return (f"{row['rate']:g}" if row["rate"] else "alone") + (" (cut)" if row["cut"] else "")


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
