"""What holds for all results of a table, and what does not.

Two results are compared only where script, length, reader and budget agree; any other
difference between them is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from steeltrap.harness.record import Record

__all__ = ["comparable", "distinct", "facts"]


def comparable(records: Iterable[Record]) -> list[list[Record]]:
    """The records in groups that share script, length, reader and budget, in the order given."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        spec = record.spec
        key = (spec.script, record.outcome.turns, spec.reader, spec.limit)
        groups.setdefault(key, []).append(record)
    return list(groups.values())


def facts(records: Sequence[Record]) -> list[str]:
    """What holds for all of a comparable group, and then what does not."""
    first = records[0]
    embedders = distinct(record.spec.embedder for record in records if record.spec.embedder)
    revisions = distinct(
        record.spec.revision[:12] + record.spec.revision[40:] for record in records
    )
    lines = [
        f"Script {first.spec.script}, {first.outcome.turns} turns; {_seeds(records)}",
        f"Reader {first.spec.reader}; at most {first.spec.limit} items a query; "
        f"embedder {', '.join(embedders) or 'none'}",
        f"steeltrap {', '.join(distinct(r.spec.steeltrap for r in records))}"
        + (f", revision {', '.join(revisions)}" if any(revisions) else ""),
        "Packages: " + ", ".join(f"{k} {'/'.join(v)}" for k, v in _packages(records).items()),
    ]
    return lines + [f"NOT THE SAME: {line}" for line in _disagreements(records)]


def _seeds(records: Sequence[Record]) -> str:
    """The seeds with the identities of their scripts, or only the seeds where they are many."""
    hashes = {record.spec.seed: record.spec.script_sha256[:12] for record in records}
    seeds = sorted(hashes)
    if len(seeds) > 5:
        return f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}"
    return "seed (sha256): " + ", ".join(f"{seed} ({hashes[seed]})" for seed in seeds)


def _disagreements(records: Sequence[Record]) -> Iterator[str]:
    by_seed: dict[int, list[str]] = {}
    seeds: dict[str, list[int]] = {}
    for record in records:
        by_seed.setdefault(record.spec.seed, []).append(record.spec.script_sha256[:12])
        seeds.setdefault(record.spec.system, []).append(record.spec.seed)
    for seed, hashes in sorted(by_seed.items()):
        if len(distinct(hashes)) > 1:
            yield f"the script of seed {seed} ({', '.join(distinct(hashes))})"
    if len(distinct(tuple(sorted(set(one))) for one in seeds.values())) > 1:
        ran = "; ".join(f"{s}: {', '.join(map(str, sorted(set(n))))}" for s, n in seeds.items())
        yield f"the seeds that were run ({ran})"
    for what, pick in _MUST_AGREE.items():
        if len(found := distinct(pick(record) for record in records)) > 1:
            yield f"{what} ({', '.join(found)})"
    for package, versions in _packages(records).items():
        if len(versions) > 1:
            yield f"the version of {package} ({', '.join(versions)})"
    embedders = distinct(record.spec.embedder for record in records if record.spec.embedder)
    if len(embedders) > 1:
        yield f"the embedder ({', '.join(embedders)})"


_MUST_AGREE: dict[str, Callable[[Record], str]] = {
    "the version of steeltrap": lambda record: record.spec.steeltrap,
    "the revision of the code": lambda record: record.spec.revision or "none",
}


def _packages(records: Sequence[Record]) -> dict[str, list[str]]:
    """Each package with the versions found, in order of names."""
    found: dict[str, list[str]] = {}
    for record in records:
        for package, version in record.spec.packages.items():
            versions = found.setdefault(package, [])
            if version not in versions:
                versions.append(version)
    return dict(sorted(found.items(), key=lambda pair: pair[0].lower()))


def distinct(values: Iterable[Any]) -> list[Any]:
    """The different ones, in order of first sight."""
    return list(dict.fromkeys(values))
