"""Database paradigms: what they share, and what each of relational, active, temporal and document keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.gem.answers import answer
from steeltrap.adapters.paradigms.base import Paradigm
from steeltrap.adapters.paradigms.document import Document
from steeltrap.adapters.paradigms.relational import Relational
from steeltrap.adapters.paradigms.spelled import day_in, number_in, with_day, with_number
from steeltrap.adapters.paradigms.temporal import Temporal
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import Erases, Forks, Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Answerer, Ask, Mind, Reply
from steeltrap.harness.script import Header, Op, Probe, Rule, Script, Step, Turn, field_of, topic_of
from steeltrap.reference_system.rules import Rule as Derivation
from steeltrap.reference_system.rules import derive
from steeltrap.reference_system.statements import Place, Question

EMBEDDER = HashEmbedder()
Make = Callable[[], Paradigm]


def relational() -> Relational:
    return Relational(embedder=EMBEDDER)


def active() -> Relational:
    return Relational(embedder=EMBEDDER, active_rules=True)


def temporal() -> Temporal:
    return Temporal(embedder=EMBEDDER)


def document() -> Document:
    return Document(embedder=EMBEDDER)


ALL = (relational, active, temporal, document)
every = pytest.mark.parametrize("make", ALL)

DUE, KICK_OFF, PARTY = "a/Atlas/deadline", "a/Atlas/kick-off", "a/Boreas/party"
HOST, GUIDE = "a/Atlas/host", "a/Boreas/guide"
FIRST, SECOND, THIRD = "date:2026-03-05", "date:2026-03-09", "date:2026-04-02"


def day(number: int) -> str:
    """Nine o'clock of a day of January."""
    return f"2026-01-{number:02}T09:00"


def script(*ops: Op) -> Script:
    """A day for each op, and the questions that a test may ask."""
    steps: list[Step] = [
        Turn(id=f"t{n}", at=day(n), tenant="a", session="s", text=_said(n, op), ops=[op])
        for n, op in enumerate(ops, 1)
    ]
    units = dict.fromkeys(u for op in ops for u in (op.unit, op.target) if u and u.count("/") == 2)
    for unit in (*units, "a/Nowhere/deadline"):
        for ask in ("current", "previous", "as-of"):
            for of in range(1, len(ops) + 1) if ask == "as-of" else (0,):
                steps.append(
                    Probe(
                        id=f"q{len(steps)}", at=day(30), tenant="a", ask=ask, unit=unit,
                        text=question(ask, unit, of), of=day(of) if of else None,
                    )
                )  # fmt: skip
    return Script(Header(name="small", tenants=["a"]), steps)


def _said(number: int, op: Op) -> str:
    topics = [topic_of(u) if u.count("/") == 2 else u for u in (op.unit, op.target) if u]
    return f"{op.op} {number} of {' and '.join(topics)}."


def question(ask: str, unit: str, of: int = 0) -> str:
    return f"{ask} {of}: {field_of(unit)} of {topic_of(unit)}?"


@contextmanager
def told(make: Make, folder: Path, *ops: Op, answers: Answerer = answer) -> Iterator[Paradigm]:
    """A memory that was told so, one op a day."""
    said = script(*ops)
    with Gateway(
        Ideal(answers, ScriptMind(said), EMBEDDER, system="paradigm"), EMBEDDER
    ) as gateway:
        gateway.begin()
        memory = make()
        memory.connect(gateway.models)
        memory.open(folder)
        for step in said.steps:
            if isinstance(step, Turn):
                memory.ingest(Utterance(step.id, step.at, "a", "s", "user", step.text))
                memory.settle()
        try:
            yield memory
        finally:
            memory.close()


def asked(memory: Paradigm, unit: str, ask: str = "current", of: int = 0) -> list[Item]:
    query = Query("q", day(30), "a", question(ask, unit, of), 10)
    return list(memory.retrieve(query))


def texts(items: list[Item]) -> list[str]:
    return [item.text.rpartition(" is ")[2].rstrip(".") for item in items]


def held(memory: Paradigm, *units: str) -> list[str]:
    """What each unit is now, in words; a question mark where it waits for review."""
    found = {item.id: item for item in memory.active("a")}
    items = [found.get(unit.split("/", 1)[1]) for unit in units]
    return [(texts([i])[0] + "?" * i.review) if i else "" for i in items]


# ---------------------------------------------------------------- all of them


@every
def test_serves_what_was_said_and_who_said_it(make: Make, tmp_path: Path) -> None:
    """The latest value is served with the turn that it came from and the time since when it holds."""
    with told(make, tmp_path, Op("tell", DUE, FIRST), Op("revise", DUE, SECOND)) as memory:
        (item,) = asked(memory, DUE)
    assert "The deadline of Atlas is 9 March 2026." == item.text
    assert (("t2",), day(2)) == (item.sources, item.valid_from)


@every
def test_repetition_adds_a_source(make: Make, tmp_path: Path) -> None:
    """The same value again leaves it as it is, with one more turn to vouch for it."""
    with told(make, tmp_path, Op("tell", DUE, FIRST), Op("restate", DUE, FIRST)) as memory:
        (item,) = asked(memory, DUE)
    assert (("t1", "t2"), day(1)) == (item.sources, item.valid_from)


@every
def test_a_weaker_source_changes_nothing(make: Make, tmp_path: Path) -> None:
    """Hearsay neither overwrites nor withdraws what the owner said; the owner overrules a colleague."""
    with told(
        make, tmp_path, Op("tell", DUE, FIRST), Op("rumour", DUE, SECOND, source="hearsay"),
        Op("retract", DUE, source="colleague"), Op("tell", HOST, "name:Bo Berg", source="colleague"),
        Op("revise", HOST, "name:Ida Lund"),
    ) as memory:  # fmt: skip
        assert ["5 March 2026", "Ida Lund"] == held(memory, DUE, HOST)


@every
def test_what_is_withdrawn_holds_no_longer(make: Make, tmp_path: Path) -> None:
    """It is neither served nor listed, and can be told anew."""
    with told(make, tmp_path, Op("tell", DUE, FIRST), Op("retract", DUE)) as memory:
        assert [] == asked(memory, DUE) == list(memory.active("a"))
    again = (Op("tell", DUE, FIRST), Op("retract", DUE), Op("tell", DUE, FIRST))
    with told(make, tmp_path, *again) as memory:
        assert ["5 March 2026"] == held(memory, DUE)


@every
def test_late_news_leaves_the_present(make: Make, tmp_path: Path) -> None:
    """A value that held before the present one does not replace it."""
    late = Op("revise", DUE, THIRD, valid_at=day(1))
    with told(make, tmp_path, Op("noise"), Op("tell", DUE, SECOND), late) as memory:
        assert ["9 March 2026"] == texts(list(memory.active("a"))) == texts(asked(memory, DUE))


@every
def test_a_correction_holds_from_when_the_mistake_did(make: Make, tmp_path: Path) -> None:
    """What takes the place of a value that was never true has its beginning."""
    with told(make, tmp_path, Op("tell", DUE, FIRST), Op("correct", DUE, SECOND)) as memory:
        (item,) = asked(memory, DUE)
    assert ("9 March 2026", day(1)) == (texts([item])[0], item.valid_from)


@every
def test_what_ends_is_served_until_then(make: Make, tmp_path: Path) -> None:
    """A value with an end carries it, and is not served after it."""
    for until, served in ((day(31), 1), (day(20), 0)):
        with told(make, tmp_path, Op("expire", DUE, FIRST, until=until)) as memory:
            found = asked(memory, DUE)
            assert [until] * served == [item.valid_to for item in found]


@every
def test_a_turn_is_stored_whole_or_not_at_all(make: Make, tmp_path: Path) -> None:
    """Where the second of two statements cannot be stored, neither is the first."""

    def half(ask: Ask, mind: Mind) -> Reply:
        place = {"topic": "Atlas", "field": "host"}
        said = [
            {"say": "fact", "topic": "Atlas", "field": "deadline", "value": "1"},
            {"say": "dependency", "source": place, "target": place},
        ]
        return Reply(text=msgspec.json.encode({"statements": said}).decode())

    with told(make, tmp_path, answers=half) as memory:
        with pytest.raises(MemoryFault, match="cannot follow from itself"):
            memory.ingest(Utterance("t1", day(1), "a", "s", "user", "Anything."))
        assert [] == list(memory.active("a"))


HOSTILE = 'x\'; DROP TABLE fact; --" OR "*" NEAR(% _'


@every
def test_names_are_data(make: Make, tmp_path: Path) -> None:
    """Signs of query languages in names, values and questions are stored and found as they are."""
    unit = f"a/{HOSTILE}/deadline"
    with told(
        make, tmp_path, Op("tell", unit, f"text:{HOSTILE}"), Op("tell", DUE, FIRST)
    ) as memory:
        assert f"The deadline of {HOSTILE} is {HOSTILE}." == asked(memory, unit)[0].text
        assert ["5 March 2026"] == texts(asked(memory, DUE))


@every
def test_what_is_erased_is_gone_from_the_files(make: Make, tmp_path: Path) -> None:
    """No byte of an erased field or tenant is left below the folder."""
    ops = (Op("tell", HOST, "name:Ingeborg"), Op("revise", HOST, "name:Wilhelmina"), Op("tell", DUE, FIRST))  # fmt: skip
    for subject, left in ((Subject("a", "Atlas", "host", ""), True), (None, False)):
        with told(
            make, tmp_path, *ops, Op("depend", HOST, target=GUIDE, rule=Rule("same"))
        ) as memory:
            assert isinstance(memory, Erases)
            memory.erase("a", subject)
            files = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()).lower()
            assert [False, False, left] == [name in files for name in (b"ingeborg", b"wilhelmina", b"5 march 2026")]  # fmt: skip
            assert left == bool(memory.active("a"))


@every
def test_a_closed_fork_leaves_its_original_open(make: Make, tmp_path: Path) -> None:
    """A fork answers as it was made, and its end is not that of the original."""
    with told(make, tmp_path, Op("tell", DUE, FIRST)) as memory:
        assert isinstance(memory, Forks)
        fork = memory.fork()
        memory.erase("a", Subject("a", "Atlas", "host", ""))
        assert isinstance(fork, Paradigm)
        fork.close()
        assert ["5 March 2026"] == texts(asked(memory, DUE))


@pytest.mark.parametrize("make", [relational, active, temporal])
def test_words_find_where_no_place_is_known(make: Make, tmp_path: Path) -> None:
    """A question about no stored topic is answered by the rows that share its words."""
    with told(make, tmp_path, Op("tell", DUE, FIRST), Op("tell", HOST, "name:Bo Berg")) as memory:
        assert ["5 March 2026"] == texts(asked(memory, "a/Nowhere/deadline"))[:1]


def test_a_store_of_keys_finds_by_key_alone(tmp_path: Path) -> None:
    """A document store has no search of its own."""
    with told(document, tmp_path, Op("tell", DUE, FIRST)) as memory:
        assert [] == asked(memory, "a/Nowhere/deadline")


def test_needs_a_model(tmp_path: Path) -> None:
    """Without a connection it cannot be opened."""
    with pytest.raises(MemoryFault, match="no model is connected"):
        document().open(tmp_path)


# ---------------------------------------------------------------- rules between fields

SAME, LATER, LOOK = Rule("same"), Rule("offset", days=7), Rule("review")


def ruled(rule: Rule, *then: Op) -> list[Op]:
    """A deadline, a kick-off that follows from it, and what is said then."""
    first = FIRST if rule.kind == "same" else "date:2026-03-12"
    return [
        Op("tell", DUE, FIRST), Op("tell", KICK_OFF, first),
        Op("depend", DUE, target=KICK_OFF, rule=rule), *then,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "rule", "due"),
    [
        (relational, SAME, "9 March 2026"), (relational, LATER, "12 March 2026"),
        (relational, LOOK, "12 March 2026"), (active, SAME, "9 March 2026"),
        (active, LATER, "16 March 2026"), (active, LOOK, "12 March 2026?"),
        (temporal, SAME, "5 March 2026"), (temporal, LATER, "12 March 2026"),
        (document, SAME, "5 March 2026"), (document, LATER, "12 March 2026"),
    ],
)  # fmt: skip
def test_what_follows_from_a_change(make: Make, rule: Rule, due: str, tmp_path: Path) -> None:
    """A foreign key carries equal values, active rules all; other paradigms leave dependents alone."""
    with told(make, tmp_path, *ruled(rule, Op("revise", DUE, SECOND))) as memory:
        assert ["9 March 2026", due] == held(memory, DUE, KICK_OFF)


@pytest.mark.parametrize("make", [relational, active])
def test_equal_values_follow_hop_by_hop(make: Make, tmp_path: Path) -> None:
    """A chain of references carries a value to its end, and a circle of them stops."""
    ops = [Op("tell", unit, FIRST) for unit in (DUE, KICK_OFF, PARTY)]
    ops += [Op("depend", DUE, target=KICK_OFF, rule=SAME), Op("depend", KICK_OFF, target=PARTY, rule=SAME)]  # fmt: skip
    for back in ([], [Op("depend", PARTY, target=DUE, rule=SAME)]):
        with told(make, tmp_path, *ops, *back, Op("revise", DUE, SECOND)) as memory:
            assert ["9 March 2026"] * 3 == held(memory, DUE, KICK_OFF, PARTY)


def test_a_field_that_is_told_otherwise_refers_no_more(tmp_path: Path) -> None:
    """A foreign key cannot hold two values: what was told stands, and the reference goes."""
    then = (Op("revise", KICK_OFF, THIRD), Op("revise", DUE, SECOND))
    with told(relational, tmp_path, *ruled(SAME, *then)) as memory:
        assert ["9 March 2026", "2 April 2026"] == held(memory, DUE, KICK_OFF)


def test_a_reference_goes_with_its_source(tmp_path: Path) -> None:
    """What refers to a withdrawn value is deleted with it; erasing the source takes nothing along."""
    with told(relational, tmp_path, *ruled(SAME, Op("retract", DUE))) as memory:
        assert ["", ""] == held(memory, DUE, KICK_OFF)
    with told(relational, tmp_path, *ruled(SAME)) as memory:
        memory.erase("a", Subject("a", "Atlas", "deadline", ""))
        assert ["", "5 March 2026"] == held(memory, DUE, KICK_OFF)


def test_active_rules_fire_hop_by_hop(tmp_path: Path) -> None:
    """Each value that follows is a change that fires the next rule, and cites every turn behind it."""
    ops = ruled(LATER, Op("tell", PARTY, "date:2026-03-02"))
    ops += [Op("depend", KICK_OFF, target=PARTY, rule=Rule("offset", days=-10)), Op("revise", DUE, SECOND)]  # fmt: skip
    with told(active, tmp_path, *ops) as memory:
        assert ["16 March 2026", "6 March 2026"] == held(memory, KICK_OFF, PARTY)
        (party,) = asked(memory, PARTY)
    assert {"t6", "t3", "t5"} == set(party.sources or ())
    assert day(6) == party.valid_from


def test_active_rules_end_in_a_circle_that_disagrees(tmp_path: Path) -> None:
    """The field that was spoken of keeps what was said, though a rule would have it otherwise."""
    back = Op("depend", KICK_OFF, target=DUE, rule=Rule("offset", days=-1))
    with told(active, tmp_path, *ruled(LATER, back, Op("revise", DUE, SECOND))) as memory:
        assert ["9 March 2026", "16 March 2026"] == held(memory, DUE, KICK_OFF)


def test_active_rules_mark_what_nothing_follows_for(tmp_path: Path) -> None:
    """Without a source, or a date to reckon with, the target waits for review until it is told."""
    with told(active, tmp_path, *ruled(LATER, Op("retract", DUE))) as memory:
        assert ["", "12 March 2026?"] == held(memory, DUE, KICK_OFF)
    with told(active, tmp_path, *ruled(LATER, Op("revise", DUE, "text:soon"))) as memory:
        assert ["soon", "12 March 2026?"] == held(memory, DUE, KICK_OFF)
    told_again = (Op("retract", DUE), Op("tell", KICK_OFF, "date:2026-03-12"))
    with told(active, tmp_path, *ruled(LATER, *told_again)) as memory:
        assert ["12 March 2026"] == held(memory, KICK_OFF)
    back = (Op("retract", DUE), Op("tell", DUE, FIRST))
    with told(active, tmp_path, *ruled(LATER, *back)) as memory:
        assert ["12 March 2026"] == held(memory, KICK_OFF)


def test_two_rules_mark_one_field(tmp_path: Path) -> None:
    """A second mark on what waits already is no error, and goes no further."""
    ops = ruled(LOOK, Op("tell", PARTY, THIRD), Op("depend", PARTY, target=KICK_OFF, rule=LOOK))
    with told(
        active, tmp_path, *ops, Op("revise", DUE, SECOND), Op("revise", PARTY, FIRST)
    ) as memory:
        assert ["12 March 2026?"] == held(memory, KICK_OFF)


def test_erasing_a_source_marks_nothing(tmp_path: Path) -> None:
    """What was erased obliges nothing any more."""
    with told(active, tmp_path, *ruled(LATER)) as memory:
        memory.erase("a", Subject("a", "Atlas", "deadline", ""))
        assert ["12 March 2026"] == held(memory, KICK_OFF)


@pytest.mark.parametrize(
    "value",
    ["3 May 2026", "about 3rd May 2026, noon", "May 3, 2026", "2026-05-03", "31 Feb 2026", "2 pm",
     "4,300 EUR", "EUR 999", "1234567 km", "none"],
)  # fmt: skip
def test_values_are_respelled_as_the_reference_system_does(value: str) -> None:
    """The date and the number in a value are read and written as its rules do."""
    moved = derive_or_none(Derivation("offset", days=0), value)
    assert moved == with_day(value, day_in(value))
    scaled = derive_or_none(Derivation("scaled"), value)
    assert scaled == with_number(value, number_in(value))


def derive_or_none(rule: Derivation, value: str) -> str | None:
    try:
        return derive(rule, value)
    except ValueError:
        return None


def test_amounts_are_scaled_and_rounded_by_the_database(tmp_path: Path) -> None:
    """A third of an amount is rounded half up, in groups of three digits."""
    budget, share = "a/Atlas/budget", "a/Atlas/share"
    ops = (
        Op("tell", budget, "money:EUR 9000"), Op("tell", share, "money:EUR 3000"),
        Op("depend", budget, target=share, rule=Rule("scaled", times=1, over=6)),
        Op("revise", budget, "money:EUR 99999"),
    )  # fmt: skip
    with told(active, tmp_path, *ops) as memory:
        assert ["16,667 EUR"] == held(memory, share)


# ---------------------------------------------------------------- what was


def test_temporal_tells_what_was(tmp_path: Path) -> None:
    """Former values are served latest first and then the present one; as of a day, what held then."""
    ops = [Op("tell", DUE, FIRST), Op("revise", DUE, SECOND), Op("revise", DUE, THIRD)]
    with told(temporal, tmp_path, *ops) as memory:
        assert ["9 March 2026", "5 March 2026", "2 April 2026"] == texts(asked(memory, DUE, "previous"))  # fmt: skip
        assert ["9 March 2026"] == texts(asked(memory, DUE, "as-of", 2))


def test_temporal_fits_late_news_into_the_past(tmp_path: Path) -> None:
    """It takes its portion of the period of the value that was thought to hold then."""
    ops = [Op("tell", DUE, FIRST), Op("noise"), Op("noise"), Op("tell", DUE, SECOND)]
    with told(temporal, tmp_path, *ops, Op("revise", DUE, THIRD, valid_at=day(2))) as memory:
        found = memory.history(Subject("a", "Atlas", "deadline", ""))  # type: ignore[attr-defined]
    periods = [(day(1), day(2)), (day(2), day(4)), (day(4), None)]
    assert periods == [(item.valid_from, item.valid_to) for item in found]
    assert ["5 March 2026", "2 April 2026", "9 March 2026"] == texts(found)


def test_temporal_brings_nothing_back_by_late_news(tmp_path: Path) -> None:
    """Late news of a value that was withdrawn since holds until then."""
    ops = [Op("tell", DUE, FIRST), Op("noise"), Op("retract", DUE)]
    with told(temporal, tmp_path, *ops, Op("revise", DUE, THIRD, valid_at=day(2))) as memory:
        assert [""] == held(memory, DUE)
        assert ["2 April 2026"] == texts(asked(memory, DUE, "as-of", 2))


def test_temporal_keeps_what_was_never_true_for_the_record(tmp_path: Path) -> None:
    """A corrected value stands in the history and is served to no question but what was known."""
    with told(temporal, tmp_path, Op("tell", DUE, FIRST), Op("correct", DUE, SECOND)) as memory:
        history = memory.history(Subject("a", "Atlas", "deadline", ""))  # type: ignore[attr-defined]
        assert ["5 March 2026", "9 March 2026"] == texts(history)
        assert ["9 March 2026"] == texts(asked(memory, DUE, "as-of", 1))
        known = Question(mode="temporal", as_of=day(1), recorded_by=day(1))
        (then,) = memory.past("a", Place("Atlas", "deadline"), known, day(30))
    assert "5 March 2026" == then.value


@pytest.mark.parametrize("make", [relational, active, document])
def test_others_know_the_present_alone(make: Make, tmp_path: Path) -> None:
    """Asked for what was, they have the present value, and only where it held already."""
    with told(make, tmp_path, Op("tell", DUE, FIRST), Op("revise", DUE, SECOND)) as memory:
        assert ["9 March 2026"] == texts(asked(memory, DUE, "previous"))
        assert [] == asked(memory, DUE, "as-of", 1)
        assert ["9 March 2026"] == texts(asked(memory, DUE, "as-of", 2))


# ---------------------------------------------------------------- retention


@pytest.mark.parametrize(
    "make",
    [
        lambda: Relational(embedder=EMBEDDER, ttl_days=10),
        lambda: Relational(embedder=EMBEDDER, ttl_days=10, active_rules=True),
        lambda: Document(embedder=EMBEDDER, ttl_days=10),
    ],
)
def test_a_time_to_live_goes_by_writing(make: Make, tmp_path: Path) -> None:
    """What was not written for so long is deleted, important or read or not; what was is kept."""
    ops = [Op("tell", GUIDE, "name:Bo Berg", importance="vital"), *[Op("noise")] * 5, Op("tell", HOST, "name:Ida Lund")]  # fmt: skip
    with told(make, tmp_path, *ops) as memory:
        memory.maintain(day(11))  # type: ignore[attr-defined]
        assert ["Bo Berg", "Ida Lund"] == held(memory, GUIDE, HOST)
        asked(memory, GUIDE)
        memory.maintain(day(12))  # type: ignore[attr-defined]
        assert ["", "Ida Lund"] == held(memory, GUIDE, HOST)


def test_a_retention_window_deletes_versions_and_no_present(tmp_path: Path) -> None:
    """Versions that ended before the window are gone; what holds stays, however old."""

    def make() -> Temporal:
        return Temporal(embedder=EMBEDDER, retention_days=10)

    with told(make, tmp_path, Op("tell", DUE, FIRST), Op("revise", DUE, SECOND)) as memory:
        for at, left in ((12, 2), (13, 1)):
            memory.maintain(day(at))  # type: ignore[attr-defined]
            assert left == len(memory.history(Subject("a", "Atlas", "deadline", "")))  # type: ignore[attr-defined]
        assert ["9 March 2026"] == held(memory, DUE)


@pytest.mark.parametrize("kind", [Relational, Document])
def test_refuses_a_time_to_live_of_nothing(kind: type[Relational | Document]) -> None:
    """A time to live has to be positive."""
    with pytest.raises(ValueError, match="keeps nothing"):
        kind(embedder=EMBEDDER, ttl_days=0)
