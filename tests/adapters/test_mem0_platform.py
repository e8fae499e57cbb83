"""The hosted Mem0 through its real client, in its own environment, against a double of the service."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doubles import lives
from doubles.lives import query, subject, tell, turn
from doubles.mem0_platform import KEY, Mem0Double

from steeltrap.adapters.mem0_platform import Mem0Platform
from steeltrap.harness.memory import Erases, Lists, MemoryFault, Recalls, capabilities
from steeltrap.harness.remote import Remote, WorkerFault
from steeltrap.harness.replies import Items
from steeltrap.workloads.compose import ScriptSettings, compose

Make = Callable[..., Remote]


@pytest.fixture(scope="module")
def make() -> Iterator[Make]:
    """Makes systems that have the key."""
    lives.python("mem0-platform")

    def made(url: str, **settings: Any) -> Remote:
        target = "steeltrap.adapters.mem0_platform.Mem0Platform"
        return lives.remote("mem0-platform", target, "MEM0_API_KEY", url, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_API_KEY", KEY)
        yield made


@pytest.fixture(scope="module")
def service() -> Iterator[Mem0Double]:
    with Mem0Double() as double:
        yield double


@pytest.fixture(scope="module")
def opened(
    make: Make, service: Mem0Double, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Remote]:
    with lives.life(make(service.url), tmp_path_factory.mktemp("mem0")) as memory:
        yield memory


@pytest.fixture
def mem0(opened: Remote, service: Mem0Double) -> Iterator[Remote]:
    """One life for most tests, each with a tenant of its own; nothing sent may be refused."""
    service.seen.clear()
    service.refused.clear()
    yield opened
    service.faults.clear()
    service.failing.clear()
    service.polls, service.page_cap = 2, 100
    assert [] == service.refused


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return request.node.name


def texts(items: Any) -> list[str]:
    return [item.text for item in items]


OLD, NEW = "The deadline of Atlas is 3 May.", "The deadline of Atlas is 9 May."
SAID = [OLD, "Lunch was late again.", NEW, "The budget of Harbour Lights is 40 EUR."]


# ---------------------------------------------------------------- what it is


def test_is_known_without_its_package() -> None:
    """The class can be looked at where mem0ai is not installed, and says what it can do."""
    assert {"list", "history", "erase"} == set(capabilities(Mem0Platform()))


def test_a_missing_key_is_said_in_a_sentence(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a key nothing is sent, and the variable is named."""
    monkeypatch.delenv("MEM0_API_KEY")
    with Mem0Double() as double:
        with pytest.raises(MemoryFault, match=r"^mem0-platform: MEM0_API_KEY is not set; [^.]+$"):
            make(double.url).open(tmp_path)
        assert [] == double.seen


@pytest.mark.slow
def test_a_wrong_key_is_the_services_words(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A key that the service does not take is a fault in its words, and the key is not in them."""
    monkeypatch.setenv("MEM0_API_KEY", "m_of_somebody_else")
    with Mem0Double() as double:
        with pytest.raises(MemoryFault, match=r"401: .*the key is missing or wrong") as told:
            make(double.url).open(tmp_path)
        assert "somebody" not in str(told.value)


@pytest.mark.slow
def test_a_busy_service_is_waited_for_at_the_start(make: Make, tmp_path: Path) -> None:
    """The client tries the key when it is made; 429 there is asked again, as anywhere."""
    with Mem0Double() as double:
        double.fault("/v1/ping/", status=429, headers={"Retry-After": "0"}, times=2)
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", OLD)
        assert 3 == double.count("/v1/ping/")


@pytest.mark.slow
def test_the_key_is_written_nowhere_and_nothing_is_told_elsewhere(
    make: Make, tmp_path: Path
) -> None:
    """The run folder and what is sent in bodies and addresses hold no key; what the client writes
    lies below the run folder."""
    with Mem0Double() as double:
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", *SAID)
            files = {path.name: path for path in tmp_path.rglob("*") if path.is_file()}
            contents = [path.read_bytes() for path in files.values()]
        assert ("memory/mem0/config.json", "memory/mem0-users.txt") == tuple(
            str(files[name].relative_to(tmp_path)) for name in ("config.json", "mem0-users.txt")
        )
        assert not any(KEY.encode() in content for content in contents)
        assert KEY not in str(double.seen)


# ---------------------------------------------------------------- what is served


def test_what_was_said_is_served_with_its_turn_and_time(mem0: Remote, tenant: str) -> None:
    """A memory has the turn that it came from, and the simulated time, in UTC, to the minute."""
    tell(mem0, tenant, *SAID)
    (best, *_) = mem0.retrieve(query("The budget of Harbour Lights", tenant))
    assert (SAID[3], ("t3",), "2026-01-01T03:00", None) == (
        best.text, best.sources, best.valid_from, best.valid_to,
    )  # fmt: skip


def test_a_superseded_memory_ends_when_its_successor_begins(mem0: Remote, tenant: str) -> None:
    """The old memory carries the time of the one that links to it, in every reading."""
    tell(mem0, tenant, *SAID)
    assert isinstance(mem0, Lists)
    assert isinstance(mem0, Recalls)
    expected = {
        OLD: ("2026-01-01T00:00", "2026-01-01T02:00"),
        NEW: ("2026-01-01T02:00", None),
    }
    for items in (
        mem0.retrieve(query("the deadline of Atlas", tenant)),
        mem0.active(tenant),
        mem0.history(subject("Atlas", tenant)),
    ):
        found = {item.text: (item.valid_from, item.valid_to) for item in items}
        assert expected == {text: found[text] for text in expected}


def test_the_time_of_the_question_is_told(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """Search is given the simulated time of the question, and add that of the turn."""
    tell(mem0, tenant, OLD)
    mem0.retrieve(query("deadline", tenant))
    (added,) = (body for _, path, body in service.seen if path.endswith("/add/"))
    (searched,) = (body for _, path, body in service.seen if path.endswith("/search/"))
    assert 1767225600 == added["timestamp"]
    assert ("2026-03-01T12:00:00Z", 10) == (searched["reference_date"], searched["top_k"])
    assert {"rerank", "threshold", "latest_only"}.isdisjoint(searched)


@pytest.mark.slow
def test_settings_are_sent(make: Make, tmp_path: Path) -> None:
    """What is set differently goes along; superseded memories can be left out."""
    with Mem0Double() as double:
        made = make(double.url, latest_only=True, rerank=True, threshold=0.0)
        with lives.life(made, tmp_path) as memory:
            tell(memory, "acme", *SAID)
            served = memory.retrieve(query("zzz", "acme"))
            assert isinstance(memory, Lists)
            listed = memory.active("acme")
            assert isinstance(memory, Recalls)
            assert [OLD, NEW] == texts(memory.history(subject("Atlas", "acme")))
        (searched,) = (body for _, path, body in double.seen if path.endswith("/search/"))
        assert (True, 0.0, True) == tuple(searched[key] for key in ("rerank", "threshold", "latest_only"))  # fmt: skip
        assert set(SAID[1:]) == set(texts(served)) == set(texts(listed))


def test_history_is_of_the_topic_with_every_version(
    mem0: Remote, service: Mem0Double, tenant: str
) -> None:
    """History has what names the topic, oldest first, and what the service rewrote before and
    after."""
    tell(mem0, tenant, *SAID, "The deadline of ATLAS is 1 June.")
    service.rewrite(NEW, "The deadline of Atlas, so Kim, is 9 May.")
    assert isinstance(mem0, Recalls)
    found = mem0.history(subject("Atlas", tenant))
    assert [OLD, NEW, "The deadline of ATLAS is 1 June.", "The deadline of Atlas, so Kim, is 9 May."] == texts(found)  # fmt: skip
    assert found[1].valid_to == found[3].valid_from
    assert found[1].valid_from == "2026-01-01T02:00"
    assert found[3].valid_to is None


@pytest.mark.parametrize("limit", [0, 1, 7, 60])
def test_search_keeps_to_the_limit(mem0: Remote, tenant: str, limit: int) -> None:
    """Search gives as many memories as are asked for, also more than the service's default."""
    tell(mem0, tenant, *(f"Note {number} of the day." for number in range(12)))
    served = mem0.retrieve(query("note of the day", tenant, limit))
    assert min(limit, 12) == len(served) == len(set(texts(served)))


def test_listing_reads_all_pages(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """The listing holds every memory, oldest first."""
    service.page_cap = 3
    said = [f"Note {number} of the day." for number in range(9)]
    tell(mem0, tenant, *said)
    assert isinstance(mem0, Lists)
    assert said == texts(mem0.active(tenant))
    assert 3 == service.count("POST /v3/memories/\\?")


def test_random_ids_are_not_served(mem0: Remote, tenant: str) -> None:
    """Two tenants with the same turns get the same items, ids, order and scores included."""
    lists = []
    for name in (f"{tenant}-one", f"{tenant}-two"):
        tell(mem0, name, *SAID, *(f"Note {number} of the day." for number in range(8)))
        assert isinstance(mem0, Lists)
        lists.append([*mem0.retrieve(query("note of the day", name, 50)), *mem0.active(name)])
    assert lists[0] == lists[1]


def test_replies_are_well_formed(mem0: Remote, tenant: str) -> None:
    """Replies pass the check that the driver makes."""
    tell(mem0, tenant, *SAID)
    assert isinstance(mem0, Lists)
    Items().intern(mem0.retrieve(query("deadline", tenant)), "retrieve")
    Items().intern(mem0.active(tenant), "active")


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_question_is_not_sent(
    mem0: Remote, service: Mem0Double, tenant: str, text: str
) -> None:
    """The client refuses an empty query, so nothing is asked and nothing served."""
    tell(mem0, tenant, OLD)
    assert [] == list(mem0.retrieve(query(text, tenant)))
    assert 0 == service.count("/search/")


# ---------------------------------------------------------------- scope


def test_tenants_are_apart_and_sessions_together(mem0: Remote, tenant: str) -> None:
    """A tenant is served what was said in any of its sessions, and nothing of another tenant."""
    other = f"{tenant}-other"
    mem0.ingest(turn(0, OLD, tenant, session="morning"))
    mem0.ingest(turn(1, NEW, tenant, session="evening"))
    mem0.ingest(turn(2, "The deadline of Atlas is 1 June.", other))
    mem0.settle()
    assert isinstance(mem0, Lists)
    assert {OLD, NEW} == set(texts(mem0.retrieve(query("deadline of Atlas", tenant))))
    assert [OLD, NEW] == texts(mem0.active(tenant))
    assert ["The deadline of Atlas is 1 June."] == texts(mem0.active(other))
    assert [] == list(mem0.active("nobody")) == list(mem0.retrieve(query("deadline", "nobody")))


@pytest.mark.slow
def test_two_runs_do_not_meet(make: Make, service: Mem0Double, tmp_path: Path) -> None:
    """Two lives at one time, with a tenant of one name, see their own turns only."""
    with (
        lives.life(make(service.url), tmp_path / "one") as one,
        lives.life(make(service.url), tmp_path / "two") as two,
    ):
        tell(one, "acme", OLD)
        tell(two, "acme", NEW)
        assert isinstance(one, Lists)
        assert isinstance(two, Lists)
        assert ([OLD], [NEW]) == (texts(one.active("acme")), texts(two.active("acme")))


def test_a_tenants_name_may_be_anything(mem0: Remote, service: Mem0Double) -> None:
    """Names are made fit for the service, and tenants that then look alike stay apart."""
    for name, said in (("Ä/ö ü", OLD), ("---", NEW)):
        tell(mem0, name, said)
        assert isinstance(mem0, Lists)
        assert [said] == texts(mem0.active(name))
    fit = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
    assert all(set(name) <= fit for name in service.users)


# ---------------------------------------------------------------- background work


def test_settle_waits_until_all_is_taken_in(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """Nothing is there before the events have ended, and everything after `settle`."""
    service.polls = 4
    for number, said in enumerate(SAID):
        mem0.ingest(turn(number, said, tenant))
    assert isinstance(mem0, Lists)
    assert [] == list(mem0.active(tenant))
    mem0.settle()
    assert SAID == texts(mem0.active(tenant))


def test_a_failed_event_is_named_once(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """`settle` says which turns failed and why, waits for the others, and does not say it again."""
    service.failing = ["", "no model", "neither"]
    for number, said in enumerate(SAID):
        mem0.ingest(turn(number, said, tenant))
    with pytest.raises(WorkerFault, match=r"t1 .* failed: .*no model.* turn t2 .* failed") as told:
        mem0.settle()
    assert "turn t0" not in str(told.value)
    mem0.settle()
    assert isinstance(mem0, Lists)
    assert [OLD, SAID[3]] == texts(mem0.active(tenant))


def test_an_event_that_never_ends_is_given_up(
    mem0: Remote, service: Mem0Double, tenant: str
) -> None:
    """After the limit `settle` names the turns, having asked at ever longer intervals."""
    service.polls = None
    mem0.ingest(turn(0, OLD, tenant))
    mem0.ingest(turn(1, NEW, tenant))
    begin = monotonic()
    words = r"t0 .* did not end within 1.5 s; taking in turn t1 .* did not end"
    with pytest.raises(WorkerFault, match=words):
        mem0.settle()
    assert 1.4 < monotonic() - begin < 4
    assert service.count("GET /v1/event/") < 15
    mem0.settle()


def test_a_look_that_fails_is_repeated(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """An error of the service while an event's state is asked for is no failure of the work."""
    service.fault("GET /v1/event/", status=503, times=2)
    tell(mem0, tenant, OLD)
    assert isinstance(mem0, Lists)
    assert [OLD] == texts(mem0.active(tenant))


# ---------------------------------------------------------------- erasure


def test_an_erased_tenant_is_gone_at_the_service(
    mem0: Remote, service: Mem0Double, tenant: str
) -> None:
    """The user is deleted there; other tenants keep everything; the tenant may speak again."""
    other = f"{tenant}-other"
    tell(mem0, tenant, *SAID)
    tell(mem0, other, OLD)
    assert isinstance(mem0, Erases)
    assert isinstance(mem0, Lists)
    before = {item.id for item in mem0.active(tenant)}
    users = len(service.users)
    mem0.erase(tenant, None)
    mem0.settle()
    assert users - 1 == len(service.users)
    assert [] == list(mem0.active(tenant)) == list(mem0.retrieve(query("deadline", tenant)))
    assert [OLD] == texts(mem0.active(other))
    tell(mem0, tenant, "A new life.")
    (only,) = mem0.active(tenant)
    assert "A new life." == only.text
    assert only.id not in before


def test_an_erased_subject_leaves_no_memory(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """Memories that name topic and field, and the older ones that they superseded, are gone, over
    all pages; the rest stays."""
    service.page_cap = 2
    more = ["No DEADLINE for ATLAS.", "The owner of Atlas is Kim."]
    tell(mem0, tenant, *SAID, *more)
    for memory in service.memories:
        if memory["memory"] == OLD:
            memory["memory"] = "What was due on 3 May."
    assert isinstance(mem0, Erases)
    assert isinstance(mem0, Lists)
    mem0.erase(tenant, subject("Atlas", tenant))
    mem0.settle()
    assert [SAID[1], SAID[3], more[1]] == texts(mem0.active(tenant))


def test_a_subject_that_no_memory_names_whole_goes_by_its_topic(mem0: Remote, tenant: str) -> None:
    """Where no memory names the field, those that name the topic are deleted."""
    tell(mem0, tenant, "Atlas is due on 3 May.", SAID[1])
    assert isinstance(mem0, Erases)
    assert isinstance(mem0, Lists)
    mem0.erase(tenant, subject("Atlas", tenant))
    assert [SAID[1]] == texts(mem0.active(tenant))


def test_erasing_what_is_not_there_is_harmless(mem0: Remote, tenant: str) -> None:
    """Neither an unknown tenant nor an unknown subject disturbs what is there."""
    tell(mem0, tenant, OLD)
    assert isinstance(mem0, Erases)
    assert isinstance(mem0, Lists)
    mem0.erase("nobody", None)
    mem0.erase("nobody", subject("Atlas", "nobody"))
    mem0.erase(tenant, subject("Lighthouse", tenant))
    assert [OLD] == texts(mem0.active(tenant))


# ---------------------------------------------------------------- errors


def test_too_many_requests_are_waited_for(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """429 is asked again after as long as the service says, and the turn is there once."""
    service.fault("/add/", status=429, headers={"Retry-After": "1"})
    service.fault("/search/", status=429, headers={"Retry-After": "0"}, times=3)
    begin = monotonic()
    tell(mem0, tenant, OLD)
    assert monotonic() - begin >= 1
    assert [OLD] == texts(mem0.retrieve(query("deadline", tenant)))
    assert 2 == service.count("/add/")


def test_too_long_a_wait_is_a_fault(mem0: Remote, service: Mem0Double, tenant: str) -> None:
    """Where the service wants to be left alone for longer than is allowed, nothing was done."""
    service.fault("/add/", status=429, headers={"Retry-After": "999"}, body=b'{"detail": "busy"}')
    begin = monotonic()
    with pytest.raises(MemoryFault, match="429: busy"):
        mem0.ingest(turn(0, OLD, tenant))
    assert monotonic() - begin < 2
    assert 1 == service.count("/add/")


@pytest.mark.parametrize("status", [400, 403, 409, 413, 422])
def test_a_refusal_is_certain(mem0: Remote, service: Mem0Double, tenant: str, status: int) -> None:
    """Any other 4xx did nothing; the fault has the service's words, and it is asked once."""
    service.fault("/add/", status=status, body=b'{"detail": "not in this plan"}')
    with pytest.raises(MemoryFault, match=f"mem0-platform: {status}: not in this plan"):
        mem0.ingest(turn(0, OLD, tenant))
    assert 1 == service.count("/add/")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"status": 500}, "500: out of order"),
        ({"status": 502, "body": b"<html>"}, "502: <html>"),
        ({"status": 408}, "408"),
        ({"status": 200, "body": b"<html>"}, "an answer of another form"),
        ({"status": 200, "body": b"[]"}, "names no event"),
        ({"status": 200, "body": b"{}"}, "names no event"),
        ({"status": 200, "cut": True}, "connection broke"),
        ({"status": 200, "delay_s": 1.5}, "connection broke: Request timed out"),
    ],
    ids=["500", "502", "408", "no json", "no object", "no event", "cut", "slow"],
)
def test_it_is_unknown_what_happened(
    mem0: Remote, service: Mem0Double, tenant: str, how: dict[str, Any], words: str
) -> None:
    """After an error of the service, a broken connection or an answer that cannot be read, the
    turn may be there: it is no fault, and it is not sent again."""
    service.fault("/add/", done=True, **how)
    with pytest.raises(WorkerFault, match=words) as told:
        mem0.ingest(turn(0, OLD, tenant))
    assert "Unsure" == type(told.value).__name__
    assert 1 == service.count("/add/")


@pytest.mark.slow
def test_nobody_there_is_certain(make: Make, tmp_path: Path) -> None:
    """Where no connection comes about, nothing was done: at the start, and later."""
    with pytest.raises(MemoryFault, match="mem0-platform: no connection"):
        make(lives.nobody()).open(tmp_path / "one")
    with Mem0Double() as double:
        made = make(double.url)
        made.open(tmp_path / "two")
    with pytest.raises(MemoryFault, match="mem0-platform: no connection"):
        made.ingest(turn(0, OLD, "acme"))
    made.close()


@pytest.mark.parametrize(
    "body", [b"<html>", b'{"results": 3}', b'{"results": [{"id": "a"}]}', b"[]"]
)
def test_a_malformed_list_is_an_error(
    mem0: Remote, service: Mem0Double, tenant: str, body: bytes
) -> None:
    """A list that cannot be read is never taken for an empty one."""
    tell(mem0, tenant, OLD)
    service.fault("/v3/memories/(search/|\\?)", status=200, body=body, times=2)
    assert isinstance(mem0, Lists)
    for call in (lambda: mem0.retrieve(query("deadline", tenant)), lambda: mem0.active(tenant)):
        with pytest.raises(
            WorkerFault, match=r"mem0-platform: (an answer of another form|no list)"
        ):
            call()


# ---------------------------------------------------------------- the end


def test_closing_deletes_what_was_made(make: Make, tmp_path: Path) -> None:
    """After closing, no user of the run is left, and no list of them."""
    with Mem0Double() as double:
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", OLD)
            tell(memory, "other", NEW)
            assert 2 == len(double.users)
        assert set() == double.users
        assert [] == double.memories
        assert [] == list(tmp_path.rglob("mem0-users.txt"))


@pytest.mark.slow
def test_users_that_stay_are_named(make: Make, tmp_path: Path) -> None:
    """A user that cannot be deleted stays in the list of the run folder, and closing goes well."""
    with Mem0Double() as double:
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", OLD)
            double.fault("DELETE", status=403)
        (path,) = tmp_path.rglob("mem0-users.txt")
        assert sorted(double.users) == path.read_text().splitlines()


@pytest.mark.slow
def test_a_killed_run_is_cleaned_up_by_the_next(make: Make, tmp_path: Path) -> None:
    """Opened in the folder of a run that was killed, the users of that run are deleted first."""
    with Mem0Double() as double:
        killed = make(double.url)
        killed.open(tmp_path)
        tell(killed, "acme", OLD)
        assert killed._worker is not None
        os.kill(killed._worker._process.pid, signal.SIGKILL)
        killed.close()
        assert 1 == len(double.users)
        with lives.life(make(double.url), tmp_path):
            assert set() == double.users


def test_use_while_not_open_is_a_fault() -> None:
    """Every call before `open` fails with a message that says so."""
    memory = Mem0Platform()
    memory.close()
    calls: list[Callable[[], object]] = [
        lambda: memory.ingest(turn(0, OLD, "acme")),
        lambda: memory.retrieve(query("deadline", "acme")),
        memory.settle,
        lambda: memory.active("acme"),
        lambda: memory.history(subject("Atlas", "acme")),
        lambda: memory.erase("acme", None),
    ]
    for call in calls:
        with pytest.raises(MemoryFault, match="not open"):
            call()


# ---------------------------------------------------------------- whole scripts


@pytest.mark.parametrize("name", [pytest.param("figure-1", marks=pytest.mark.slow), "adversarial"])
def test_a_script_runs_without_a_failed_step(make: Make, tmp_path: Path, name: str) -> None:
    """Every step of a script ends well, and the service takes every request."""
    script = compose(ScriptSettings(name=name, turns=40), seed=1)
    with Mem0Double(polls=1) as double:
        with lives.life(make(double.url), tmp_path / "run") as memory:
            assert [] == lives.driven(memory, script, tmp_path / "history.jsonl")
        assert [] == double.refused
