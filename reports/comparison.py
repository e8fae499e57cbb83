"""A comparison of two sides, on a console, as a comment for a pull request, and as GitHub's annotations.

What is shown comes from scripts and systems that somebody else wrote. Signs that do not print are
spelled out, and nothing is left that a terminal, Markdown or a workflow would take for a command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from steeltrap.harness.compare.comparison import Comparison, Measure, Versus
from steeltrap.harness.verdict import CONDITION_OF

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "changed_words",
    "clean",
    "headline",
    "markdown",
    "reason",
    "show",
    "workflow_commands",
]

_HEADS: Final = {0: "nothing is worse", 1: "WORSE", 2: "cannot be judged"}
_SHARES: Final = ("recall", "evidence_recall")
_FAMILIES: Final = 12
"""Rows of families that a console shows; where more differ, the files have them."""
_SHOWN: Final = 8
"""Reasons and annotations that are listed; how many more there are is said."""


class _Row(NamedTuple):
    name: str
    base: str
    new: str
    here: str
    beyond: str


def clean(text: str) -> str:
    """Text as it can be shown: what does not print is spelled out, workflow commands are broken."""
    spelled = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )
    while "::" in spelled:
        spelled = spelled.replace("::", ": :")
    return spelled.replace("##[", "## [")


# ---------------------------------------------------------------- words


def headline(found: Comparison) -> str:
    """The result in a line."""
    head = _HEADS[found.exit_code]
    if found.exit_code == 1:
        return f"{head}: {_some(found.worse)}"
    if found.exit_code == 2:
        return f"{head}: {_some(found.unjudged)}"
    pairs = sum(len(one.pairs) for one in found.versus)
    return f"{head} on {pairs} script{'s' if pairs != 1 else ''}"


def _some(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(map(clean, lines[:_SHOWN])) + more


def reason(measure: Measure) -> str:
    """A measure of both sides in words, with where to look."""
    words = f"{_cell(measure, 'base')} -> {_cell(measure, 'new')}"
    if changed := changed_words(measure):
        words += f" ({changed})"
    if (seen := measure.witness) is None:
        return words
    words += f". First: {seen.name}, seed {seen.seed}, step {seen.step}"
    if seen.unit:
        words += f", {clean(seen.unit)}"
    if seen.expected or seen.observed:
        words += f": expected {clean(seen.expected) or 'nothing'}, observed {clean(seen.observed) or 'nothing'}"  # fmt: skip
    if seen.turns:
        words += f"; turns {clean(', '.join(seen.turns))}"
    return words


def changed_words(measure: Measure) -> str:
    """How many points are violated on one side alone; empty where none is, or nobody can tell."""
    counts = ((measure.appeared, "new"), (measure.gone, "gone"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _about(one: Versus) -> list[str]:
    """What was compared, in lines."""
    scripts: dict[str, list[int]] = {}
    for pair in one.pairs:
        scripts.setdefault(pair.script, []).append(pair.seed)
    asked = "; ".join(f"{name}, seed {_ranges(seeds)}" for name, seeds in scripts.items())
    runs = {(pair.base_runs, pair.new_runs) for pair in one.pairs}
    each = " or ".join(str(b) if b == n else f"{b} (BASE) and {n} (NEW)" for b, n in sorted(runs))
    many = "run" if each == "1" else "runs"
    name = one.new if one.base == one.new else f"{one.new} (NEW) and {one.base} (BASE), two systems"
    return [f"{name}: {asked}; {each} {many} a side", _steadiness(one)]


def _ranges(seeds: Sequence[int]) -> str:
    """`0-4, 7`."""
    found: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if found and seed == found[-1][-1] + 1:
            found[-1].append(seed)
        else:
            found.append([seed])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in found)


def _steadiness(one: Versus) -> str:
    match one.steadiness:
        case "steady":
            return "It does the same each time, so every difference on these scripts is real."
        case "unknown":
            return (
                "It was not run twice: differences are taken as real. A system that varies by"
                " itself needs several runs a side."
            )
        case _:
            return "It varies by itself: means over runs are shown, and only tests judge."


def _testing(found: Comparison) -> list[str]:
    """How it was tested, in lines."""
    if not found.versus:
        return []
    kinds = {m.test for one in found.versus for m in one.conditions if m.test}
    said = {
        "permutation": "permutation of runs within their scripts",
        "units": "sign test over units, as there are too few runs for one over runs",
    }
    how = " or ".join(said[kind] for kind in sorted(kinds)) or "nothing could be tested"
    return [
        f"Beyond these scripts: {how}; p after Holm over {found.tests}"
        f" test{'s' if found.tests != 1 else ''}, counts at {found.level:g}; -: too little differs."
    ]


def _cell(measure: Measure, side: str) -> str:
    value = getattr(measure, side)
    if value is None:
        return "unknown" if measure.name in CONDITION_OF.values() else "-"
    if counts := getattr(measure, f"{side}_counts"):
        both = f"{_number(counts[0])}/{_number(counts[1])}"
        return f"{value:.1%} {both}" if counts[0] else f"none {both}"
    if measure.name in CONDITION_OF:
        return _number(value)
    return f"{value:.1%}" if measure.name in _SHARES else f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"  # fmt: skip


def _number(value: float) -> str:
    whole = value >= 100 or abs(value - round(value)) < 1e-9
    return f"{value:.0f}" if whole else f"{value:.1f}"


def _row(measure: Measure) -> _Row:
    here: str = "no difference" if measure.verdict == "same" else measure.verdict
    if measure.verdict == "not comparable" and None not in (measure.base, measure.new):
        if measure.name not in CONDITION_OF.values():
            here = ""  # it can be compared by whoever reads it, and is not judged
    if changed := changed_words(measure):
        here += f": {changed}"
    if measure.lost and measure.name in CONDITION_OF.values():
        here = "no longer seen" if measure.verdict == "not comparable" else f"{here}, partly unseen"
    beyond = ""
    if measure.test:
        beyond = "-" if measure.p is None else f"p {measure.p:.2g}"
        if measure.general in ("better", "worse"):
            beyond += f" {measure.general}"
    return _Row(measure.name, _cell(measure, "base"), _cell(measure, "new"), here, beyond)


def _names(one: Versus) -> list[Measure]:
    return [m for m in one.violations if not m.family and (m.base or m.new)]


def _numbers(one: Versus) -> list[Measure]:
    return [m for m in one.metrics if m.base is not None or m.new is not None]


def _moved(one: Versus) -> list[Measure]:
    """Conditions on single families, where they differ."""
    return [m for m in one.families if m.verdict in ("better", "worse")]


def _red(one: Versus) -> list[Measure]:
    """What is worse, the name rather than its condition where the name is known."""
    red = [m for m in (*one.conditions, *one.violations, *one.metrics) if m.red]
    told = {CONDITION_OF[m.name] for m in red if m.name in CONDITION_OF}
    return [m for m in red if m.name not in told]


# ---------------------------------------------------------------- console


def show(found: Comparison, out: Console) -> None:
    """Print a comparison; 80 columns are enough."""

    def line(text: str, style: str = "") -> None:
        out.print(clean(text), style=style, highlight=False, markup=False)

    for one in found.versus:
        for number, words in enumerate(_about(one)):
            line(words, "bold" if number == 0 else "")
        for note in one.notes:
            line(f"  note: {note}", "dim")
        out.print()
        _tables(one, out)
        if _red(one):
            out.print()
        for measure in _red(one):
            line(f"{measure.name}: {reason(measure)}")
        out.print()
    for words in _testing(found):
        line(words, "dim")
    for apart in found.apart:
        told = f"{apart.system}, {apart.script}, seed {apart.seed}"
        line(f"{apart.side} only: {told}: {apart.why}")
    for rule in found.rules:
        line(f"{rule.state}: {rule.words}")
    colour = {0: "bold green", 1: "bold red", 2: "bold yellow"}[found.exit_code]
    line(headline(found), colour)
    if found.exit_code == 1 and found.unjudged:
        line(f"also cannot be judged: {_some(found.unjudged)}")


def _tables(one: Versus, out: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for name, justify in zip(
        ("", "BASE", "NEW", "on these scripts", "beyond them"), "lrrll", strict=True
    ):
        table.add_column(name, justify="right" if justify == "r" else "left", no_wrap=not name)
    moved = _moved(one) if len(_moved(one)) <= _FAMILIES else []
    parts = (one.conditions, _names(one), moved, _numbers(one))
    for part in parts:
        for number, measure in enumerate(part, 1):
            row = _row(measure)
            label = f"{row.name}@{clean(measure.family)}" if measure.family else row.name
            style = "red" if measure.red else "green" if measure.verdict == "better" else ""
            table.add_row(
                Text(label), row.base, row.new, Text(row.here, style), row.beyond,
                end_section=number == len(part),
            )  # fmt: skip
    out.print(table)


# ---------------------------------------------------------------- Markdown


def _code(text: str) -> str:
    """Text of somebody else's, of which Markdown and HTML understand nothing; nobody is mentioned."""
    kept = (c if c.isalnum() or c in " -,()" else f"&#{ord(c)};" for c in clean(text))
    return f"<code>{''.join(kept)}</code>" if text else ""


def markdown(found: Comparison) -> str:
    """A comment for a pull request: the result, the conditions, and the rest folded away."""
    head = {0: "nothing is worse", 1: "worse", 2: "cannot be judged"}[found.exit_code]
    lines = [f"### steeltrap: {head}", ""]
    for words in (found.worse, found.unjudged):
        lines += [f"- {_code(line)}" for line in words[:_SHOWN]]
        if len(words) > _SHOWN:
            lines.append(f"- and {len(words) - _SHOWN} more")
    for one in found.versus:
        name = (
            _code(one.new) if one.base == one.new else f"{_code(one.new)} against {_code(one.base)}"
        )
        lines += ["", f"**{name}** {_steadiness(one)}", "", *_grid(one.conditions), ""]
        lines += ["<details><summary>Names, families, numbers and settings</summary>", ""]
        lines += [f"{_code(_about(one)[0])}", ""]
        for part in (_names(one), _moved(one), _numbers(one)):
            if part:
                lines += [*_grid(part), ""]
        lines += [f"- {m.name}: {_code(reason(m))}" for m in _red(one)]
        lines += [f"- note: {_code(note)}" for note in one.notes]
        lines += [f"- {words}" for words in _testing(found)]
        lines += ["", "</details>"]
    for apart in found.apart:
        told = f"{apart.system}, {apart.script}, seed {apart.seed}: {apart.why}"
        lines += ["", f"{apart.side} only: {_code(told)}"]
    if found.rules:
        lines += ["", *(f"- {rule.state}: {_code(rule.words)}" for rule in found.rules)]
    return "\n".join(lines) + "\n"


def _grid(measures: Sequence[Measure]) -> Iterator[str]:
    yield "| | BASE | NEW | on these scripts | beyond them |"
    yield "| --- | ---: | ---: | --- | --- |"
    for measure in measures:
        row = _row(measure)
        label = f"{row.name} {_code(measure.family)}" if measure.family else row.name
        here = f"**{row.here}**" if measure.red else row.here
        yield f"| {label} | {row.base} | {row.new} | {here} | {row.beyond} |"


# ---------------------------------------------------------------- annotations


def workflow_commands(found: Comparison) -> Iterator[str]:
    """Workflow commands of GitHub: an error for each thing that is worse, else a warning or notice."""
    told = 0
    for one in found.versus:
        for measure in _red(one):
            told += 1
            if told <= _SHOWN:
                yield _command("error", f"{one.new}: {measure.name} is worse", reason(measure))
    for rule in found.rules:
        if rule.state == "broken":
            told += 1
            if told <= _SHOWN:
                yield _command("error", f"steeltrap: {rule.rule}", clean(rule.words))
    if found.unjudged:
        yield _command(
            "warning", "steeltrap cannot judge", "\n".join(map(clean, found.unjudged[:_SHOWN]))
        )
    if not found.exit_code:
        yield _command("notice", "steeltrap", headline(found))


def _command(kind: str, title: str, text: str) -> str:
    """One workflow command; https://docs.github.com/actions, 'Workflow commands'."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    name = clean(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={name}::{escaped}"
