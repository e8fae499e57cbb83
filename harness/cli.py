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
                        or any class, as system=mypackage.memory:MyMemory
  system.KEY=VALUE      a setting of it, as system.window_turns=20; +system.KEY=VALUE where
                        the system is another package's
  script=NAME           adversarial (all families mixed), figure-1, file with script.path=FILE,
                        public data with script.path=FILE|FOLDER (longmemeval, locomo, beam,
                        memoryagentbench, halumem), or one family alone:
{families}
  script.turns=N        length of a script that is made
  script.families.F=W   weight of family F in adversarial; 0 leaves it out
  seed=N                of the script; seed=range(0,5) runs five
  experiment=NAME       a set of runs: {experiments}

how it is asked and judged
  limit=N               at most so many items are served to a query (10)
  reader=NAME           oracle (never misreads) or top1 (takes the first item at its word)
  embedder=NAME         wordllama, or minilm{minilm}
  twins=0               leaves out the twin runs, by which C6 is judged from outside

where
  runs=FOLDER           run folders are made below it (runs)
  name=NAME             folder of this experiment below that
  include=NAME          writes figures, tables and a page into this folder of the experiment
  install=true          makes the environments that systems need, where they are missing
  fresh=true            runs again what is finished; otherwise it is only reported

A run that was stopped goes on where it was when the same command is given again.
"""


_SHRINK_HELP: Final = """\
Finds the shortest conversation that still shows a violation of a run, prints it with what is true
beside it, and writes it as a script that belongs into the repository of whoever makes the memory.

  steeltrap shrink runs/main/vector-adversarial-0-1b9f03c2 exposed-history
  steeltrap shrink script.jsonl stale-read system=vector system.capacity_turns=100

RUN is a run folder, or a script file with the system that it is run on.
VIOLATION is a name, NAME@UNIT for that of one unit, or the number of a line of violations.jsonl.

  out=FILE              where the script goes; by default below the run, shrunk/NAME.jsonl
  budget_s=N            no candidate is tried after so many seconds (60; 0: no end)
  budget_runs=N         so many candidates are tried at most
  seed=N                tries in another order (0)
  repeats=N share=P     for systems that vary: a candidate counts where it shows the violation in
                        the share P of N runs (repeats=5 share=0.8)
  fresh=true            makes the memory anew for each candidate, and does not open one again

The same command goes on where it was stopped. What takes room takes many turns, so where more than
four are needed fewer items may be served, or less be kept; the script then says so.
"""

_HUNT_HELP: Final = """\
Makes up conversations, runs them, and shrinks each kind of violation that it finds.

  steeltrap hunt system=mem0
  steeltrap hunt system=vector name=resurrection budget_s=300

  system=NAME           a memory, with settings as in `run`
  name=NAME             stops at this violation; several by commas
  budget_s=N            looks for so long, and then shrinks each for half as long at most (120)
  examples=N            so many conversations at most (1000)
  seed=N                makes up others (0)
  turns=N               length of a conversation at most (14)
  out=FOLDER            where the scripts go, one for each name (hunted/SYSTEM)
"""

_CHECK_HELP: Final = """\
Runs scripts on a memory, and ends with exit code 1 when one shows what it must not.

  steeltrap check tests/memory/*.jsonl system=mem0

  system=NAME           a memory, with settings as in `run`
  fail_on=NAME[,NAME]   the violations that count; by default those that a script was made to show
                        (by `shrink` or `hunt`), or else any

What could not be put to the test, as when steps fail, is unknown, and no pass: exit code 1 as well.
A script that cannot be read, or a memory that cannot be opened, ends with exit code 2.
"""


_REPORT_HELP: Final = """\
Makes what people take away from stored runs. Nothing is run.

  steeltrap report runs/main                        the tables, on the console
  steeltrap report runs/main --to paper             figures and tables, for a paper to include
  steeltrap report runs/main --html main.html       one page to look at, without server or network

The same runs give the same files.
"""

_COLUMNS_HELP: Final = """\
Writes the steps of finished runs to one file, a row a step: what was done, what it took, what was
served, and which violations it showed. Nothing is run.

  steeltrap columns runs/main --to main.parquet
  steeltrap columns runs/main/vector-adversarial-0-1b9f03c2 --to vector.csv

In a notebook: from steeltrap.harness.columns import frame; frame("runs/main")

A unit stands last in a column's name, as in served_tokens; what a kind of step does not have is
empty. Where models were asked there are columns for each phase, as ingest_calls.
"""

_COMPARE_HELP: Final = """\
Says whether NEW is worse than BASE: run folders, or baselines that `steeltrap baseline` wrote.

  steeltrap compare runs/before runs/after
  steeltrap compare baseline.json runs/main --fail-on 'C1>0.02, p95_ms>+20%'

Runs are paired by system, script and seed; reader, limit, model and embedder must agree, and what
else differs is named. One system on each side, by different names, are compared with each other.

On the scripts that both ran, a system that does the same each time is worse where any condition,
name of a violation or recall is; one that varies by itself needs several runs a side (model.seed=
0,1,2, or the same run in folders of its own), and is worse where a test over them says so.

RULES say otherwise what counts, separated by commas:
  C1>0.02               the rate of the new runs is above 0.02; C1@flip-flop of that family
  C1>+0.01 p95_ms>+20%  it rose by more than that over the old ones
  recall<0.9            it is below; recall<-0.02: it fell by more than that
  resurrection>0        that violation shows at all
  C1                    it is worse, as without rules
Metrics: recall, evidence_recall, served_tokens, prompt_tokens, footprint, growth, failed, cost_usd,
p50_ms, p95_ms, ingest_p50_ms, ingest_p95_ms.

Ends with 0 where nothing is worse, 1 where something is, and 2 where that cannot be judged: nothing
in common, a run without its counterpart, or a condition that can no longer be seen. What is
certainly worse outweighs what cannot be judged.
"""


_LOAD_HELP: Final = """\
Puts an open load to a memory: many tenants, each operation at its time, whoever is still waiting.

  steeltrap load system=flat
  steeltrap load system=relational rate=50,100,200 seconds=20 tenants=16
  steeltrap load system=gem faults=some

  system=NAME           a memory, with settings as in `run`
  rate=N[,N]            operations a second; by default doubled until the bound breaks, and then
                        what lies between, which finds the knee
  seconds=N             how long they keep coming at each rate (10)
  tenants=N             that tell and ask at once (8)
  writes=SHARE          of the operations (0.5)
  traced=SHARE          of the writes that are looked for until they can be read (0.2)
  arrivals=NAME         poisson, or constant: at equal distances
  threads=N             that ask (16; 1 where the system does not claim that several may)
  bound_ms=N            what the 99th percentile has to keep (500)
  warm_s=N patience_s=N left out of the histograms at the beginning (0.5); waited for at the end (30)
  seed=N                another load of the same kind (0)
  fresh=true            measures again what was measured

Latency counts from when an operation was meant to start. No value is written twice, so each answer
is held against every order of the operations that is possible: what is lost, doubled, stale or
another tenant's is named. The same command goes on at the rate where it was stopped.
"""

_JUDGING: Final = (["check"], ["compare"])
"""Commands whose exit code 1 is a verdict."""


_ANSWER_HELP: Final = """\
Has a model answer the questions of public data from what each memory served. No memory is run.

  steeltrap run experiment=locomo script.path=locomo10.json
  steeltrap answer runs/locomo model=gpt-4o-mini budget_tokens=2000

  model=NAME            the reader; its key and address come from the usual environment variables
  model=replay          recorded answers alone, without a network; of=NAME says whose
  provider=NAME         openai, anthropic, or compatible: OpenAI's dialect at base_url=ADDRESS
  prompt=NAME           plain (ours), or after a benchmark's own reader: longmemeval, locomo,
                        memoryagentbench
  budget_tokens=N k=N   so many tokens, or items, of what was served at most
  max_tokens=N          of an answer (512)
  spend_tokens=N spend_usd=N
                        the command stops when so much is spent, and goes on when given again
  concurrency=N retries=N timeout_s=N recordings=FOLDER

Answers stand in answers.jsonl of each run. What failed is an error, no abstention, and is asked
again by the same command. The same prompt is paid once, in whatever run it occurs.
"""

_JUDGE_HELP: Final = """\
Judges stored answers, and prints how many are right. Neither memories nor readers are asked.

  steeltrap judge runs/locomo model=gpt-4o
  steeltrap judge runs/locomo judge=f1
  steeltrap judge runs/locomo --agree gpt-4o f1
  steeltrap judge runs/locomo model=gpt-4o against=flat

  judge=NAME            model (the default), or without one: substring, exact, f1
  model=NAME            the judge's model, with settings as in `answer`; temperature is 0
  name=NAME             of the file of judgements; by default the model's name or the judge's
  right_from=SHARE      score from which points or F1 count as right (0.5)
  against=SYSTEM        compare each answer with that system's, in both orders: wins, losses, ties
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
    _add_search(commands)
    load = _told(
        commands, "load", "many tenants at once: latency, lag, and what was lost", _LOAD_HELP
    )
    load.usage = "steeltrap load system=NAME [rate=N,...] [KEY=VALUE ...]"
    load.add_argument("settings", nargs="+", metavar="KEY=VALUE", help=argparse.SUPPRESS)
    _add_systems(commands)
    _add_reports(commands)
    _add_compare(commands)
    _add_answers(commands)
    new = commands.add_parser("new", help="begin a package of your own that adapts a memory")
    new.add_argument("name", metavar="NAME", help="of the memory, as my-memory")
    new.add_argument("--to", type=Path, metavar="FOLDER", help="by default a new folder NAME")
    return top


def _add_reports(commands: Any) -> None:
    report = _told(commands, "report", "figures, tables and a page of stored runs", _REPORT_HELP)
    report.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders, or folders of them")  # fmt: skip
    report.add_argument("--to", type=Path, metavar="DIR", help="write figures and tables there")
    report.add_argument("--html", type=Path, metavar="FILE", help="write the page there")
    columns = _told(commands, "columns", "stored runs as one table, a row a step", _COLUMNS_HELP)
    columns.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders, or folders of them")  # fmt: skip
    columns.add_argument("--to", type=Path, required=True, metavar="FILE", help=".parquet or .csv")
    serve = commands.add_parser("serve", help="look at stored runs in a browser, on this machine alone")  # fmt: skip
    serve.add_argument("folder", type=Path, metavar="FOLDER", help="a folder of runs")
    serve.add_argument("--port", type=int, default=0, help="by default any free one")


def _add_compare(commands: Any) -> None:
    compare = _told(commands, "compare", "is a new run worse than an old one? exit code 1 if so", _COMPARE_HELP)  # fmt: skip
    compare.add_argument("base", type=Path, metavar="BASE")
    compare.add_argument("new", type=Path, metavar="NEW")
    compare.add_argument("--fail-on", default="", metavar="RULES", help="what counts as worse, as 'C1>0.02, p95_ms>+20%%'")  # fmt: skip
    for form, words in (("markdown", "a comment for a pull request"), ("junit", "JUnit XML"), ("json", "every number")):  # fmt: skip
        compare.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write {words} there")
    compare.add_argument("--github", action="store_true", help="print annotations for GitHub")
    baseline = commands.add_parser("baseline", help="write runs into a small file to compare with")
    baseline.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    baseline.add_argument("--to", type=Path, required=True, metavar="FILE")


def _add_answers(commands: Any) -> None:
    answer = _told(commands, "answer", "a model answers public questions from what was served", _ANSWER_HELP)  # fmt: skip
    answer.usage = "steeltrap answer RUN [RUN ...] model=NAME [KEY=VALUE ...]"
    answer.add_argument("words", nargs="+", metavar="RUN", help=argparse.SUPPRESS)
    judge = _told(commands, "judge", "are these answers right?", _JUDGE_HELP)
    judge.usage = "steeltrap judge RUN [RUN ...] [KEY=VALUE ...] [--agree NAME NAME]"
    judge.add_argument("words", nargs="+", metavar="RUN", help=argparse.SUPPRESS)
    judge.add_argument("--agree", nargs=2, metavar="NAME", help="how far two judges agree, and where not")  # fmt: skip


def _add_search(commands: Any) -> None:
    shrink = _told(commands, "shrink", "the shortest conversation that shows a violation", _SHRINK_HELP)  # fmt: skip
    shrink.usage = "steeltrap shrink RUN VIOLATION [KEY=VALUE ...]"
    shrink.add_argument("run", type=Path, metavar="RUN", help=argparse.SUPPRESS)
    shrink.add_argument("violation", metavar="VIOLATION", help=argparse.SUPPRESS)
    shrink.add_argument("settings", nargs="*", metavar="KEY=VALUE", help=argparse.SUPPRESS)
    hunt = _told(commands, "hunt", "look for violations, and shrink what is found", _HUNT_HELP)
    hunt.usage = "steeltrap hunt system=NAME [KEY=VALUE ...]"
    hunt.add_argument("settings", nargs="+", metavar="KEY=VALUE", help=argparse.SUPPRESS)
    check = _told(commands, "check", "does a memory hold on a script? exit code 1 if not", _CHECK_HELP)  # fmt: skip
    check.usage = "steeltrap check FILE [FILE ...] system=NAME [KEY=VALUE ...]"
    check.add_argument("words", nargs="+", metavar="FILE", help=argparse.SUPPRESS)


def _told(commands: Any, name: str, line: str, words: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=line, description=words, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    return made


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
    from steeltrap.harness.settings import options
    from steeltrap.workloads.families import EVERY

    column = " " * 24
    return _RUN_HELP.format(
        families=textwrap.fill(
            ", ".join(EVERY), 92, initial_indent=column, subsequent_indent=column,
            break_on_hyphens=False,
        ),
        experiments=textwrap.fill(
            ", ".join(options("experiment")), 92, subsequent_indent=column,
            initial_indent=column + " " * len("a set of runs: "), break_on_hyphens=False,
        ).lstrip(),
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
    does not exist; for `check` and `compare`, also what could not be run, or read.
    """
    from steeltrap.harness.settings import SettingsError
    from steeltrap.harness.shrink import ShrinkError

    words = list(sys.argv[1:] if arguments is None else arguments)
    # argparse wants what is optional first; Hydra's users write `-m` anywhere
    try:
        _refuse_dashes(words)
        asked = parser().parse_args(sorted(words, key=lambda word: "=" in word))
    except SettingsError as error:
        return _say(error, 2)
    # for `check` and `compare`, 1 says that a memory did not hold, or is worse
    trouble = 2 if words[:1] in _JUDGING else 1
    try:
        return _dispatch(asked)
    except SettingsError as error:
        return _say(error, 2)
    except (ScriptError, HistoryError, RecordError, StoreError, RunStopped, ShrinkError) as error:
        return _say(error, trouble)
    except SystemExit as error:
        # only somebody else's code does that here, and whatever it says, nothing is done
        return _say(f"a memory, or what it imports, called sys.exit({error.code})", trouble)
    except KeyboardInterrupt:
        return _say("stopped; give the same command again to go on from here", 130)
    except BrokenPipeError:
        # whoever was reading has gone, as `head` does; nothing is left to say
        sys.stderr.close()
        return 2 if words[:1] in _JUDGING else 0  # with pipefail, 0 would be a verdict
    except OSError as error:
        return _say(
            f"{error.filename or 'a file'}: {error.strerror}; what was done is kept", trouble
        )


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


def _consoles() -> tuple[Console, Console]:
    """Standard output and error; where nobody reads any more, that is said as it is."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich calls this while it handles the BrokenPipeError

    return Plain(highlight=False, soft_wrap=False, emoji=False), Plain(stderr=True, emoji=False)


def _dispatch(asked: argparse.Namespace) -> int:
    out, aside = _consoles()
    match asked.command:
        case "run":
            from steeltrap.harness.commands.run import run

            run(asked.settings, out, aside)
        case "score":
            from steeltrap.harness.commands.run import score

            score(asked.run, out)
        case "script":
            _script(asked, out)
        case "validate":
            return _validate(asked, out)
        case "systems":
            return _systems(asked, out)
        case "load":
            from steeltrap.harness.commands.load import load

            return 0 if load(asked.settings, out, aside) else 130
        case "shrink" | "hunt" | "check":
            return _search(asked, out, aside)
        case "report" | "columns" | "serve" | "new":
            _take_away(asked, out, aside)
        case "compare" | "baseline":
            return _compare(asked, out)
        case "answer" | "judge":
            return _answers(asked, out, aside)
    return 0


def _answers(asked: argparse.Namespace, out: Console, aside: Console) -> int:
    """Readers and judges over stored runs."""
    from steeltrap.harness.commands import answers

    if asked.command == "answer":
        return answers.answers(asked.words, out, aside)
    if asked.agree:
        one, two = asked.agree
        return answers.agree(asked.words, one, two, out)
    return answers.judgements(asked.words, out, aside)


def _take_away(asked: argparse.Namespace, out: Console, aside: Console) -> None:
    """The commands that write something for people, and judge nothing."""
    match asked.command:
        case "report":
            from steeltrap.harness.commands.report import report

            report(asked.runs, out, aside, to=asked.to, html=asked.html)
        case "columns":
            from steeltrap.harness.commands.columns import columns

            columns(asked.runs, asked.to, out, aside)
        case "serve":
            from steeltrap.harness.commands.serve import serve

            serve(asked.folder, out, port=asked.port)
        case _:
            from steeltrap.harness.commands.new import new

            new(asked.name, asked.to, out)


def _compare(asked: argparse.Namespace, out: Console) -> int:
    from steeltrap.harness.commands import compare

    if asked.command == "baseline":
        compare.baseline(asked.runs, asked.to, out)
        return 0
    return compare.compare(
        asked.base, asked.new, out, fail_on=asked.fail_on, markdown=asked.markdown,
        junit=asked.junit, json=asked.json, github=asked.github,
    )  # fmt: skip


def _search(asked: argparse.Namespace, out: Console, aside: Console) -> int:
    """The commands that look for violations."""
    from steeltrap.harness.commands import hunt, shrink

    match asked.command:
        case "shrink":
            done = shrink.shrink(asked.run, asked.violation, asked.settings, out, aside)
        case "hunt":
            done = hunt.hunt(asked.settings, out, aside)
        case _:
            files = [Path(word) for word in asked.words if "=" not in word]
            done = shrink.check(files, [word for word in asked.words if "=" in word], out)
    return 0 if done else 1


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
