"""Zep through its real client, in its own environment, against a double of the service."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doubles import lives
from doubles.lives import query, subject, tell, turn
from doubles.zep import KEY, ZepDouble, new

from steeltrap.adapters.zep import Zep
from steeltrap.harness.memory import Erases, Lists, MemoryFault, Recalls, Subject, capabilities
from steeltrap.harness.remote import Remote, WorkerFault
from steeltrap.harness.replies import Items
from steeltrap.workloads.compose import ScriptSettings, compose

Make = Callable[..., Remote]


@pytest.fixture(scope="module")
def make() -> Iterator[Make]:
    """Makes systems that have the key."""
    lives.python("zep")

    def made(url: str, **settings: Any) -> Remote:
        return lives.remote("zep", "steeltrap.adapters.zep.Zep", "ZEP_API_KEY", url, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZEP_API_KEY", KEY)
        yield made


@pytest.fixture(scope="module")
def service() -> Iterator[ZepDouble]:
    with ZepDouble() as double:
        yield double


@pytest.fixture(scope="module")
def opened(
    make: Make, service: ZepDouble, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Remote]:
    with lives.life(make(service.url), tmp_path_factory.mktemp("zep")) as memory:
        yield memory


@pytest.fixture
def zep(opened: Remote, service: ZepDouble) -> Iterator[Remote]:
    """One life for most tests, each with a tenant of its own; nothing sent may be refused."""
    service.seen.clear()
    service.refused.clear()
    yield opened
    service.faults.clear()
    service.failing.clear()
    service.polls, service.page_cap, service.own_uuids = 2, 100, False
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
    """The class can be looked at where zep-cloud is not installed, and says what it can do."""
    assert {"list", "history", "erase"} == set(capabilities(Zep()))


def test_a_missing_key_is_said_in_a_sentence(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a key nothing is sent, and the variable is named."""
    monkeypatch.delenv("ZEP_API_KEY")
    with ZepDouble() as double:
        with pytest.raises(MemoryFault, match=r"^zep: ZEP_API_KEY is not set; [^.]+$"):
            make(double.url).open(tmp_path)
        assert [] == double.seen


@pytest.mark.slow
def test_a_wrong_key_is_the_services_words(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A key that the service does not take is a fault in its words, and the key is not in them."""
    monkeypatch.setenv("ZEP_API_KEY", "z_of_somebody_else")
    with ZepDouble() as double, lives.life(make(double.url), tmp_path) as memory:
        with pytest.raises(
            MemoryFault, match="401: unauthorized: the key is missing or wrong"
        ) as told:
            memory.ingest(turn(0, OLD, "acme"))
        assert "somebody" not in str(told.value)


@pytest.mark.slow
def test_the_key_is_written_nowhere(make: Make, tmp_path: Path) -> None:
    """Neither the run folder nor what is sent in bodies and addresses holds the key."""
    with ZepDouble() as double:
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", *SAID)
            files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        assert not any(KEY.encode() in content for content in files)
        assert KEY not in str(double.seen)


# ---------------------------------------------------------------- what is served


def test_what_was_said_is_served_with_its_turn_and_times(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """A fact has the turn that it came from and the simulated time from which it holds."""
    tell(zep, tenant, *SAID)
    (best, *_) = zep.retrieve(query("The budget of Harbour Lights", tenant))
    assert (SAID[3], ("t3",), "2026-01-01T03:00", None) == (
        best.text, best.sources, best.valid_from, best.valid_to,
    )  # fmt: skip
    assert 0 == service.count("GET .*/episodes/")


def test_a_superseded_fact_ends_when_its_successor_begins(zep: Remote, tenant: str) -> None:
    """The old fact carries the time at which the new one began to hold, in every reading."""
    tell(zep, tenant, *SAID)
    assert isinstance(zep, Lists)
    assert isinstance(zep, Recalls)
    expected = {
        OLD: ("2026-01-01T00:00", "2026-01-01T02:00"),
        NEW: ("2026-01-01T02:00", None),
    }
    for items in (
        zep.retrieve(query("the deadline of Atlas", tenant)),
        zep.active(tenant),
        zep.history(subject("Atlas", tenant)),
    ):
        found = {item.text: (item.valid_from, item.valid_to) for item in items}
        assert expected == {text: found[text] for text in expected}


def test_a_fact_that_expired_without_a_time_ends_in_simulated_time(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """Where only the service's clock says that a fact was superseded, the script's time is given,
    and stays the one of the first sight."""
    tell(zep, tenant, *SAID)
    for graph in service.graphs.values():
        for edge in graph.edges:
            if edge["fact"] == OLD:
                edge["invalid_at"] = None
    assert isinstance(zep, Lists)
    ends = []
    for _ in range(2):
        ends += [item.valid_to for item in zep.active(tenant) if item.text == OLD]
        zep.retrieve(query("later", tenant))
    assert len(set(ends)) == 1
    assert datetime.fromisoformat(ends[0]).replace(tzinfo=UTC) < datetime(2026, 6, 1, tzinfo=UTC)


def test_history_is_of_the_topic_oldest_first(zep: Remote, tenant: str) -> None:
    """History has what names the topic, whatever order the service lists in."""
    tell(zep, tenant, *SAID, "The deadline of ATLAS is 1 June.")
    assert isinstance(zep, Recalls)
    assert [OLD, NEW, "The deadline of ATLAS is 1 June."] == texts(
        zep.history(subject("Atlas", tenant))
    )


@pytest.mark.parametrize("limit", [0, 1, 4, 7, 60])
def test_pages_are_read_to_the_limit(
    zep: Remote, service: ZepDouble, tenant: str, limit: int
) -> None:
    """Search gives as many facts as are asked for, over as many pages as that takes."""
    service.page_cap = 3
    tell(zep, tenant, *(f"Note {number} of the day." for number in range(10)))
    served = zep.retrieve(query("note of the day", tenant, limit))
    assert min(limit, 10) == len(served) == len(set(texts(served)))
    assert {0: 0, 1: 1, 4: 2, 7: 3, 60: 4}[limit] == service.count("/search/edges")


def test_listing_reads_all_pages(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """The listing holds every fact, in the order in which they began to hold."""
    service.page_cap = 3
    said = [f"Note {number} of the day." for number in range(10)]
    tell(zep, tenant, *said)
    assert isinstance(zep, Lists)
    assert said == texts(zep.active(tenant))


def test_sources_are_found_where_episodes_have_other_ids(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """An episode that is not called like its message is asked for its turn, once."""
    service.own_uuids = True
    tell(zep, tenant, *SAID)
    assert isinstance(zep, Lists)
    for _ in range(2):
        assert [("t0",), ("t1",), ("t2",), ("t3",)] == [item.sources for item in zep.active(tenant)]
    assert 4 == service.count("GET .*/episodes/")


def test_random_ids_are_not_served(zep: Remote, tenant: str) -> None:
    """Two tenants with the same turns get the same items, ids, order and scores included."""
    lists = []
    for name in (f"{tenant}-one", f"{tenant}-two"):
        tell(zep, name, *SAID, *(f"Note {number} of the day." for number in range(8)))
        assert isinstance(zep, Lists)
        lists.append([*zep.retrieve(query("note of the day", name, 50)), *zep.active(name)])
    assert lists[0] == lists[1]


def test_replies_are_well_formed(zep: Remote, tenant: str) -> None:
    """Replies pass the check that the driver makes."""
    tell(zep, tenant, *SAID)
    assert isinstance(zep, Lists)
    Items().intern(zep.retrieve(query("deadline", tenant)), "retrieve")
    Items().intern(zep.active(tenant), "active")


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_question_is_not_sent(
    zep: Remote, service: ZepDouble, tenant: str, text: str
) -> None:
    """The service refuses an empty query, so nothing is asked and nothing served."""
    tell(zep, tenant, OLD)
    assert [] == list(zep.retrieve(query(text, tenant)))
    assert 0 == service.count("/search/")


# ---------------------------------------------------------------- scope


def test_tenants_are_apart_and_sessions_together(zep: Remote, tenant: str) -> None:
    """A tenant is served what was said in any of its sessions, and nothing of another tenant."""
    other = f"{tenant}-other"
    zep.ingest(turn(0, OLD, tenant, session="morning"))
    zep.ingest(turn(1, NEW, tenant, session="evening"))
    zep.ingest(turn(2, "The deadline of Atlas is 1 June.", other))
    zep.settle()
    assert isinstance(zep, Lists)
    assert {OLD, NEW} == set(texts(zep.retrieve(query("deadline of Atlas", tenant))))
    assert [OLD, NEW] == texts(zep.active(tenant))
    assert ["The deadline of Atlas is 1 June."] == texts(zep.active(other))
    assert [] == list(zep.active("nobody")) == list(zep.retrieve(query("deadline", "nobody")))


def test_each_session_is_a_thread_of_its_tenants_user(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """One user, as many threads as sessions; messages have role, name and time."""
    for number, session in enumerate(("a", "b", "a")):
        zep.ingest(
            turn(number, "Hello.", tenant, session=session, role="assistant" if number else "user")
        )
    zep.settle()
    assert (1, 2) == (service.count("POST /api/v4/users$"), service.count("POST /api/v4/threads$"))
    said = [body["messages"][0] for _, path, body in service.seen if path.endswith("/messages")]
    assert ("user", tenant, "2026-01-01T00:00:00Z") == tuple(
        said[0][key] for key in ("role", "name", "reference_time")
    )
    assert ("assistant", "assistant") == (said[1]["role"], said[1]["name"])


@pytest.mark.slow
def test_two_runs_do_not_meet(make: Make, service: ZepDouble, tmp_path: Path) -> None:
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


def test_a_tenants_name_may_be_anything(zep: Remote, service: ZepDouble) -> None:
    """Names are made fit for the service, and tenants that then look alike stay apart."""
    for name, said in (("Ä/ö ü", OLD), ("---", NEW)):
        tell(zep, name, said)
        assert isinstance(zep, Lists)
        assert [said] == texts(zep.active(name))
    names = [user["user_id"] for user in service.users.values()]
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") for name in names)  # fmt: skip


# ---------------------------------------------------------------- long turns


def test_a_long_turn_goes_as_several_messages(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """30 KB are cut to the length that the service takes, lose nothing, and stay one turn."""
    said = (
        "a" * 2499
        + "  The kick-off is on 3 May. "
        + "lorem  ipsum\n\n dolor  sit amet " * 1000
        + "x" * 3000
    )
    tell(zep, tenant, said)
    (parts,) = (body["messages"] for _, path, body in service.seen if path.endswith("/messages"))
    assert said == "".join(part["content"] for part in parts)
    assert isinstance(zep, Lists)
    assert {("t0",)} == {item.sources for item in zep.active(tenant)}


def test_a_turn_that_does_not_fit_into_a_call_is_not_sent(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """More than 30 messages are refused before anything is sent of them."""
    with pytest.raises(MemoryFault, match="80000 characters; one call takes 30 messages of 2500"):
        zep.ingest(turn(0, "x" * 80_000, tenant))
    assert 0 == service.count("/messages")


# ---------------------------------------------------------------- background work


def test_settle_waits_until_all_is_taken_in(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """Nothing is there before the tasks have ended, and everything after `settle`."""
    service.polls = 4
    for number, said in enumerate(SAID):
        zep.ingest(turn(number, said, tenant))
    assert isinstance(zep, Lists)
    assert [] == list(zep.active(tenant))
    zep.settle()
    assert sorted(SAID) == sorted(texts(zep.active(tenant)))


@pytest.mark.parametrize(
    ("state", "words"),
    [("failed", "t1 .* failed: no model"), ("partial", "t1 .* was done in part: no model")],
)
def test_a_failed_task_is_named_once(
    zep: Remote, service: ZepDouble, tenant: str, state: str, words: str
) -> None:
    """`settle` says which turn failed and why, waits for the others, and does not say it again."""
    service.failing = [("succeeded", ""), (state, "no model"), ("failed", "neither")]
    for number, said in enumerate(SAID):
        zep.ingest(turn(number, said, tenant))
    with pytest.raises(WorkerFault, match=words) as told:
        zep.settle()
    assert "turn t2" in str(told.value)
    assert "turn t0" not in str(told.value)
    zep.settle()
    assert isinstance(zep, Lists)
    assert SAID[3] in texts(zep.active(tenant))


def test_a_task_that_never_ends_is_given_up(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """After the limit `settle` names the turns, having asked at ever longer intervals."""
    service.polls = None
    zep.ingest(turn(0, OLD, tenant))
    zep.ingest(turn(1, NEW, tenant))
    begin = monotonic()
    with pytest.raises(
        WorkerFault, match=r"t0 .* did not end within 1.5 s; taking in turn t1 .* did not end"
    ):
        zep.settle()
    assert 1.4 < monotonic() - begin < 4
    assert service.count("GET /api/v4/tasks") < 15
    zep.settle()


def test_a_look_that_fails_is_repeated(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """An error of the service while its state is asked for is no failure of the work."""
    service.fault("GET /api/v4/tasks", status=503, times=2)
    tell(zep, tenant, OLD)
    assert isinstance(zep, Lists)
    assert [OLD] == texts(zep.active(tenant))


# ---------------------------------------------------------------- erasure


def test_an_erased_tenant_is_gone_at_the_service(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """The user is deleted there; other tenants keep everything; the tenant may speak again."""
    other = f"{tenant}-other"
    tell(zep, tenant, *SAID)
    tell(zep, other, OLD)
    assert isinstance(zep, Erases)
    assert isinstance(zep, Lists)
    before = {item.id for item in zep.active(tenant)}
    users = len(service.users)
    zep.erase(tenant, None)
    zep.settle()
    assert users - 1 == len(service.users)
    assert [] == list(zep.active(tenant)) == list(zep.retrieve(query("deadline", tenant)))
    assert [OLD] == texts(zep.active(other))
    tell(zep, tenant, "A new life.")
    (only,) = zep.active(tenant)
    assert "A new life." == only.text
    assert only.id not in before


def test_a_deletion_that_has_not_happened_is_seen(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """What the service still holds of an erased tenant is listed, not hidden."""
    tell(zep, tenant, OLD)
    service.polls = None
    assert isinstance(zep, Erases)
    assert isinstance(zep, Lists)
    zep.erase(tenant, None)
    with pytest.raises(WorkerFault, match=f"deleting tenant {tenant}"):
        zep.settle()
    assert [OLD] == texts(zep.active(tenant))


def test_an_erased_subject_leaves_no_trace(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """Where no fact names the field, all that names the topic is gone, over all pages, and with a
    fact the turn that it came from; the rest stays."""
    service.page_cap = 2
    tell(
        zep, tenant, *SAID, "ATLAS again.", "Nobody spoke of atlas.", "The owner of Atlas is Kim.",
        "Its size is 4.",
    )  # fmt: skip
    graph = list(service.graphs.values())[-1]
    alone = {"uuid": new(), "fact": "Kim works on Atlas.", "about": None, "episode_uuids": []}
    graph.edges.append(graph.edges[0] | alone)
    (size,) = (edge for edge in graph.edges if edge["fact"] == "Its size is 4.")
    size["fact"] = "The size of Atlas is 4."
    assert isinstance(zep, Erases)
    assert isinstance(zep, Lists)
    zep.erase(tenant, Subject(tenant, "Atlas", "colour", "What is the colour of Atlas?"))
    zep.settle()
    assert [SAID[1], SAID[3]] == texts(zep.active(tenant))
    left = [*(e["content"] for e in graph.episodes), *(n["name"] for n in graph.nodes)]
    assert {SAID[1], SAID[3], "Harbour Lights"} == set(left)


def test_other_fields_of_an_erased_subject_stay(zep: Remote, tenant: str) -> None:
    """What names topic and field goes; what the same topic has besides is nobody's to take."""
    tell(zep, tenant, "The deadline of Atlas is 3 May.", "The budget of Atlas is 40 EUR.")
    assert isinstance(zep, Erases)
    assert isinstance(zep, Lists)
    zep.erase(tenant, Subject(tenant, "Atlas", "deadline", "When is the deadline of Atlas?"))
    zep.settle()
    assert ["The budget of Atlas is 40 EUR."] == texts(zep.active(tenant))


def test_erasing_what_is_not_there_is_harmless(zep: Remote, tenant: str) -> None:
    """Neither an unknown tenant nor an unknown subject disturbs what is there."""
    tell(zep, tenant, OLD)
    assert isinstance(zep, Erases)
    assert isinstance(zep, Lists)
    zep.erase("nobody", None)
    zep.erase("nobody", subject("Atlas", "nobody"))
    zep.erase(tenant, subject("Lighthouse", tenant))
    assert [OLD] == texts(zep.active(tenant))


# ---------------------------------------------------------------- errors


def test_too_many_requests_are_waited_for(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """429 is asked again after as long as the service says, and the turn is there once."""
    service.fault("POST .*/messages", status=429, headers={"Retry-After": "1"})
    service.fault("POST .*/search/edges", status=429, headers={"Retry-After": "0"}, times=3)
    begin = monotonic()
    tell(zep, tenant, OLD)
    assert monotonic() - begin >= 1
    assert [OLD] == texts(zep.retrieve(query("deadline", tenant)))
    assert 2 == service.count("POST .*/messages")


def test_too_long_a_wait_is_a_fault(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """Where the service wants to be left alone for longer than is allowed, nothing was done."""
    service.fault("POST .*/messages", status=429, headers={"Retry-After": "999"}, body=b"busy")
    begin = monotonic()
    with pytest.raises(MemoryFault, match="429: busy"):
        zep.ingest(turn(0, OLD, tenant))
    assert monotonic() - begin < 2
    assert 1 == service.count("POST .*/messages")


@pytest.mark.parametrize("status", [400, 403, 409, 413, 422])
def test_a_refusal_is_certain(zep: Remote, service: ZepDouble, tenant: str, status: int) -> None:
    """Any other 4xx did nothing; the fault has the service's words, and it is asked once."""
    body = b'{"error": {"code": "invalid_request", "message": "not in this plan"}}'
    service.fault("POST .*/messages", status=status, body=body)
    with pytest.raises(MemoryFault, match=f"zep: {status}: invalid_request: not in this plan"):
        zep.ingest(turn(0, OLD, tenant))
    assert 1 == service.count("POST .*/messages")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"status": 500}, "500: out of order"),
        ({"status": 502, "body": b"<html>"}, "502: <html>"),
        ({"status": 408}, "408"),
        ({"status": 202, "body": b"<html>"}, "202: <html>"),
        ({"status": 202, "body": b"[]"}, "another form"),
        ({"status": 202, "body": b"{}"}, "names no task"),
        ({"status": 202, "cut": True}, "connection broke"),
        ({"status": 202, "delay_s": 1.5}, "connection broke: ReadTimeout"),
    ],
    ids=["500", "502", "408", "no json", "no object", "no task", "cut", "slow"],
)
def test_it_is_unknown_what_happened(
    zep: Remote, service: ZepDouble, tenant: str, how: dict[str, Any], words: str
) -> None:
    """After an error of the service, a broken connection or an answer that cannot be read, the
    turn may be there: it is no fault, and it is not sent again."""
    service.fault("POST .*/messages", done=True, **how)
    with pytest.raises(WorkerFault, match=words) as told:
        zep.ingest(turn(0, OLD, tenant))
    assert "Unsure" == type(told.value).__name__
    assert 1 == service.count("POST .*/messages")


def test_a_turn_without_a_thread_was_certainly_not_sent(
    zep: Remote, service: ZepDouble, tenant: str
) -> None:
    """Where it is unknown whether user or thread were made, the turn's own fate is known."""
    service.fault("POST /api/v4/(users|threads)$", status=500, times=2)
    for _ in range(2):
        with pytest.raises(MemoryFault, match="the turn was not sent"):
            zep.ingest(turn(0, OLD, tenant))
    tell(zep, tenant, NEW)
    assert isinstance(zep, Lists)
    assert [NEW] == texts(zep.active(tenant))


def test_nobody_there_is_certain(make: Make, tmp_path: Path) -> None:
    """Where no connection comes about, nothing was done."""
    with (
        lives.life(make(lives.nobody()), tmp_path) as memory,
        pytest.raises(MemoryFault, match="zep: no connection"),
    ):
        memory.ingest(turn(0, OLD, "acme"))


@pytest.mark.parametrize("body", [b"<html>", b'{"items": 3}', b'{"items": [3]}'])
def test_a_malformed_page_is_an_error(
    zep: Remote, service: ZepDouble, tenant: str, body: bytes
) -> None:
    """A page that cannot be read is never taken for an empty one."""
    tell(zep, tenant, OLD)
    service.fault("/edges", status=200, body=body, times=2)
    assert isinstance(zep, Lists)
    for call in (lambda: zep.retrieve(query("deadline", tenant)), lambda: zep.active(tenant)):
        with pytest.raises(WorkerFault, match="zep: 200"):
            call()


def test_pages_that_go_round_are_an_error(zep: Remote, service: ZepDouble, tenant: str) -> None:
    """A cursor that leads back does not lead into an endless reading."""
    tell(zep, tenant, OLD)
    page = b'{"items": [{"uuid": "u", "fact": "f"}], "next_cursor": "again"}'
    service.fault("/edges/list", status=200, body=page, times=9)
    assert isinstance(zep, Lists)
    with pytest.raises(WorkerFault, match="a page leads back"):
        zep.active(tenant)


# ---------------------------------------------------------------- the end


def test_closing_deletes_what_was_made(make: Make, tmp_path: Path) -> None:
    """After closing, the deletion of every user of the run has been asked for, and no list stays."""
    with ZepDouble() as double:
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", OLD)
            tell(memory, "other", NEW)
        assert {f"/api/v4/users/{uuid}" for uuid in double.users} == {
            path for method, path, _ in double.seen if method == "DELETE"
        }
        assert [] == list(tmp_path.rglob("zep-users.txt"))


@pytest.mark.slow
def test_users_that_stay_are_named(make: Make, tmp_path: Path) -> None:
    """A user that cannot be deleted stays in the list of the run folder, and closing goes well."""
    with ZepDouble() as double:
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", OLD)
            double.fault("DELETE", status=403)
        (path,) = tmp_path.rglob("zep-users.txt")
        (user,) = double.users.values()
        assert [user["user_id"]] == path.read_text().splitlines()


@pytest.mark.slow
def test_a_killed_run_is_cleaned_up_by_the_next(make: Make, tmp_path: Path) -> None:
    """Opened in the folder of a run that was killed, the users of that run are deleted first."""
    with ZepDouble() as double:
        killed = make(double.url)
        killed.open(tmp_path)
        tell(killed, "acme", OLD)
        assert killed._worker is not None
        os.kill(killed._worker._process.pid, signal.SIGKILL)
        killed.close()
        (old,) = double.users
        with lives.life(make(double.url), tmp_path) as memory:
            assert 1 == double.count(f"DELETE /api/v4/users/{old}$")
            assert [] == list(memory.retrieve(query("deadline", "acme")))


def test_use_while_not_open_is_a_fault() -> None:
    """Every call before `open` fails with a message that says so."""
    memory = Zep()
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
    with ZepDouble(polls=1) as double:
        with lives.life(make(double.url), tmp_path / "run") as memory:
            assert [] == lives.driven(memory, script, tmp_path / "history.jsonl")
        assert [] == double.refused
