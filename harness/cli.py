"""The command `steeltrap`."""

from __future__ import annotations

import argparse
import itertools
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import steeltrap
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.history import HistoryError
from steeltrap.harness.record import RecordError
from steeltrap.harness.script import ScriptError
from steeltrap.harness.store import StoreError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["main", "parser"]

_RUN_HELP: Final = """\
Runs memories through scripts and prints, for each, how often it broke the six conditions.

Settings are written KEY=VALUE, in the grammar of Hydra. Several values sweep:
  steeltrap run system=flat,vector,ideal script=adversarial 'seed=range(0,5)' -m

what is run
  system=NAME           a memory: `steeltrap systems` lists them; several by commas
  system.KEY=VALUE      a setting of it, as system.window_turns=20; +system.KEY=VALUE where
                        the system is another package's
  script=NAME           adversarial (all families mixed), figure-1, locomo, file with
                        script.path=FILE, or one family alone:
{families}
  script.turns=N        length of a script that is made
  script.families.F=W   weight of family F in adversarial; 0 leaves it out
  seed=N                of the script; seed=range(0,5) runs five
  experiment=NAME       a set of runs: main, figure-1, locomo

how it is asked and judged
  limit=N               at most so many items are served to a query (10)
  reader=NAME           oracle (never misreads) or top1 (takes the first item at its word)
  embedder=NAME         wordllama, or minilm{minilm}
  twins=0               leaves out the twin runs, by which C6 is judged from outside

where
  runs=FOLDER           run folders are made below it (runs)
  name=NAME             folder of this experiment below that
  fresh=true            runs again what is finished; otherwise it is only reported

A run that was stopped goes on where it was when the same command is given again.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="steeltrap", description="Can an AI agent's memory be trusted over a long life?"
    )
    top.add_argument("--version", action="version", version=f"steeltrap {steeltrap.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_script(commands)
    score = commands.add_parser("score", help="score stored runs again, without running them")
    score.add_argument("run", type=Path, help="a run folder, or a folder of them")
    validate = commands.add_parser("validate", help="prove the checks by mutants of a memory")
    validate.add_argument("--full", action="store_true", help="50 seeds instead of a handful")
    validate.add_argument("--seeds", type=int, metavar="N", help="so many seeds")
    _add_systems(commands)
    return top


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run memories through scripts and print the table",
        usage="steeltrap run [KEY=VALUE ...] [-m]",
        description=_run_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("settings", nargs="*", metavar="KEY=VALUE", help=argparse.SUPPRESS)
    run.add_argument(
        "-m", "--multirun", action="store_true", help="as in Hydra; sweeps are found without it"
    )


def _run_help() -> str:
    from steeltrap.adapters.embedders import minilm
    from steeltrap.workloads.families import EVERY

    column = " " * 24
    return _RUN_HELP.format(
        families=textwrap.fill(
            ", ".join(EVERY), 92, initial_indent=column, subsequent_indent=column,
            break_on_hyphens=False,
        ),
        minilm=" (needs the extra `minilm`)" if minilm.missing() else "",
    )  # fmt: skip


def _add_script(commands: Any) -> None:
    script = commands.add_parser("script", help="make, show or check a script")
    verbs = script.add_subparsers(dest="verb", required=True, metavar="make|show|check")
    make = verbs.add_parser("make", help="write a script: script=NAME seed=N out=FILE")
    make.add_argument("settings", nargs="+", metavar="KEY=VALUE", help="as in `run`, and out=FILE")
    show = verbs.add_parser("show", help="op, sentence and truth side by side")
    show.add_argument("file", type=Path)
    check = verbs.add_parser("check", help="validate a script that somebody wrote")
    check.add_argument("file", type=Path)
    check.add_argument("out", nargs="?", metavar="out=FILE", help="write it there with its truth")


def _add_systems(commands: Any) -> None:
    systems = commands.add_parser("systems", help="list, install and look after memories")
    verbs = systems.add_subparsers(dest="verb", metavar="list|install|doctor")
    verbs.add_parser("list", help="the memories that can be run, and where each of them runs")
    install = verbs.add_parser("install", help="make the environments that systems need")
    install.add_argument("names", nargs="+", metavar="NAME")
    doctor = verbs.add_parser("doctor", help="is a system's environment in order?")
    doctor.add_argument("settings", nargs="+", metavar="NAME", help="and settings as in `run`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code.

    0: done. 1: something was found wrong, or could not be read or written. 2: what was asked for
    does not exist.
    """
    from steeltrap.harness.settings import SettingsError

    words = list(sys.argv[1:] if arguments is None else arguments)
    # argparse wants what is optional first; Hydra's users write `-m` anywhere
    try:
        _refuse_dashes(words)
        asked = parser().parse_args(sorted(words, key=lambda word: "=" in word))
        return _dispatch(asked)
    except SettingsError as error:
        return _say(error, 2)
    except (ScriptError, HistoryError, RecordError, StoreError, RunStopped) as error:
        return _say(error, 1)
    except KeyboardInterrupt:
        return _say("stopped; give the same command again to go on from here", 130)
    except BrokenPipeError:
        # whoever was reading has gone, as `head` does; nothing is left to say
        sys.stderr.close()
        return 0
    except OSError as error:
        return _say(f"{error.filename or 'a file'}: {error.strerror}; what was done is kept", 1)


def _refuse_dashes(words: Sequence[str]) -> None:
    """`run --system flat` is a likely slip: settings are written without dashes."""
    from steeltrap.harness.settings import SettingsError

    if words[:1] != ["run"]:
        return
    for word, following in itertools.pairwise([*words, "VALUE"]):
        if word.startswith("--") and not {"--help", "--multirun"} & {word}:
            key, _, value = word[2:].partition("=")
            raise SettingsError(
                f"{word}: settings have no dashes; write {key}={value or following}"
            )


def _say(what: object, code: int) -> int:
    print(f"steeltrap: {what}", file=sys.stderr)  # noqa: T201
    return code


def _dispatch(asked: argparse.Namespace) -> int:
    from rich.console import Console

    out = Console(highlight=False, soft_wrap=False)
    match asked.command:
        case "run":
            from steeltrap.harness.commands.run import run

            run(asked.settings, out, Console(stderr=True))
        case "score":
            from steeltrap.harness.commands.run import score

            score(asked.run, out)
        case "script":
            _script(asked, out)
        case "validate":
            return _validate(asked, out)
        case "systems":
            return _systems(asked, out)
    return 0


def _systems(asked: argparse.Namespace, out: Console) -> int:
    from steeltrap.harness.commands import systems
    from steeltrap.harness.settings import cells, described

    match asked.verb:
        case "install":
            return 0 if systems.install(asked.names, described(), out) else 1
        case "doctor":
            name, *settings = asked.settings
            one = cells([f"system={name}", *settings])[0]
            system = next(each for each in described() if each.name == name)
            return 0 if systems.doctor(system, out, node=one.node, passes=one.passes) else 1
        case _:
            systems.listing(described(), out)
            return 0


def _script(asked: argparse.Namespace, out: Console) -> None:
    from steeltrap.harness.commands import scripts
    from steeltrap.harness.settings import SettingsError

    match asked.verb:
        case "make":
            targets = [word for word in asked.settings if word.startswith("out=")]
            if len(targets) != 1:
                raise SettingsError("script make needs out=FILE, once")
            settings = [word for word in asked.settings if word not in targets]
            scripts.make(settings, _file(targets[0]), out)
        case "show":
            scripts.show(asked.file, out)
        case "check":
            scripts.check(asked.file, _file(asked.out) if asked.out else None, out)


def _file(word: str) -> Path:
    return Path(word.removeprefix("out="))


def _validate(asked: argparse.Namespace, out: Console) -> int:
    from steeltrap.harness.commands import validate
    from steeltrap.harness.settings import SettingsError

    seeds = (50 if asked.full else 3) if asked.seeds is None else asked.seeds
    if seeds < 1:
        raise SettingsError(f"--seeds {seeds}: write a whole number, at least 1")
    return 0 if validate.run(seeds=seeds, console=out) else 1
