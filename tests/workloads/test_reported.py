"""The reported cases: all there, true, in our own words, and each of them can fail."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.checks import Scored, score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Item, Memory, Told, Utterance
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import (
    Change,
    Op,
    Probe,
    Script,
    ScriptError,
    Turn,
    field_of,
    tenant_of,
    topic_of,
)
from steeltrap.harness.settings import cells
from steeltrap.harness.twins import compare, twin_script
from steeltrap.workloads import reported
from steeltrap.workloads.check import check
from steeltrap.workloads.reported import cases, script
from steeltrap.workloads.world import Entry, Unit, World

IDS = [case.id for case in cases()]


@pytest.fixture(scope="session")
def reports(root: Path) -> list[dict]:  # type: ignore[type-arg]
    """The reports after which the cases were made, where they are at hand."""
    path = root.parent / "shared" / "cases" / "reported.jsonl"
    if not path.exists():
        pytest.skip("the reports are not here; the cases stand without them")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="session")
def whole() -> Script:
    return script()


# ---------------------------------------------------------------- the data


def test_every_report_has_its_case(reports: list[dict]) -> None:  # type: ignore[type-arg]
    """Each report is there under its id, with its kind and its conditions."""
    ours = {case.id: (case.kind, case.condition) for case in cases()}
    assert ours == {report["id"]: (report["class"], report["condition"]) for report in reports}


def test_the_cases_are_in_our_own_words(reports: list[dict], root: Path) -> None:  # type: ignore[type-arg]
    """No sentence of a report stands in the cases, and no vendor or address is named."""
    ours = (Path(reported.__file__).parent / "cases.toml").read_text("utf-8").casefold()
    for report in reports:
        for words in _strings({key: report[key] for key in report if key not in ("id", "class")}):
            if len(words.split()) > 2 or (len(words) > 6 and not words.isascii()):
                assert words.strip(" .").casefold() not in ours, report["id"]
        owner, _, repository = report["source"].partition("#")[0].partition("/")
        for name in (owner, repository, "github"):
            assert not re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", ours), report["id"]


def _strings(value: object) -> Iterable[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, part in value.items():
                if key not in ("op", "at", "user", "what", "fault"):
                    yield from _strings(part)
        case list():
            for part in value:
                yield from _strings(part)
        case _:
            pass


def test_ids_kinds_and_topics_are_told_apart() -> None:
    """No id comes twice, and no topic is spoken of in two cases."""
    assert len(IDS) == len(set(IDS)) == 72
    topics: dict[str, str] = {}
    for case in cases():
        for unit in case.units.values():
            assert topics.setdefault(unit.split("/")[0], case.id) == case.id, unit
        assert set(case.units) == set(case.asks), case.id


def test_a_topic_is_named_where_it_is_spoken_of(whole: Script) -> None:
    """Whoever reads a sentence alone knows what it is about, save for the one bare first name."""
    unnamed = set()
    for step in whole.steps:
        if isinstance(step, Turn):
            about = {topic_of(unit) for op in step.ops for unit in (op.unit, op.target) if unit}
            unnamed |= {t for t in about if t.casefold() not in step.text.casefold()}
    assert {"Casper Weld"} == unnamed


# ---------------------------------------------------------------- the script


def test_the_script_is_true(whole: Script, tmp_path: Path) -> None:
    """Read back and replayed, the script holds exactly the truth that the ops give."""
    sha256 = whole.write(tmp_path / "reported.jsonl")
    assert sha256 == check(tmp_path / "reported.jsonl").sha256()


@pytest.mark.parametrize("name", IDS)
def test_a_case_alone_is_the_same(whole: Script, name: str, tmp_path: Path) -> None:
    """`script.case` gives the very steps that the case has among the others, and they are true."""
    alone = script(case=name)
    sha256 = alone.write(tmp_path / "case.jsonl")
    assert sha256 == check(tmp_path / "case.jsonl").sha256()
    among = [s.id for s in whole.steps if s.id.startswith(f"{name.lower()}-")]
    assert among == [step.id for step in alone.steps]


def test_families_are_kinds(whole: Script) -> None:
    """Every step is of the family of its kind, and the header says what each kind tests."""
    kinds = {case.id.lower(): case.kind for case in cases()}
    for step in whole.steps:
        assert kinds[step.id.rsplit("-", 1)[0]] == step.family
    assert set(kinds.values()) == set(whole.header.settings["conditions"])


def test_some_kinds_can_be_chosen() -> None:
    """`script.kinds` keeps the cases of those kinds."""
    some = script(kinds=["relative_date", "flip_flop"])
    assert ["BUG-059", "BUG-012", "BUG-085"] == some.header.settings["cases"]


def test_what_does_not_exist_is_named() -> None:
    """An unknown case or kind is refused with those that are known."""
    with pytest.raises(ScriptError, match=r"'BUG-999' is not known; known: BUG-001"):
        script(case="BUG-999")
    with pytest.raises(ScriptError, match=r"'rust' is not known; known: code_message_lost"):
        script(kinds=["rust"])
    with pytest.raises(ScriptError, match="relative_date, which is left out"):
        script(case="BUG-012", kinds=["flip_flop"])


def test_it_is_run_by_its_name() -> None:
    """`script=reported script.case=BUG-005` is that script."""
    (cell,) = cells(["script=reported", "script.case=bug-005"])
    assert script(case="BUG-005").sha256() == cell.script().sha256()


# ---------------------------------------------------------------- what it finds


def _scored(make: Callable[[], Memory], of: Script, twins: int = 0) -> Scored:
    with tempfile.TemporaryDirectory() as folder:

        def driven(which: Script, name: str) -> Path:
            memory, path = make(), Path(folder) / name
            path.mkdir()
            if isinstance(memory, Told):
                memory.told(which)
            memory.open(path)
            drive(memory, which, path / "history", limit=10)
            memory.close()
            return path / "history"

        history = driven(of, "here")
        pairs = [
            compare(of, spec, history, driven(twin_script(of, spec), spec.name))
            for spec in of.header.twins[:twins]
        ]
        return score(
            of, read_events(history), capabilities=read_header(history).capabilities,
            reader=Oracle(), twins=pairs,
        )  # fmt: skip


def _failing(scored: Scored, of: Script) -> set[str]:
    """The cases at which something was found that they are there to find."""
    tests = {case.id: case.tests for case in cases()}
    found = set()
    for violation in scored.violations:
        case = of.steps[violation.step].id.rsplit("-", 1)[0].upper()
        if {violation.name, violation.condition} & set(tests[case]):
            found.add(case)
    return found


def test_the_ideal_memory_passes_all(whole: Script) -> None:
    """A memory that does everything right has no violation, and answers everything."""
    scored = _scored(Ideal, whole, twins=9)
    assert [] == scored.violations
    assert 1.0 == scored.outcome.recall
    for kind, rows in scored.outcome.by_family.items():
        assert any(row[1] for key, row in rows.items() if key != "missing"), kind


class Broken(Ideal):
    """The ideal memory with the fault of a report; subclasses say which."""

    fails: tuple[str, ...] = ()
    """The cases that must catch it, and no others need."""


class _LosesBoth(World):
    def supersede(self, unit: Unit, entry: Entry, cause: str) -> list[Change]:  # type: ignore[override]
        if unit.live and "swimming" in unit.name:
            return self.erase(tenant_of(unit.name), unit.name)
        return super().supersede(unit, entry, cause)  # type: ignore[arg-type]


class LosesBoth(Broken):
    """What contradicts is deleted, and the new value is not written."""

    world_class = _LosesBoth
    fails = ("BUG-005",)


class DropsTurns(Broken):
    """Some turns never arrive."""

    def dropped(self, turn: Utterance) -> bool:
        raise NotImplementedError

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        if not self.dropped(turn):
            known = [op for op in ops if not op.unit or op.op == "tell" or op.unit in self.world.units]  # fmt: skip
            super().take_in(turn, known)


class DropsLong(DropsTurns):
    """What is longer than the window is not stored."""

    fails = ("BUG-014", "BUG-092")

    def dropped(self, turn: Utterance) -> bool:
        return len(turn.text) > 2000


class DropsBraces(DropsTurns):
    """Braces and slashes break the parser."""

    fails = ("BUG-016", "BUG-025")

    def dropped(self, turn: Utterance) -> bool:
        return "{" in turn.text or "/opt" in turn.text


class DropsOtherScripts(DropsTurns):
    """Only what is written in English letters is stored."""

    fails = ("BUG-013",)

    def dropped(self, turn: Utterance) -> bool:
        return not turn.text.isascii()


class DropsWhatIsKnown(DropsTurns):
    """A sentence that anybody has said before is refused."""

    fails = ("BUG-044", "BUG-035")

    def open(self, folder: Path) -> None:
        super().open(folder)
        self._heard: dict[str, str] = {}

    def dropped(self, turn: Utterance) -> bool:
        return self._heard.setdefault(turn.text, turn.tenant) != turn.tenant


class DropsNearDuplicates(DropsTurns):
    """Six of seven words alike are a duplicate."""

    fails = ("BUG-056", "BUG-057")

    def open(self, folder: Path) -> None:
        super().open(folder)
        self._heard: dict[str, list[set[str]]] = {}

    def dropped(self, turn: Utterance) -> bool:
        words = set(turn.text.casefold().split())
        heard = self._heard.setdefault(turn.tenant, [])
        alike = any(7 * len(words & other) >= 5 * len(words | other) for other in heard)
        heard.append(words)
        return alike and turn.tenant in ("bug-056", "bug-057")


class DeletesOnRepeat(Broken):
    """The same fact again removes the copy that is there."""

    fails = ("BUG-006",)

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.op == "restate" and op.unit in self.world.units and turn.tenant == "bug-006":
                self.world.erase(turn.tenant, op.unit)
                return
        super().take_in(turn, [op for op in ops if op.op != "restate"])


class ForgetsWhenIdle(Broken):
    """Whatever was not spoken of for a month is deleted."""

    fails = ("BUG-082",)

    def maintain(self, at: str) -> None:
        super().maintain(at)
        for name, unit in list(self.world.units.items()):
            if "bug-082" in name and unit.entries[-1].at[:7] < at[:7]:
                self.world.erase(tenant_of(name), name)


class ServesOther(Broken):
    """Serves the value of another unit of the same field, as if it were this one's."""

    def other(self, name: str) -> str | None:
        raise NotImplementedError

    def present(self, name: str) -> list[Item]:
        own = super().present(name)
        unit = self.world.units.get(self.other(name) or "")
        if unit is None or unit.now is None or not unit.live or not own:
            return own
        return [super().item(self.world.units[name], unit.now)]


class MergesNames(ServesOther):
    """Whatever shares a word of its name is one."""

    fails = ("BUG-017", "BUG-074", "BUG-076", "BUG-058")

    def other(self, name: str) -> str | None:
        words = set(topic_of(name).casefold().split())
        for known in self.world.by_tenant.get(tenant_of(name), {}):
            if known != name and field_of(known) == field_of(name):
                if words & set(topic_of(known).casefold().split()):
                    return known
        return None


class LosesSpelling(Broken):
    """A user's id is stored in small letters and looked up as it is written."""

    fails = ("BUG-040",)

    def present(self, name: str) -> list[Item]:
        tenant, rest = name.split("/", 1)
        if tenant != tenant.lower():
            return []
        written = [t for t in self.world.by_tenant if t.lower() == tenant]
        return [item for t in written for item in super(LosesSpelling, self).present(f"{t}/{rest}")]


class MatchesPrefixes(Broken):
    """A search in a scope also finds scopes that begin like it, and the other way round."""

    fails = ("BUG-037", "BUG-041")

    def present(self, name: str) -> list[Item]:
        tenant, rest = name.split("/", 1)
        alike = [t for t in self.world.by_tenant if t.startswith(tenant) or tenant.startswith(t)]
        return [item for t in alike for item in super(MatchesPrefixes, self).present(f"{t}/{rest}")]


class CountsFromToday(Broken):
    """Days are counted from the day on which a question is asked."""

    fails = ("BUG-012", "BUG-085")

    def answer(self, probe: Probe, name: str) -> list[Item]:
        if tenant_of(name) not in ("bug-012", "bug-085") or not self.present(name):
            return super().answer(probe, name)
        day = "19 May 2027" if "night" in name else "30 January 2026"
        return [Item(f"The {field_of(name)} of {topic_of(name)} is {day}.")]


class BackupsCount(Broken):
    """Salience is the time of the last access, and a full listing is an access of everything."""

    fails = ("BUG-079",)

    def open(self, folder: Path) -> None:
        super().open(folder)
        self._clock = 0.0

    def touch(self, name: str) -> None:
        self._clock += 1.0
        self.saliences[name] = self._clock

    def active(self, tenant: str) -> Sequence[Item]:
        self._clock += 1.0
        for name in self.world.by_tenant.get(tenant, {}):
            self.saliences[name] = self._clock
        return super().active(tenant)

    def maintain(self, at: str) -> None:
        self.world.advance(at)


class PopularWins(Broken):
    """Until a new value has been read more often than the old one was, the old one comes first."""

    fails = ("BUG-080",)

    def present(self, name: str) -> list[Item]:
        unit = self.world.units.get(name)
        if unit and len(unit.entries) > 1 and self.saliences.get(name, 0.0) > 15:
            return [self.item(unit, unit.entries[0])]
        return super().present(name)


class StampsAnew(Broken):
    """Maintenance dates everything from the day on which it runs."""

    fails = ("BUG-073",)

    def maintain(self, at: str) -> None:
        super().maintain(at)
        for unit in self.world.units.values():
            if unit.now:
                unit.now.at = at


BROKEN = [
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Broken) and kind.fails
]


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_memory_with_the_fault_of_a_report_is_caught_by_its_case(
    kind: type[Broken],
) -> None:
    """Each of these memories has one fault that was reported, and its cases find it."""
    for name in kind.fails:
        alone = script(case=name)
        assert {name} == _failing(_scored(kind, alone, twins=1), alone), name


CATCHING = (
    "never-supersedes", "keeps-restatements", "ignores-correction", "never-keeps-vital",
    "drops-sources", "keeps-erased", "ignores-tenant", "ignores-review-rules", "read-only",
    "ignores-expiry", "keeps-noise", "confuses-look-alikes",
)  # fmt: skip


def test_every_case_can_fail(whole: Script) -> None:
    """No case is so weak that none of a handful of mutants, a transcript and the above break it."""
    found = {name for kind in BROKEN for name in kind.fails}
    found |= _failing(_scored(Flat, whole), whole)
    for name in CATCHING:
        found |= _failing(_scored(MUTANTS[name], whole), whole)
    assert set(IDS) == found


@cache
def _file() -> str:
    return (Path(reported.__file__).parent / "cases.toml").read_text("utf-8")


def test_the_file_says_what_its_keys_mean() -> None:
    """The head of the file explains every key that an entry may have."""
    head = _file().partition("[[case]]")[0]
    for entry in tomllib.loads(_file())["case"]:
        for key in entry:
            assert key in head, key
