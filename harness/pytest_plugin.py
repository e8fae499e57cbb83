"""`pytest --steeltrap mypackage:MyMemory`: a memory judged as test items.

No test file is needed. There is an item for each rule of the adapter's contract
(`steeltrap::contract::begins-empty`), one for whether every step of the runs could be done
(`steeltrap::run::every-step`), and one for each named violation of each condition
(`steeltrap::C1::stale-read`). What could not be observed, or was not put to the test, is skipped
with the reason, and never passes.

Whoever has steeltrap installed loads this module in every run of pytest: it imports nothing else
of ours until it is asked for.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from steeltrap.harness.commands.trial import Trial
    from steeltrap.harness.conformance import Broken, Check

__all__: list[str] = []

NODE: Final = "steeltrap"
_TRIAL: Final[pytest.StashKey[Trial]] = pytest.StashKey()

_OPTIONS: Final[dict[str, tuple[str, str, str]]] = {
    "steeltrap": (
        "MEMORY", "",
        "put this memory on trial: module:Class, or a system that `steeltrap systems` lists",
    ),
    "steeltrap_set": (
        "KEY=VALUE", "linelist",
        "a setting of the memory, as window_turns=20; with a dot, of `steeltrap run`; repeatable",
    ),
    "steeltrap_script": ("NAME", "", "what it is run through: adversarial (the default), a family, or a file.jsonl"),
    "steeltrap_turns": ("N", "", "length of a script (150)"),
    "steeltrap_seeds": ("N", "", "so many scripts are run (2)"),
    "steeltrap_reader": ("NAME", "", "who reads what is served: oracle (the default) or top1"),
    "steeltrap_shrink": ("SECONDS", "", "so long a short conversation is looked for, for each failing name (3); 0: not at all"),
    "steeltrap_runs": ("FOLDER", "", "where the runs are kept; by default in pytest's cache"),
    "steeltrap_baseline": ("FILE", "", "what was violated in this baseline is known; more of it fails"),
    "steeltrap_allow": ("NAME", "linelist", "a violation, or a rule of the contract, that is known and does not fail; repeatable"),
    "steeltrap_strict": ("", "bool", "remarks on the contract fail as well"),
}  # fmt: skip
"""Each option, as --steeltrap-set and in the ini file as steeltrap_set: its value, kind, meaning."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, to the command line and to the ini file alike."""
    group = parser.getgroup(NODE, "a memory on trial (steeltrap)")
    for name, (value, kind, words) in _OPTIONS.items():
        flag = "--" + name.replace("_", "-")
        if kind == "bool":
            group.addoption(flag, dest=name, action="store_true", default=None, help=words)
        elif kind == "linelist":
            group.addoption(flag, dest=name, action="append", metavar=value, help=words)
        else:
            group.addoption(flag, dest=name, metavar=value, help=words)
        parser.addini(name, words, type=kind or "string", default=None)  # type: ignore[arg-type, maybe-unrecognized-str-typeform]


def _option(config: pytest.Config, name: str) -> Any:
    """From the command line, or else from the ini file; None where neither says anything."""
    given = config.getoption(name)
    return given if given is not None else (config.getini(name) or None)


def pytest_configure(config: pytest.Config) -> None:
    """Where a memory is named, look whether there is one; otherwise do nothing."""
    config.addinivalue_line("markers", f"{NODE}: an item of a memory on trial")
    chosen = [arg for arg in config.args if arg == NODE or arg.startswith(f"{NODE}::")]
    if not _option(config, NODE):
        if chosen and not Path(NODE).exists():
            raise pytest.UsageError(f"{chosen[0]}: needs --steeltrap MEMORY")
        return
    if chosen:
        _only(config, chosen)
    elif config.args and all("::" in arg for arg in config.args):
        # somebody wants these tests, and has the memory in the ini file
        config.option.steeltrap_chosen = []
    from steeltrap.harness.settings import SettingsError

    try:
        config.stash[_TRIAL] = _trial(config)
    except SettingsError as error:
        raise pytest.UsageError(f"--steeltrap: {error}") from None
    except SystemExit as error:
        raise pytest.UsageError(
            f"--steeltrap: the memory, or what it imports, called sys.exit({error.code})"
        ) from None


def _only(config: pytest.Config, chosen: list[str]) -> None:
    """Items of ours that were asked for by their ids, as pytest prints them for failures."""
    config.args = [arg for arg in config.args if arg not in chosen]
    # among the options, so that workers of pytest-xdist get it
    config.option.steeltrap_chosen = chosen
    config.option.steeltrap_alone = not config.args


def _trial(config: pytest.Config) -> Trial:
    from steeltrap.harness.commands.trial import Plan, Trial

    def number(name: str, kind: Any, otherwise: Any) -> Any:
        given = _option(config, name)
        try:
            return otherwise if given is None else kind(given)
        except ValueError:
            raise pytest.UsageError(f"--{name.replace('_', '-')} {given}: write a number") from None

    worker = getattr(config, "workerinput", {})
    return Trial(
        Plan(
            system=_option(config, NODE),
            folder=_folder(config),
            sets=tuple(_option(config, "steeltrap_set") or ()),
            script=_option(config, "steeltrap_script") or "adversarial",
            turns=number("steeltrap_turns", int, None),
            seeds=number("steeltrap_seeds", int, 2),
            reader=_option(config, "steeltrap_reader") or "oracle",
            shrink_s=number("steeltrap_shrink", float, 3.0),
            baseline=_baseline(config),
            session=worker.get("testrunuid") or uuid.uuid4().hex,
        )
    )


def _baseline(config: pytest.Config) -> Path | None:
    given = _option(config, "steeltrap_baseline")
    return Path(config.rootpath / given) if given else None


def _folder(config: pytest.Config) -> Path:
    """Where the runs are kept: so that a page can be made of them, and a violation shrunk."""
    if given := _option(config, "steeltrap_runs"):
        return Path(config.rootpath / given)
    cache = getattr(config, "cache", None)
    if cache is None:
        raise pytest.UsageError(
            "without pytest's cache, say where runs are kept: --steeltrap-runs FOLDER"
        )
    return Path(cache.mkdir(NODE))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the items, so that -k, -m and --last-failed choose among them as among others."""
    if _TRIAL not in config.stash:
        return
    if getattr(config.option, "steeltrap_alone", False):
        items.clear()
    chosen = getattr(config.option, "steeltrap_chosen", [NODE])
    ours = [
        item
        for item in _items(session)
        if any(item.nodeid == one or item.nodeid.startswith(f"{one}::") for one in chosen)
    ]
    items += ours
    # so that they are counted where pytest says how many it collected
    report = pytest.CollectReport(NODE, "passed", None, list(ours))
    session.ihook.pytest_collectreport(report=report)


def _items(session: pytest.Session) -> Iterator[pytest.Item]:
    from steeltrap.harness.conformance import CHECKS
    from steeltrap.harness.verdict import NAMES

    top = _Group.from_parent(session, name=NODE, nodeid=NODE)
    contract = _Group.from_parent(top, name="contract")
    for check in CHECKS.values():
        yield _Contract.from_parent(contract, name=check.name, check=check)
    run = _Group.from_parent(top, name="run")
    yield _EveryStep.from_parent(run, name="every-step")
    if _option(session.config, "steeltrap_baseline"):
        yield _LikeBefore.from_parent(run, name="no-worse-than-baseline")
    for condition, names in NAMES.items():
        group = _Group.from_parent(top, name=condition)
        for name in names:
            yield _Named.from_parent(group, name=name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped item of ours is named by its id: a line of this module says nothing to anybody."""
    report = yield
    if isinstance(item, _Item) and report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (item.nodeid, None, report.longrepr[2])  # type: ignore[assignment]
    return report


class _Group(pytest.Collector):
    """A level of the tree of items; what is below it is made elsewhere."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        return []


class _Item(pytest.Item):
    """An item of the trial."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.add_marker(NODE)
        if self.config.pluginmanager.has_plugin("xdist"):
            # with --dist loadgroup one worker does them all; with others each shares the runs
            self.add_marker(pytest.mark.xdist_group(NODE))

    @property
    def trial(self) -> Trial:
        return self.config.stash[_TRIAL]

    def fail(self, words: str) -> None:
        """Fail with words alone: the lines of this module say nothing to whoever reads them."""
        if self.name in (_option(self.config, "steeltrap_allow") or ()):
            pytest.xfail(f"allowed: {words.splitlines()[0]}")
        pytest.fail(words, pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.config.rootpath, None, self.nodeid


class _Contract(_Item):
    def __init__(self, *, check: Check, **named: Any) -> None:
        super().__init__(**named)
        self.check = check

    def runtest(self) -> None:
        import tempfile

        from steeltrap.harness.commands.trial import trace
        from steeltrap.harness.conformance import Broken, NotApplicable, Remark

        words = ""
        with tempfile.TemporaryDirectory(prefix="steeltrap-", ignore_cleanup_errors=True) as folder:
            try:
                self.trial.check(self.check, Path(folder) / "memory")
            except NotApplicable as why:
                reason = str(why)
            except Broken as broken:
                if isinstance(broken, Remark) and not _option(self.config, "steeltrap_strict"):
                    reason = f"a remark: {broken.happened}"
                else:
                    words = "\n".join([_broken(broken, self.check), *trace(broken.__cause__)])
            else:
                return
        if words:
            self.fail(words)
        pytest.skip(reason)


def _broken(broken: Broken, check: Check) -> str:
    due = "" if broken.due == check.rule else f"\ndue:   {broken.due}"
    return f"{broken.happened}\n\nrule:  {check.rule}{due}\nto do: {broken.hint}"


class _EveryStep(_Item):
    """The memory could be driven through the scripts without an error."""

    def runtest(self) -> None:
        if words := self.trial.failures():
            self.fail(words)


class _LikeBefore(_Item):
    """Nothing is worse than in the baseline, and all of it can be judged."""

    def runtest(self) -> None:
        if words := self.trial.worse():
            self.fail(words)


class _Named(_Item):
    """One named violation does not show in any run."""

    def runtest(self) -> None:
        found = self.trial.finding(self.name)
        match found.state:
            case "unknown":
                pytest.skip(found.why)
            case "known":
                pytest.xfail(found.why)
            case "violated":
                self.fail(self.trial.told(found, self.config.rootpath))
