"""`steeltrap script make`, `show` and `check`."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steeltrap.harness import values
from steeltrap.harness.script import (
    Audit,
    Change,
    Erasure,
    Gauge,
    Header,
    Pause,
    Probe,
    Script,
    ScriptError,
    Step,
    Turn,
    read_steps,
)
from steeltrap.harness.wording import expected_words, history_words, op_words, unit_words

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["check", "make", "show", "table"]

_LONGEST: Final = 280
"""Characters of a sentence that are shown; pastes are far longer."""
_KINDS: Final = (Turn, Probe, Audit, Gauge, Pause, Erasure)
_ROWS: Final = 200
"""Rows that are laid out at once, so that a long script is shown as it is read."""


def make(asked: Sequence[str], out: Path, console: Console) -> None:
    """Write the script that the overrides ask for.

    Raises:
        SettingsError, ScriptError: as the settings say.
    """
    from steeltrap.harness.settings import SettingsError, cells

    made = cells(asked)
    if len(made) != 1:
        raise SettingsError("script make writes one script: give one script and one seed")
    _write(made[0].script(), out, console)


def check(path: Path, out: Path | None, console: Console) -> None:
    """Validate a script that somebody wrote; with `out` write it there with its truth.

    Raises:
        ScriptError: the first thing that is wrong, with line and field.
    """
    from steeltrap.workloads.check import check as checked

    script = checked(path)
    if out:
        _write(script, out, console)
    else:
        _say(f"{path}: nothing is wrong; {_summary(script, script.sha256())}", console)


def show(path: Path, console: Console) -> None:
    """Print a script step by step: op, sentence and truth side by side.

    Raises:
        ScriptError: it cannot be read.
    """
    parts = read_steps(path)
    header = next(parts)
    assert isinstance(header, Header)
    console.print(
        f"{header.name}, seed {header.seed}; authority: {' > '.join(header.authority)}; "
        f"bound: {header.alpha:g} x true tokens + {header.constant_tokens}",
        highlight=False,
        markup=False,
    )
    steps = (part for part in parts if not isinstance(part, Header))
    first = True
    while rows := list(itertools.islice(steps, _ROWS)):
        table(rows, console, header=first)
        first = False


def _write(script: Script, out: Path, console: Console) -> None:
    try:
        sha256 = script.write(out)
    except OSError as error:
        with suppress(OSError):
            out.with_name(out.name + ".part").unlink()  # half of it, as on a full disk
        raise ScriptError(f"{out}: cannot be written ({error.strerror})") from None
    _say(f"{out}: {_summary(script, sha256)}", console)


def _say(words: str, console: Console) -> None:
    """A line that stays one line in a file or a pipe."""
    console.print(words, highlight=False, markup=False, soft_wrap=True)


def _summary(script: Script, sha256: str) -> str:
    counts = Counter(type(step) for step in script.steps)
    steps = ", ".join(f"{counts[kind]} {kind.__name__.lower()}s" for kind in _KINDS)
    return f"{script.header.name}, seed {script.header.seed}: {steps}; sha256 {sha256}"


# ---------------------------------------------------------------- step by step


def table(steps: Iterable[Step], console: Console, *, header: bool) -> None:
    """Print steps: what happens, how it is said, what is true."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_header=header, show_edge=False, pad_edge=False,
                  collapse_padding=True, expand=True)  # fmt: skip
    table.add_column("step", width=6, no_wrap=True)
    for name, ratio in (("op", 3), ("sentence", 4), ("truth", 3)):
        table.add_column(name, ratio=ratio, overflow="fold")
    for step in steps:
        table.add_row(*(Text(cell) for cell in (step.id, _op(step), _sentence(step), _truth(step))))
    console.print(table)


def _op(step: Step) -> str:
    match step:
        case Turn():
            return "\n".join(f"{op.op} {op_words(op)}".rstrip() for op in step.ops)
        case Probe():
            asked = f"ask {step.ask}" + (f" {step.of}" if step.of else "")
            return f"{asked}: {unit_words(step.unit)}" if step.unit else asked
        case Gauge():
            return "gauge, item by item" if step.full else "gauge"
        case Audit():
            return f"audit: {unit_words(step.unit)}"
        case Pause():
            return "pause"
        case Erasure():
            return (
                f"erase: {unit_words(step.unit) if step.unit else 'everything of ' + step.tenant}"
            )


def _sentence(step: Step) -> str:
    text = step.text if isinstance(step, Turn | Probe | Audit) else ""
    if len(text) > _LONGEST:
        return f"{text[:_LONGEST]}… ({len(text):,} characters)"
    return text


def _truth(step: Step) -> str:
    lines = [_change(change) for change in step.changes]
    if step.unless:
        lines.append(f"not there in {', '.join(step.unless)}")
    match step:
        case Probe() if step.expect:
            lag = f", lag {step.lag}" if step.lag is not None else ""
            lines.append(f"expected: {expected_words(step.expect)}{lag}")
            if step.swap:
                lines.append(f"in {step.swap.twin} it is asked instead: {step.swap.text}")
        case Probe():
            lines.append(f"evidence: {', '.join(step.evidence)}" if step.evidence else "")
        case Gauge():
            lines.append("{} units, {} tokens".format(*step.footprint))
        case Audit():
            lines.append(f"history: {history_words(step.history)}")
    return "\n".join(lines)


def _change(change: Change) -> str:
    value = values.display(change.value) if change.value else "nothing is set"
    how = f" ({change.cause}, hop {change.hop})" if change.hop else f" ({change.cause})"
    return f"{unit_words(change.unit)} = {value}{how}"
