"""What the pages show of the registries: made anew with every build, so that it cannot go stale.

A page asks for a part by a comment, `<!-- made: ops -->`; `PARTS` has all of them. What a registry
names and nobody has described stops the build.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import inspect
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from unittest import mock

import dialogue
import public
import table1

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness import settings, values
from steeltrap.harness.checks import score
from steeltrap.harness.checks.sheet import CENTRAL
from steeltrap.harness.cli import parser
from steeltrap.harness.driver import Driver
from steeltrap.harness.memory import CAPABILITIES, capabilities
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Outcome
from steeltrap.harness.script import ABOUTS, ASKS, OPS, Audit, Script, Step
from steeltrap.harness.verdict import BEYOND, CONDITIONS, NAMES
from steeltrap.reports.explain import ASKS as ASKED
from steeltrap.reports.explain import EXPLAINED
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import ALONE, EVERY, FAMILIES

__all__ = ["PARTS", "MissingWords", "forget", "prepare"]

CONFIGS: Final = Path(str(importlib.resources.files("steeltrap.configs")))
COLUMNS: Final = 80
EXAMPLES: Final = Path(__file__).parent / "examples"


class MissingWords(LookupError):
    """A registry names something that has no description here, or the other way round."""


def _described(known: Iterable[str], words: Mapping[str, Any], what: str) -> None:
    if differing := set(known) ^ set(words):
        raise MissingWords(f"{what}: {', '.join(sorted(differing))}: known or described, not both")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _first(words: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((words or "").strip().split("\n\n")[0].split())


# ---------------------------------------------------------------- the definition

_OPS: Final = {
    "tell": ("a first value is said", "it holds"),
    "revise": ("a new value takes the old one's place", "the new one holds, the old one is history"),
    "revert": ("an earlier value comes back, rightly", "it holds again, as a new entry"),
    "correct": ("what was said before was never right", "the new one holds, the old one was never true"),
    "retract": ("a value is withdrawn", "nothing is set"),
    "restate": ("the same value again, in other words", "nothing changes"),
    "echo": ("an old value is mentioned, quoted, denied or asked about", "nothing changes"),
    "rumour": ("a source of less authority says otherwise", "nothing changes"),
    "depend": ("a rule ties one unit to another", "from now on the one follows the other"),
    "associate": ("two topics are related, and independent", "updates do not cross"),
    "expire": ("a value holds until a stated time", "after it, nothing is set"),
    "noise": ("small talk, long pastes, other people's facts", "nothing changes"),
    "instruct": ("remembered text orders another value to be taken for true", "nothing changes"),
}  # fmt: skip
_ASKS: Final = {
    "current": "What holds now?",
    "previous": "What held before the last change?",
    "as-of": "What held on a given day?",
    "rank": "A neutral question about several like units; only their order and scores are looked at.",
    "evidence": "Which turns hold the answer? Used with public data, where no truth of values is known.",
}  # fmt: skip
_TWINS: Final = {
    "reading": ("the other of two like units is read", "what reading does (C6)"),
    "asking": ("another tenant asks about something else", "a leak of what was asked"),
    "telling": ("another tenant does not say something", "a leak of what was said"),
    "existing": ("what is erased here never was", "a trace of it"),
    "observing": ("nothing is measured on the way", "what measuring does (observer-effect)"),
}
_VALUES: Final = values.EXAMPLE


def ops() -> str:
    """Every op, what is said and what is true after it."""
    _described(OPS, _OPS, "ops")
    return _table(
        ("op", "what happens", "what is true then"), ([f"`{op}`", *_OPS[op]] for op in OPS)
    )


def asks() -> str:
    """Every kind of question."""
    _described(ASKS, _ASKS, "questions")
    return _table(("ask", "the question"), ([f"`{ask}`", _ASKS[ask]] for ask in ASKS))


def twins() -> str:
    """Every kind of twin."""
    _described(ABOUTS, _TWINS, "twins")
    return _table(
        ("about", "in the twin", "so whatever differs is"),
        ([f"`{about}`", *_TWINS[about]] for about in ABOUTS),
    )


def value_kinds() -> str:
    """Every kind of value, as it is written and as it is read out."""
    literals = {kind: f"{kind}:{_VALUES[kind]}" for kind in values.KINDS}
    return _table(
        ("kind", "written", "said"),
        ([f"`{kind}`", f"`{lit}`", values.display(lit)] for kind, lit in literals.items()),
    )


def families(alone: str = "") -> str:
    """The families, with the violations that mutants show on each."""
    chosen = ALONE if alone else FAMILIES
    rows = []
    for name, family in chosen.items():
        proved = dict.fromkeys(
            raised for m in MUTANTS.values() if name in m.families for raised in m.raises
        )
        links = ", ".join(f"[{raised}](violations.md#{raised})" for raised in proved)
        rows.append([f"`{name}`", _first(inspect.getdoc(family)), links or "-"])
    return _table(("family", "what happens", "proved here by mutants"), rows)


def conditions() -> str:
    """The six conditions and what lies beyond, with the names of their violations."""
    rows = []
    for condition, names in NAMES.items():
        title, _, asked = ASKED[condition].partition(": ")
        links = ", ".join(f"[{name}](violations.md#{name})" for name in names)
        rows.append([f"**{condition}** {title if condition != BEYOND else ''}", asked, links])
    return _table(("condition", "it asks", "violations"), rows)


def centre() -> str:
    """What must have been put to the test before a condition can be said to have held."""
    rows = (
        [f"**{c}**", ", ".join(f"`{name}`" for name in CENTRAL[c]) or "any of its names"]
        for c in CONDITIONS
    )
    return _table(("condition", "held only if this was put to the test"), rows)


# ---------------------------------------------------------------- violations


def asked(condition: str) -> str:
    """What a condition asks."""
    words = ASKED[condition].partition(": ")[2]
    return f"*{words[0].upper()}{words[1:]}*"


@functools.cache
def violation(name: str) -> str:
    """The sentence and the dialogue of a violation."""
    return f"{EXPLAINED[name]}\n\n{talk(name)}"


@functools.cache
def talk(stem: str) -> str:
    """A dialogue, played on its mutant now."""
    chosen = dialogue.CHOSEN[stem]
    played = dialogue.play(MUTANTS[chosen.mutant], Script.read(dialogue.FOLDER / f"{stem}.jsonl"))
    shown = {found.name for found in played.violations}
    if shown != {chosen.name}:
        raise MissingWords(f"dialogue {stem}: shows {', '.join(sorted(shown)) or 'nothing'}")
    return (
        f"{dialogue.html(played)}\n"
        f'<p class="source">Played on the mutant <code>{chosen.mutant}</code>: '
        f"{_first(MUTANTS[chosen.mutant].__doc__)}</p>\n"
    )


def mutants(name: str) -> str:
    """The mutants that prove the check of a violation."""
    proving = [m for m in MUTANTS.values() if name in m.raises]
    lines = [f"- `{m.name}`: {_first(m.__doc__)}" for m in proving]
    title = f"{len(proving)} mutant{'s' if len(proving) != 1 else ''} prove{'s' if len(proving) == 1 else ''} this check"  # fmt: skip
    return f'??? note "{title}"\n\n' + "\n".join(f"    {line}" for line in lines) + "\n"


def numbers(what: str) -> str:
    """A count, in the middle of a sentence."""
    counts = {
        "mutants": len(MUTANTS),
        "families": len(EVERY),
        "mixed": len(FAMILIES),
        "names": sum(map(len, NAMES.values())),
        "ops": len(OPS),
    }
    return str(counts[what])


# ---------------------------------------------------------------- what can be seen


def capability_table() -> str:
    """Every capability and the method that gives it."""
    rows = []
    for name, protocol in CAPABILITIES.items():
        methods = [
            m for m in vars(protocol) if not m.startswith("_") and callable(vars(protocol)[m])
        ]
        rows.append([f"`{name}`", ", ".join(f"`{m}`" for m in methods), _first(protocol.__doc__)])
    return _table(("capability", "method", "meaning"), rows)


_METHODS: Final = {
    "list": "active", "history": "history", "salience": "salience", "maintain": "maintain",
    "recover": "recover", "erase": "erase", "fork": "fork",
}  # fmt: skip
_WORDS: Final = {"held": "held", "unknown": "**unknown**", "violated": "violated"}


def _lived(script: Script, without: Sequence[str] = ()) -> Outcome:
    """The outcome of the ideal memory, and of one that hides some of what it is."""
    hidden = dict.fromkeys(_METHODS[name] for name in without)
    memory = type("Hiding", (Ideal,), hidden)()
    memory.told(script)
    with tempfile.TemporaryDirectory() as folder:
        memory.open(Path(folder))
        driver = Driver(memory, 10, None)
        events = [driver.do(i, step) for i, step in enumerate(script.steps)]
        memory.close()
    return score(script, events, capabilities=capabilities(memory), reader=Oracle()).outcome


def blind() -> str:
    """What becomes of each condition when a memory that is right hides what it is."""
    hidden = {f"no `{name}`": (name,) for name in _METHODS} | {
        "the five methods alone": (*_METHODS,)
    }
    script = compose(ScriptSettings(name="adversarial", turns=250), seed=0)
    whole = _lived(script)
    left = {"everything": whole} | {words: _lived(script, gone) for words, gone in hidden.items()}
    every = (*CONDITIONS, BEYOND)
    verdicts = ([words, *(_cell(found, c) for c in every)] for words, found in left.items())
    names = ([words, _unseen(left[words], whole) or "all of them are"] for words in hidden)
    return (
        _table(("the memory shows", *every), verdicts)
        + "\n\nAnd by name:\n\n"
        + _table(("the memory shows", "not seen any more"), names)
    )


def _cell(found: Outcome, condition: str) -> str:
    verdict = found.verdicts[condition]
    if verdict.violations:
        raise MissingWords(f"the ideal memory shows {condition} when it hides something")
    return f"{_WORDS[verdict.validity]}<br>{verdict.opportunities}"


def _unseen(found: Outcome, whole: Outcome) -> str:
    """The violations that were put to the test, and are not where something is hidden."""
    lost = [
        f"[{name}](violations.md#{name})"
        for condition, verdict in found.verdicts.items()
        for name, tally in verdict.names.items()
        if whole.verdicts[condition].names[name].opportunities and not tally.opportunities
    ]
    return ", ".join(lost)


# ---------------------------------------------------------------- settings and commands


def experiments() -> str:
    """Every experiment, by what its file says first, and what it runs."""
    rows = []
    for path in sorted((CONFIGS / "experiment").glob("*.yaml")):
        text = path.read_text()
        comments = re.findall(r"^# (?!@)(.*)$", text, re.MULTILINE)
        sweep = re.findall(r"^  - (.+?)(?:\s+#.*)?$", text.split("sweep:")[-1], re.MULTILINE)
        runs = " ".join(f"`{line}`" for line in sweep if "override" not in line)
        rows.append([f"`experiment={path.stem}`", " ".join(comments), runs])
    return _table(("name", "what it is", "it runs over"), rows)


def options(group: str) -> str:
    """What can be chosen in a group, with the line that its file begins with."""
    rows = []
    for path in sorted((CONFIGS / group).glob("*.yaml")):
        first = path.read_text().split("\n", 1)[0]
        about = first.removeprefix("# ") if first.startswith("# ") else ""
        rows.append([f"`{group}={path.stem}`", about])
    return _table(("setting", "meaning"), rows)


def config(name: str) -> str:
    """A settings file as it is."""
    return f"```yaml\n{(CONFIGS / f'{name}.yaml').read_text().strip()}\n```"


def systems() -> str:
    """Every system that can be run."""
    ours = {path.stem for path in (CONFIGS / "system").glob("*.yaml")}
    rows = (
        [f"`{s.name}`", s.about, "own environment" if s.environment else "in process"]
        for s in settings.described()
        if s.name in ours  # not what happens to be installed beside it
    )
    return _table(("system", "what it is", "runs"), rows)


def commands() -> str:
    """The help of every command."""
    with mock.patch.dict(os.environ, {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"}):
        parts = list(_helps(parser(), "steeltrap"))
    return "\n\n".join(parts)


def _helps(one: Any, name: str) -> Iterator[str]:
    depth = "##" if name.count(" ") < 2 else "###"
    if name.count(" "):
        yield f"{depth} {name}"
    yield f"```text\n{one.format_help().rstrip()}\n```"
    for action in one._subparsers._actions if one._subparsers else ():
        for verb, below in (action.choices or {}).items() if isinstance(action.choices, dict) else ():  # fmt: skip
            yield from _helps(below, f"{name} {verb}")


# ---------------------------------------------------------------- what commands print


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where the commands of all pages run, one after another."""
    return tempfile.TemporaryDirectory(prefix="steeltrap-docs-")


@functools.cache
def _printed(command: str) -> str:
    """What a command prints, run once a build."""
    ours = f'steeltrap() {{ {shlex.quote(sys.executable)} -m steeltrap "$@"; }}'
    done = subprocess.run(
        ["bash", "-c", f"{ours}\n{command}"],
        cwd=_folder().name,
        env=os.environ | {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise MissingWords(f"{command}: ended with {done.returncode}: {done.stderr[-400:]}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n")


def prepare(pages: Iterable[str]) -> None:
    """Run the commands of all pages beforehand, two at a time."""
    asked = re.findall(r"<!-- made: (?:run|part .+? of) (.+?) -->", "\n".join(pages))
    _folder()  # one for all, before there are two threads
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_printed, dict.fromkeys(asked)))


def part(words: str) -> str:
    """One part of what a command prints: `TITLE of COMMAND`; the title begins its first line."""
    title, _, command = words.partition(" of ")
    blocks = re.split(r"\n\s*\n", _printed(command))
    found = [block for block in blocks if block.startswith(title)]
    if not found:
        heads = ", ".join(repr(block.split("\n", 1)[0]) for block in blocks)
        raise MissingWords(f"{shlex.quote(command)} prints no part '{title}', but {heads}")
    return f"```text\n{found[0]}\n```"


def run(command: str) -> str:
    """Run a command for the files that it writes; nothing is shown."""
    return _printed(command)[:0]


def section(words: str) -> str:
    """A section of a Markdown file that a command wrote: `HEADING of FILE`."""
    heading, _, file = words.partition(" of ")
    text = (Path(_folder().name) / file).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
    if not found:
        raise MissingWords(f"{file} has no section '{heading}'")
    return found[1].strip()


def code(words: str) -> str:
    """A file of `examples/`, or a region of it: `FILE` or `FILE REGION`."""
    file, _, region = words.partition(" ")
    text = (EXAMPLES / file).read_text()
    if region:
        found = re.search(
            rf"^ *# region {region}\n(.*?)^ *# endregion", text, re.DOTALL | re.MULTILINE
        )
        if not found:
            raise MissingWords(f"examples/{file} has no region '{region}'")
        text = found[1]
    text = re.sub(r" +# (noqa|fmt|type): .*", "", text)
    return f"```{Path(file).suffix[1:]}\n{textwrap.dedent(text).strip()}\n```"


def example_family() -> str:
    """The script of the family that a page builds."""
    from rich.console import Console

    from steeltrap.harness.commands.scripts import table

    second_thoughts = runpy.run_path(str(EXAMPLES / "family.py"))["second_thoughts"]

    chosen = ScriptSettings(name="second-thoughts", turns=16, families={"second-thoughts": 1.0})
    with mock.patch.dict(EVERY, {"second-thoughts": second_thoughts}):
        script = compose(chosen, seed=1)
    first = script.steps[0].changes[0].unit
    episode = [
        step for step in script.steps if not isinstance(step, Audit) and _is_about(step, first)
    ]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system=None)
    table(episode, console, header=True)
    lines = (line.rstrip() for line in console.export_text().splitlines())
    return "```text\n" + "\n".join(lines) + "\n```"


def _is_about(step: Step, unit: str) -> bool:
    return unit in (getattr(step, "unit", None), *(op.unit for op in getattr(step, "ops", ())))


def forget() -> None:
    """Forget the folder of the commands."""
    with contextlib.suppress(OSError):
        _folder().cleanup()
    _folder.cache_clear()
    _printed.cache_clear()


PARTS: Final[dict[str, Callable[..., str]]] = {
    "ops": ops,
    "asks": asks,
    "twins": twins,
    "values": value_kinds,
    "families": families,
    "conditions": conditions,
    "centre": centre,
    "asked": asked,
    "violation": violation,
    "talk": talk,
    "mutants": mutants,
    "number": numbers,
    "capabilities": capability_table,
    "blind": blind,
    "experiments": experiments,
    "options": options,
    "config": config,
    "systems": systems,
    "commands": commands,
    "part": part,
    "run": run,
    "code": code,
    "section": section,
    "example-family": example_family,
    "stored": public.stored,
    "figures": public.figures,
    "figure-runs": public.runs,
    "table1": table1.stored,
}
"""By the name by which a page asks for it; what follows the name is its argument."""
