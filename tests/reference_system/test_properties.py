"""What holds of every life: erasure, sameness, refusal, policies in place of others, threads, tenants."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from steeltrap.reference_system.memory import Memory, Served
from steeltrap.reference_system.policy import PolicySet, default_policies
from steeltrap.reference_system.statements import Dependency, Fact, Place, Question, Statement
from steeltrap.reference_system.stores import Kind, open_store
from steeltrap.reference_system.stores.base import Store
from steeltrap.reference_system.transition import PolicyBreach


def beside(name: str) -> ModuleType:
    """A module of this folder."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


beside("model")
lives: Any = beside("lives")

TENANTS = ("acme", "zeta")
SECRET = "zq9x"
some = settings(max_examples=25, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))  # fmt: skip


# ---------------------------------------------------------------- lives as data


@dataclass(frozen=True)
class Step:
    """Something that happens to a memory."""

    what: str
    tenant: str
    minutes: int
    """Since the step before."""
    said: tuple[Any, ...] = ()
    places: tuple[Place, ...] = ()
    flag: bool = False


steps = st.builds(
    Step, st.sampled_from(("say",) * 5 + ("ask", "ask", "past", "revise", "forget", "restore", "erase")),
    st.sampled_from(TENANTS), lives.passing, lives.said.map(tuple),
    st.lists(lives.places, min_size=1, max_size=2).map(tuple), st.booleans(),
)  # fmt: skip
life = st.lists(steps, min_size=4, max_size=18)


def play(memory: Memory, life: list[Step], *, only: str | None = None, start: int = 0, stop: int | None = None) -> None:  # fmt: skip
    """Let steps of a life happen; time passes and turns are numbered also where one is left out."""
    now = datetime(2026, 1, 1, 9)
    for number, step in enumerate(life[:stop]):
        now += timedelta(minutes=step.minutes)
        if number >= start and only in (None, step.tenant):
            try:
                happen(memory, step, now, f"{step.tenant}/{number}")
            except (ValueError, KeyError):
                continue


def happen(memory: Memory, step: Step, now: datetime, turn: str) -> None:
    """One step."""
    at, first = now.isoformat(), step.places[0]
    match step.what:
        case "say":
            memory.ingest(step.tenant, at=at, turn=turn, statements=statements(step, now))
            if step.flag:
                memory.revise(step.tenant, at=at)
        case "ask" | "past":
            mode: Any = "temporal" if step.what == "past" else "structural" if step.flag else "topic"  # fmt: skip
            memory.retrieve(step.tenant, Question("", step.places, mode), at=at)
        case "revise":
            memory.revise(step.tenant, at=at, search=step.flag)
        case "forget":
            memory.forget(step.tenant, at=at)
        case "restore":
            memory.restore(step.tenant, first.topic, first.field, at=at)
        case "erase":
            memory.erase(step.tenant, first.topic, first.field if step.flag else None)


def statements(step: Step, now: datetime) -> list[Statement]:
    """What is said at an instant."""
    found: list[Statement] = []
    for said in step.said:
        if isinstance(said, tuple):
            fact, since, until = said
            since, until = (None if n is None else (now + timedelta(days=n)).isoformat() for n in (since and -since, until))  # fmt: skip
            said = msgspec.structs.replace(fact, valid_from=since, until=until)
        found.append(said)
    return found


def held(memory: Memory) -> list[Any]:
    """Everything that a store holds, record for record."""
    records = list(memory._store.load())
    fields = [record.id for record in records if type(record).__name__ == "Field"]
    return [*records, *memory._store.entries(fields)]


def shown(memory: Memory, tenant: str, at: str | None = None) -> list[tuple[Any, ...]]:
    """What is active, without ids and saliences."""
    return sorted(
        (s.topic, s.field, s.value, s.valid_from, s.valid_to or "", s.turns, s.said_by, s.review)
        for s in memory.active(tenant, at=at)
    )


def described(memory: Memory, tenant: str) -> list[tuple[str, str, bool]]:
    """The topics of a tenant, in the order in which they were made."""
    topics = (memory._mirror.topics[name] for name in memory._mirror.of_tenant.get(tenant, ()))
    return [(topic.title, topic.summary, topic.archived) for topic in topics]


@pytest.fixture(scope="module", params=["plain", "native", "ladybug"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


class Kept:
    """Memories in a folder of their own, closed at the end."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._memories: list[Memory] = []
        return self

    def __exit__(self, *_: object) -> None:
        for memory in self._memories:
            memory.close()
        self._folder.cleanup()

    def open(self, kind: Kind = "plain", policies: PolicySet | None = None, **more: Any) -> Memory:
        self.folder = Path(self._folder.name, str(len(self._memories)))
        self.folder.mkdir()
        memory = Memory.open(self.folder / "m.db", kind, policies=policies or lives.policies(), **more)  # fmt: skip
        self._memories.append(memory)
        return memory


def few(kind: Kind, examples: int) -> Callable[[Any], Any]:
    """Fewer where opening is slow."""
    return settings(some, max_examples=max(2, examples // 12) if kind == "ladybug" else examples)


# ---------------------------------------------------------------- erasure


def test_erased_tenant_never_was(kind: Kind) -> None:
    """Others are left, record for record, as if an erased tenant had never been."""

    @few(kind, 30)
    @given(life, st.integers(0, 6))
    def check(life: list[Step], after: int) -> None:
        cut = max(0, len(life) - after)
        with Kept() as kept:
            one, other = kept.open(kind), kept.open(kind)
            play(one, life, stop=cut)
            one.erase("acme")
            play(one, life, only="zeta", start=cut)
            play(other, life, only="zeta")
            assert held(one) == held(other)
            assert (one.active("acme"), one.footprint("acme")) == ([], 0)
            assert one.check() == []

    check()


def secretly(life: list[Step]) -> list[Step]:
    """A life in which everything that acme says, and where, is secret."""

    def hidden(text: str) -> str:
        return f"{SECRET} {text}"

    def place(of: Place) -> Place:
        return Place(hidden(of.topic), hidden(of.field))

    def said(one: Any) -> Any:
        if isinstance(one, tuple):
            fact = one[0]
            new = msgspec.structs.replace(
                fact, topic=hidden(fact.topic), field=hidden(fact.field), value=hidden(fact.value),
                about=hidden(fact.about) if fact.about else "", tags=(*fact.tags, SECRET),
            )  # fmt: skip
            return (new, *one[1:])
        if isinstance(one, Dependency):
            return Dependency(place(one.source), place(one.target), one.rule)
        names = {n: hidden(getattr(one, n)) for n in ("topic", "field", "other") if hasattr(one, n)}
        return msgspec.structs.replace(one, **names)

    return [
        msgspec_step(step, tuple(map(said, step.said)), tuple(map(place, step.places)))
        if step.tenant == "acme" else step
        for step in life
    ]  # fmt: skip


def msgspec_step(step: Step, said: tuple[Any, ...], places: tuple[Place, ...]) -> Step:
    """A step with other words."""
    return Step(step.what, step.tenant, step.minutes, said, places, step.flag)


def leaks(folder: Path) -> list[str]:
    """Files in which the secret can be read."""
    return [p.name for p in folder.iterdir() if SECRET.encode() in p.read_bytes().lower()]


@pytest.mark.parametrize("kind", ["native", "ladybug"])
def test_no_byte_of_an_erased_tenant_is_left(kind: Kind) -> None:
    """After an erasure no file in the folder holds a word of what was erased, open or closed."""

    @few(kind, 20)
    @given(life, st.booleans())
    def check(life: list[Step], checkpoint: bool) -> None:
        with Kept() as kept:
            memory = kept.open(kind)
            play(memory, secretly(life))
            if checkpoint:
                memory.checkpoint()
            memory.erase("acme")
            assert leaks(kept.folder) == []
            memory.close()
            assert leaks(kept.folder) == []

    check()


@pytest.mark.parametrize("kind", ["native", "ladybug"])
def test_no_byte_of_an_erased_field_is_left(kind: Kind) -> None:
    """The same of one field, though its topic was merged and others were told beside it."""

    @few(kind, 20)
    @given(
        life, st.lists(st.integers(0, 17), min_size=1, max_size=4), st.sampled_from(lives.TITLES)
    )
    def check(life: list[Step], when: list[int], title: str) -> None:
        fact = Fact(title, f"{SECRET} code", f"{SECRET} 44", tags=("vital",))
        told = [Step("say", "acme", 1, ((fact, None, None),), step.places) for step in life]
        kept_life = [s for s in life if s.what != "erase"]
        for n, place in enumerate(when):
            kept_life.insert(place + n, told[0])
        with Kept() as kept:
            memory = kept.open(kind)
            play(memory, kept_life)
            memory.erase("acme", title, f"{SECRET} code")
            assert memory.check() == []
            assert leaks(kept.folder) == []

    check()


# ---------------------------------------------------------------- sameness


def test_the_same_is_done_twice(kind: Kind) -> None:
    """The same operations leave the same records, and on SQLite the same bytes."""

    @few(kind, 20)
    @given(life)
    def check(life: list[Step]) -> None:
        with Kept() as kept:
            one = kept.open(kind)
            first = kept.folder
            other = kept.open(kind)
            play(one, life)
            play(other, life)
            assert held(one) == held(other)
            assert [t.explain() for t in one.transitions] == [
                t.explain() for t in other.transitions
            ]
            if kind == "native":
                one.close()
                other.close()
                assert (first / "m.db").read_bytes() == (kept.folder / "m.db").read_bytes()

    check()


def test_opening_again_changes_nothing(kind: Kind) -> None:
    """A memory that is opened anew goes on as the one that stayed open."""
    if kind == "plain":
        return

    @few(kind, 20)
    @given(life, st.integers(1, 12))
    def check(life: list[Step], cut: int) -> None:
        with Kept() as kept:
            other = kept.open(kind)
            one = kept.open(kind)
            play(one, life, stop=cut)
            one.close()
            one = Memory.open(kept.folder / "m.db", kind)
            kept._memories.append(one)
            play(one, life, start=cut)
            play(other, life)
            at = (
                datetime(2026, 1, 1, 9) + timedelta(minutes=sum(s.minutes for s in life))
            ).isoformat()
            for tenant in TENANTS:
                assert shown(one, tenant, at) == shown(other, tenant, at)
                assert described(one, tenant) == described(other, tenant)

    check()


# ---------------------------------------------------------------- refusal


class Faulty:
    """A store whose disk may be full."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.full = False

    def __getattr__(self, name: str) -> Any:
        if self.full and name in ("commit", "read", "erase"):
            raise OSError("no space left on device")
        return getattr(self._store, name)


NOTHING = "POLICY nothing-at-all ON transition_proposed DO reject"


@pytest.mark.parametrize("by", ["policy", "disk"])
def test_what_is_refused_leaves_no_trace(by: str) -> None:
    """A transition that a policy or the disk refuses leaves memory and store as they were.

    Also what is not looked at here, such as queues: a twin that never tried goes on the same.
    """

    @settings(some, max_examples=60)
    @given(life, st.integers(1, 12), st.lists(steps, min_size=1, max_size=3))
    def check(life: list[Step], cut: int, tried: list[Step]) -> None:
        last = Step("pass", "acme", 90 * 1440, (), life[0].places)
        life = [*life, last, *everything(life)]
        at = datetime(2026, 1, 1, 9) + timedelta(minutes=sum(s.minutes for s in life[: cut + 1]))
        with Kept() as kept:
            twin = kept.open()
            store = Faulty(open_store(Path(), "plain"))
            memory = Memory(store, policies=lives.policies())  # type: ignore[arg-type]
            play(memory, life, stop=cut)
            before = held(memory)
            fail(memory, store, by, [*tried, *everything(life)], at)
            assert held(memory) == before
            assert memory.check() == []
            play(memory, life, start=cut)
            play(twin, life)
            assert held(memory) == held(twin)
            for tenant in TENANTS:
                assert memory.active(tenant) == twin.active(tenant)
                assert memory.footprint(tenant) == twin.footprint(tenant)

    check()


def everything(life: list[Step]) -> list[Step]:
    """Forgetting and searching, of everybody."""
    return [
        Step(what, tenant, 0, (), life[0].places, True)
        for what in ("forget", "revise") for tenant in TENANTS
    ]  # fmt: skip


def fail(memory: Memory, store: Faulty, by: str, tried: list[Step], at: datetime) -> None:
    """Try some steps while nothing can be written."""
    usual = memory.policies
    if by == "policy":
        memory.set_policies(PolicySet.parse(f"{usual.describe()}\n{NOTHING}"))
    store.full = by == "disk"
    for step in tried:
        if step.what != "erase" or by == "disk":
            try:
                happen(memory, step, at, "never")
            except (PolicyBreach, OSError, ValueError, KeyError):
                continue
    store.full = False
    if by == "policy":
        memory.set_policies(usual)


# ---------------------------------------------------------------- other policies


def instead(old: str, new: str, policies: PolicySet | None = None) -> PolicySet:
    """A set of policies with one text in place of another."""
    text = (policies or lives.policies()).describe()
    assert old in text
    return PolicySet.parse(text.replace(old, new))


few_places = st.builds(Place, st.sampled_from(lives.TITLES[:3]), st.sampled_from(lives.NAMES[:2]))
told = st.lists(
    st.one_of(
        st.builds(Fact, st.sampled_from(lives.TITLES[:3]), st.sampled_from(lives.NAMES[:2]), st.sampled_from(lives.VALUES), st.sampled_from(("owner", "colleague", "hearsay"))),
        st.builds(Dependency, few_places, few_places, st.sampled_from(lives.RULES)).filter(lambda d: d.source != d.target),
    ),
    min_size=1, max_size=14,
)  # fmt: skip


def tell(memory: Memory, said: list[Statement | None], *, revise: bool = True) -> None:
    """One statement a day."""
    for number, one in enumerate(said):
        at = (datetime(2026, 1, 1, 9) + timedelta(days=number)).isoformat()
        if one is not None:
            try:
                memory.ingest("acme", at=at, turn=f"t{number}", statements=[one])
            except ValueError:
                continue
            if revise:
                memory.revise("acme", at=at)


@some
@given(told)
def test_what_is_kept_beside_changes_no_present_value(said: list[Statement]) -> None:
    """`keep_both` for hearsay: the present is as if it had not been said, and nothing is lost."""
    policies = instead(f"SET bound = {lives.BOUND}", "SET bound = 100000")
    keep = "POLICY keep-hearsay ON fact_received WHEN fact.source = 'hearsay' DO keep_both"
    first = "POLICY keep-higher-source"
    hearsay = [isinstance(s, Fact) and s.said_by == "hearsay" for s in said]
    with Kept() as kept:
        one = kept.open(policies=instead(first, f"{keep}\n{first}", policies))
        other = kept.open(policies=policies)
        tell(one, list(said))
        tell(other, [None if h else s for s, h in zip(said, hearsay, strict=True)])
        mine, others = ([(t.lower(), *rest) for t, *rest in shown(m, "acme")] for m in (one, other))
        assert mine == others
        assert sum(hearsay) == sum(getattr(r, "op", "") == "contested" for r in held(one))
        assert one.check() == []


def at_once() -> PolicySet:
    """The set with propagation at once."""
    usual = lives.policies().without("propagate-on-change").describe()
    now = "POLICY at-once ON field_updated WHEN EXISTS dependent DO propagate"
    return PolicySet.parse(f"{usual}\n{now}")


@some
@given(told)
def test_propagation_at_once_comes_to_the_same(said: list[Statement]) -> None:
    """`propagate` in place of `flag_for_revision`: without any revision what it would have made."""
    with Kept() as kept:
        one, other = kept.open(policies=at_once()), kept.open()
        tell(one, list(said), revise=False)
        tell(other, list(said))
        assert shown(one, "acme") == shown(other, "acme")


@some
@given(life)
def test_nothing_is_attenuated_without_thresholds_or_bound(life: list[Step]) -> None:
    """With thresholds of 0 and room for all, forgetting changes nothing, whatever passes."""
    policies = lives.policies()
    for name in ("summary_at", "remove_at", "archive_at"):
        policies = instead(f"SET {name} = {lives.SETTINGS[name]}", f"SET {name} = 0", policies)
    policies = instead(f"SET bound = {lives.BOUND}", "SET bound = 1000000", policies)
    with Kept() as kept:
        memory = kept.open(policies=policies)
        play(memory, life)
        assert {f.level for f in memory._mirror.fields.values()} <= {0}
        assert not any(topic.archived for topic in memory._mirror.topics.values())


@some
@given(life, st.integers(1, 80))
def test_the_bound_holds_after_every_step(life: list[Step], bound: int) -> None:
    """C5: active tokens are within the bound, but for what is protected."""
    policies = instead(f"SET bound = {lives.BOUND}", f"SET bound = {bound}")
    with Kept() as kept:
        memory = kept.open(policies=policies)
        for number in range(len(life)):
            play(memory, life, start=number, stop=number + 1)
            for tenant in TENANTS:
                vital = sum(f.tokens for f in memory._mirror.fields.values() if f.tenant == tenant and "vital" in f.tags)  # fmt: skip
                assert memory.footprint(tenant) <= max(bound, vital)


@some
@given(life)
def test_a_policy_that_forbids_one_thing_forbids_nothing_else(life: list[Step]) -> None:
    """What is refused to one tenant is not there; the other lives as if it were alone."""
    forbid = "POLICY not-acme ON transition_proposed WHEN tenant = 'acme' DO reject"
    policies = PolicySet.parse(f"{lives.policies().describe()}\n{forbid}")
    with Kept() as kept:
        one, other = kept.open(policies=policies), kept.open(policies=policies)
        now = datetime(2026, 1, 1, 9)
        for number, step in enumerate(life):
            now += timedelta(minutes=step.minutes)
            for memory in (one,) if step.tenant == "acme" else (one, other):
                try:
                    happen(memory, step, now, f"{step.tenant}/{number}")
                except PolicyBreach:
                    assert step.tenant == "acme"
                except (KeyError, ValueError):
                    continue
        assert held(one) == held(other)


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize("kind", ["plain", "native"])
def test_readers_and_a_writer_at_once(kind: Kind) -> None:
    """Every value that a reader is served was current, and no reader sees time run back."""
    faults: list[BaseException] = []
    done = threading.Event()
    fields = [f"f{number}" for number in range(6)]

    def write(memory: Memory) -> None:
        for number in range(150):
            at = (datetime(2026, 1, 1) + timedelta(hours=number)).isoformat()
            fact = Fact("Counter", fields[number % 6], str(number))
            memory.ingest("acme", at=at, turn=f"t{number}", statements=[fact])
            memory.revise("acme", at=at, search=number % 40 == 0)
            if number % 50 == 49:
                memory.forget("acme", at=at)

    def read(memory: Memory, own: int) -> None:
        last: dict[str, int] = {}
        while not done.is_set():
            served = look(memory, own)
            for item in served:
                number = int(item.value)
                assert fields[number % 6] == item.field
                assert number >= last.get(item.field, -1)
                last[item.field] = number
            memory.footprint("acme")

    def look(memory: Memory, own: int) -> list[Served]:
        if own == 0:
            return memory.active("acme")
        if own == 1:
            asked = Question("", (Place("Counter", ""),))
            return memory.retrieve("acme", asked, at="2026-03-01T00:00").served
        assert memory.check() == []
        return memory.history("acme", "Counter", "f1")[-1:]

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as fault:
            faults.append(fault)

    with Kept() as kept:
        memory = kept.open(kind, default_policies())
        readers = [threading.Thread(target=guarded, args=(lambda n=n: read(memory, n),)) for n in range(3)]  # fmt: skip
        for reader in readers:
            reader.start()
        guarded(lambda: write(memory))
        done.set()
        for reader in readers:
            reader.join()
        assert faults == []
        assert memory.check() == []
        assert [s.value for s in memory.active("acme")] == [str(n) for n in range(144, 150)]


# ---------------------------------------------------------------- tenants


def test_what_others_read_moves_nothing(kind: Kind) -> None:
    """Reading of one tenant leaves every record of the others as it is."""

    @few(kind, 20)
    @given(life)
    def check(life: list[Step]) -> None:
        asked = [s for s in life if s.tenant != "acme" or s.what not in ("ask", "past")]
        times = [s if s in asked else Step("pass", s.tenant, s.minutes, (), s.places) for s in life]
        with Kept() as kept:
            one, other = kept.open(kind), kept.open(kind)
            play(one, life)
            play(other, times)
            mine = [[r for r in held(m) if getattr(r, "tenant", "zeta") == "zeta" and getattr(r, "field", "zeta").startswith("zeta")] for m in (one, other)]  # fmt: skip
            assert mine[0] == mine[1]

    check()


@pytest.mark.parametrize("shared", [False, True])
def test_shared_salience_leaks_and_tenants_own_does_not(shared: bool) -> None:
    """With one salience for all, a tenant can tell what another asked for; without, it cannot."""
    with Kept() as kept:
        memory = kept.open(policies=default_policies(), shared_salience=shared)
        for tenant in TENANTS:
            facts = [Fact("Merger", name, "x") for name in ("price", "date")]
            memory.ingest(tenant, at="2026-01-05T09:00", turn="t1", statements=facts)
        before = held(memory)
        asked = Question("", (Place("Merger", "date"),))
        memory.retrieve("acme", asked, at="2026-01-06T09:00")
        zeta = {name: memory.salience("zeta", "Merger", name) or 0.0 for name in ("price", "date")}
        assert (zeta["date"] > zeta["price"]) == shared
        mine = [r for r in held(memory) if getattr(r, "tenant", "") == "zeta"]
        assert (mine == [r for r in before if getattr(r, "tenant", "") == "zeta"]) != shared
        ranked = memory.retrieve(
            "zeta", Question("", (Place("Merger", ""),)), at="2026-01-07T09:00"
        )
        assert [s.field for s in ranked.served] == (
            ["date", "price"] if shared else ["price", "date"]
        )
        assert memory.check() == []
