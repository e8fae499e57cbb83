"""What holds for all results of a table, and what does not.

Two results are compared only where script, reader and budget agree; any other difference
between them is named.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from steeltrap.harness.record import Record
from steeltrap.harness.script import Header

__all__ = [
    "comparable",
    "distinct",
    "facts",
    "made_to_fail",
    "model_words",
    "notes",
    "places",
    "title",
]


def comparable(records: Iterable[Record]) -> list[list[Record]]:
    """The records in groups that share script, reader and budget, in the order given.

    Where a seed was run at several lengths, each length is a group of its own. A run that ended
    before its script did is of the length that others ran of the same script.
    """
    everything = list(records)
    whole = _whole(everything)
    lengths: dict[tuple[str, int], set[int]] = {}
    for record in everything:
        key = (record.spec.script, record.spec.seed)
        lengths.setdefault(key, set()).add(whole(record))
    several = {script for (script, _), found in lengths.items() if len(found) > 1}
    groups: dict[tuple[str, str, int, int], list[Record]] = {}
    for record in everything:
        spec = record.spec
        turns = whole(record) if spec.script in several else 0
        groups.setdefault((spec.script, spec.reader, spec.limit, turns), []).append(record)
    return list(groups.values())


def _whole(records: Sequence[Record]) -> Callable[[Record], int]:
    """How long the script of a record is, as far as any of the records shows."""
    longest: dict[str, int] = {}
    for record in records:
        key = record.spec.script_sha256
        longest[key] = max(longest.get(key, 0), record.outcome.turns)
    return lambda record: (
        longest[record.spec.script_sha256] if record.outcome.stopped else record.outcome.turns
    )


def title(records: Sequence[Record]) -> str:
    """Script and length of a comparable group."""
    turns = sorted({record.outcome.turns for record in records})
    length = f"{turns[0]}" if len(turns) == 1 else f"{turns[0]} to {turns[-1]}"
    return f"{records[0].spec.script}, {length} turns"


def places(groups: Sequence[Sequence[Record]]) -> list[str]:
    """A name for each comparable group: its script, and what else it takes to tell them apart."""
    asked = [
        [one.spec.script, one.spec.reader, f"{one.spec.limit}-items", f"{one.outcome.turns}-turns"]
        for one in (group[0] for group in groups)
    ]
    names = []
    for own in asked:
        alike = [other for other in asked if other[0] == own[0]]
        several = [len(set(words)) > 1 for words in zip(*alike, strict=True)]
        names.append("-".join([own[0], *itertools.compress(own, several)]))
    return names


def notes(headers: Iterable[Header]) -> list[str]:
    """What scripts of public data say about themselves, taken together: a line a note."""
    together: dict[str, list[Any]] = {}
    for header in headers:
        for key, value in header.notes.items():
            together.setdefault(key, []).append(value)
    return [f"{key.replace('_', ' ')}: {_words(values)}" for key, values in together.items()]


def _words(values: list[Any]) -> str:
    """One note of several scripts: equal ones once, numbers added up, lists and marks counted."""
    first = values[0]
    if isinstance(first, int):
        return str(sum(values))
    if isinstance(first, list):
        return str(sum(len(value) for value in values))
    if not isinstance(first, dict):
        return ", ".join(str(value) for value in distinct(values))
    if all(value == first for value in values) and len(set(first.values())) == len(first):
        return ", ".join(f"{key} {value}" for key, value in first.items())
    counts: Counter[str] = Counter()
    for value in values:
        for key, of in value.items():
            counts.update({key: of} if isinstance(of, int) else [str(of)])
    return ", ".join(f"{key} {count}" for key, count in sorted(counts.items())) or "none"


def facts(records: Sequence[Record]) -> list[str]:
    """What holds for all of a comparable group, and then what does not."""
    first = records[0]
    embedders = distinct(record.spec.embedder for record in records if record.spec.embedder)
    revisions = distinct(
        record.spec.revision[:12] + record.spec.revision[40:] for record in records
    )
    models = distinct(model_words(record) for record in records if record.spec.model)
    lines = [
        f"Script {title(records)}; {_seeds(records)}",
        f"Reader {first.spec.reader}; at most {first.spec.limit} items a query; "
        f"embedder {', '.join(embedders) or 'none'}",
        *(f"Model {model}" for model in models),
        f"steeltrap {', '.join(distinct(r.spec.steeltrap for r in records))}"
        + (f", revision {', '.join(revisions)}" if any(revisions) else ""),
        "Packages: " + ", ".join(f"{k} {'/'.join(v)}" for k, v in _packages(records).items()),
    ]
    return [
        *lines,
        *(f"ENDED EARLY: {line}" for line in _early(records)),
        *(f"NOT THE SAME: {line}" for line in _disagreements(records)),
    ]


def _early(records: Sequence[Record]) -> Iterator[str]:
    """Which runs ended before their scripts did, and whose twins."""
    for record in records:
        who = f"{' '.join(record.spec.system.split())}, seed {record.spec.seed}"
        if record.outcome.stopped:
            yield f"{who}, {record.outcome.stopped}; it has no twins, and what comes later is unknown"
        elif record.timing.run_s is not None:
            run_s = f"limits.run_s={record.timing.run_s:g}"
            yield f"a twin of {who}, at {run_s}; what ended early is not compared"


def model_words(record: Record) -> str:
    """What answered model calls: its name, and every dial and fault that is not off."""
    model = record.spec.model
    name = " ".join(str(model[key]) for key in ("name", "provider", "model") if model.get(key))
    off = (None, 0, 0.0, "none")
    flat = {
        **model,
        **{f"faults.{k}": v for k, v in model.get("faults", {}).items() if k != "name"},
    }
    told = ("name", "provider", "model", "faults")
    dials = [f"{k} {v}" for k, v in flat.items() if k not in told and v not in off]
    return f"{name} ({', '.join(dials)})" if dials else name


def made_to_fail(record: Record) -> bool:
    """Whether a dial of the ideal model, or faults, are turned: then it says something of the model."""
    return "(" in model_words(record)


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
    answering = distinct(model_words(record) for record in records if record.spec.model)
    if len(answering) > 1:
        yield f"the model ({'; '.join(answering)})"
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
