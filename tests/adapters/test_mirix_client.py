"""MIRIX through its maker's client, in its own environment, against a double of the service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doubles import lives
from doubles.lives import query, subject, tell, turn
from doubles.mirix import KEY, MirixDouble, new

from steeltrap.adapters.mirix_client import MirixClient
from steeltrap.harness.memory import Erases, Lists, MemoryFault, capabilities
from steeltrap.harness.remote import Remote, WorkerFault

Make = Callable[..., Remote]
TARGET = "steeltrap.adapters.mirix_client.MirixClient"


@pytest.fixture(scope="module")
def make() -> Iterator[Make]:
    """Makes systems that have the key."""
    lives.python("mirix-client")

    def made(url: str, **settings: Any) -> Remote:
        return lives.remote("mirix-client", TARGET, "MIRIX_API_KEY", url, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIRIX_API_KEY", KEY)
        yield made


@pytest.fixture(scope="module")
def service() -> Iterator[MirixDouble]:
    with MirixDouble() as double:
        yield double


@pytest.fixture(scope="module")
def opened(
    make: Make, service: MirixDouble, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Remote]:
    with lives.life(make(service.url), tmp_path_factory.mktemp("mirix")) as memory:
        yield memory


@pytest.fixture
def mirix(opened: Remote, service: MirixDouble) -> Iterator[Remote]:
    """One life for most tests, each with a tenant of its own; nothing sent may be refused."""
    service.seen.clear()
    service.refused.clear()
    yield opened
    service.faults.clear()
    service.failing.clear()
    service.polls, service.hidden = 2, 0
    assert [] == service.refused


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return request.node.name


def texts(items: Any) -> list[str]:
    return [item.text for item in items]


OLD, NEW = "The deadline of Atlas is 3 May.", "The deadline of Atlas is 9 May."
LUNCH = "Lunch was late again."
BUDGET = "The budget of Harbour Lights is 40 EUR."
SAID = [OLD, LUNCH, NEW, BUDGET]


# ---------------------------------------------------------------- what it is


def test_is_known_without_its_package() -> None:
    """The class can be looked at where mirix is not installed, and says what it can do."""
    assert {"list", "erase"} == set(capabilities(MirixClient()))


def test_a_missing_key_is_said_in_a_sentence(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a key nothing is sent, and the variable is named."""
    monkeypatch.delenv("MIRIX_API_KEY")
    with MirixDouble() as double:
        with pytest.raises(MemoryFault, match=r"^mirix-client: MIRIX_API_KEY is not set; [^.]+$"):
            make(double.url).open(tmp_path)
        assert [] == double.seen


def test_a_wrong_key_is_the_services_words_and_written_nowhere(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A key that the service does not take is a fault in its words, and the key is not in them."""
    monkeypatch.setenv("MIRIX_API_KEY", "of_somebody_else")
    with MirixDouble() as double:
        with pytest.raises(MemoryFault, match=r"401: .*the key is missing or wrong") as told:
            make(double.url).open(tmp_path)
        assert "somebody" not in str(told.value)
        assert not any(b"somebody" in path.read_bytes() for path in tmp_path.rglob("*.*"))


def test_agents_that_are_there_are_not_changed(mirix: Remote, service: MirixDouble) -> None:
    """A project has one set of agents, which may be somebody's: it is asked for, once, as it is."""
    assert 1 == service.agents
    with MirixDouble() as double, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIRIX_API_KEY", KEY)
        memory = lives.remote("mirix-client", TARGET, "MIRIX_API_KEY", double.url)
        memory.open(Path())
        memory.close()
        assert {"update_agents": False, "provider": "openai"} == double.seen[0][2]


# ---------------------------------------------------------------- what is served


def test_a_turn_goes_as_a_message_with_its_time(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """Role, text and simulated time are sent, in the form of the client's documentation."""
    mirix.ingest(turn(3, LUNCH, tenant, role="assistant"))
    (body,) = (body for _, path, body in service.seen if path == "/memory/add")
    part = {"type": "text", "text": LUNCH}
    assert [{"role": "assistant", "content": [part]}] == body["messages"]
    assert ("2026-01-01T03:00:00", {"session": "s1"}) == (body["occurred_at"], body["filter_tags"])


def test_what_is_found_is_served_by_component(mirix: Remote, tenant: str) -> None:
    """Of each component in turn the best first, with the component before the id; events are dated."""
    tell(mirix, tenant, *SAID)
    served = mirix.retrieve(query("What is the deadline of Atlas? lunch", tenant))
    assert [LUNCH, NEW, BUDGET] == texts(served)
    assert ["episodic", "semantic", "semantic"] == [i.id.partition("-")[0] for i in served if i.id]
    assert ["2026-01-01T01:00", None, None] == [item.valid_from for item in served]
    assert [LUNCH] == texts(mirix.retrieve(query("lunch", tenant, limit=1)))


def test_core_memory_stands_first_and_nothing_twice(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """Blocks with text are served before all else; an event that is recent and relevant once."""
    tell(mirix, tenant, LUNCH)
    user = list(service.users.values())[-1]
    user.memories["core"] = [
        {"id": new("block"), "label": "human", "value": "Likes tea."},
        {"id": new("block"), "label": "persona", "value": ""},
    ]
    user.memories["procedural"] = [
        {"id": new("proc"), "entry_type": "guide", "summary": "How lunch is made",
         "steps": ["Cook.", "Eat."], "created_at": "2026-01-01T00:00:00"}
    ]  # fmt: skip
    served = mirix.retrieve(query("lunch", tenant))
    assert ["Likes tea.", LUNCH, "How lunch is made\nCook.\nEat."] == texts(served)
    assert "core-" in str(served[0].id)
    assert isinstance(mirix, Lists)
    assert set(texts(served)) == set(texts(mirix.active(tenant)))


def test_random_ids_are_not_served(mirix: Remote, tenant: str) -> None:
    """Two tenants with the same turns get the same items in the same order."""
    lists = []
    for name in (f"{tenant}-one", f"{tenant}-two"):
        tell(mirix, name, *SAID)
        assert isinstance(mirix, Lists)
        lists.append([*mirix.active(name), *mirix.retrieve(query("deadline", name))])
    assert lists[0] == lists[1]


def test_what_the_service_does_not_list_is_no_silence(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """Where it counts more memories than it lists, the listing is an error, not a short one."""
    tell(mirix, tenant, LUNCH)
    service.hidden = 1
    assert isinstance(mirix, Lists)
    with pytest.raises(WorkerFault, match="of 2 episodic memories 1 are listed"):
        mirix.active(tenant)


# ---------------------------------------------------------------- background work


def test_settle_waits_until_all_is_taken_in(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """Nothing is there before the queue has been worked through, and everything after `settle`."""
    service.polls = 3
    for number, said in enumerate(SAID):
        mirix.ingest(turn(number, said, tenant))
    assert isinstance(mirix, Lists)
    assert [] == list(mirix.active(tenant))
    mirix.settle()
    assert [LUNCH, NEW, BUDGET] == texts(mirix.active(tenant))


def test_a_failed_turn_is_named_once(mirix: Remote, service: MirixDouble, tenant: str) -> None:
    """`settle` says which turn failed and why, waits for the others, and does not say it again."""
    service.failing = ["", "no model"]
    for number, said in enumerate(SAID):
        mirix.ingest(turn(number, said, tenant))
    with pytest.raises(WorkerFault, match=r"turn t1 \(.*\) failed: no model") as told:
        mirix.settle()
    assert "turn t0" not in str(told.value)
    mirix.settle()


def test_work_that_never_ends_is_given_up(mirix: Remote, service: MirixDouble, tenant: str) -> None:
    """After the limit `settle` names the turn."""
    service.polls = None
    mirix.ingest(turn(0, OLD, tenant))
    with pytest.raises(WorkerFault, match=r"t0 .* did not end within 1.5 s"):
        mirix.settle()
    mirix.settle()


# ---------------------------------------------------------------- erasure


def test_an_erased_tenant_is_cleared_at_the_service(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """Its memories are gone there, those of others stay, and the tenant may speak again."""
    tell(mirix, tenant, *SAID)
    tell(mirix, f"{tenant}-other", OLD)
    assert isinstance(mirix, Erases) and isinstance(mirix, Lists)
    mirix.erase(tenant, None)
    assert ([], [OLD]) == (list(mirix.active(tenant)), texts(mirix.active(f"{tenant}-other")))
    tell(mirix, tenant, LUNCH)
    assert [LUNCH] == texts(mirix.active(tenant))


def test_an_erased_subject_is_deleted_memory_by_memory(mirix: Remote, tenant: str) -> None:
    """What names topic and field goes; where none does, what names the topic."""
    tell(mirix, tenant, *SAID, "Atlas was discussed.", "The owner of Atlas is Kim.")
    assert isinstance(mirix, Erases) and isinstance(mirix, Lists)
    mirix.erase(tenant, subject("Atlas", tenant))
    assert [LUNCH, "Atlas was discussed.", BUDGET, "The owner of Atlas is Kim."] == texts(
        mirix.active(tenant)
    )
    mirix.erase(tenant, subject("Atlas", tenant))
    assert [LUNCH, BUDGET] == texts(mirix.active(tenant))


def test_a_subject_in_core_memory_cannot_be_erased(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """No call takes it out of there, and that is said."""
    tell(mirix, tenant, OLD)
    user = list(service.users.values())[-1]
    user.memories["core"] = [{"id": new("block"), "label": "human", "value": "Deadline of Atlas."}]
    assert isinstance(mirix, Erases) and isinstance(mirix, Lists)
    with pytest.raises(WorkerFault, match="the core memory names 'Atlas'"):
        mirix.erase(tenant, subject("Atlas", tenant))
    assert ["Deadline of Atlas."] == texts(mirix.active(tenant))


def test_users_of_a_killed_run_are_emptied(make: Make, tmp_path: Path) -> None:
    """Closing clears the memory of every user, and so does opening the folder of a killed run."""
    with MirixDouble() as double:
        own = tmp_path / "memory"
        own.mkdir()
        (own / "mirix-users.txt").write_text("steeltrap-old\n", "utf-8")
        double.create_or_get(None, {"user_id": "steeltrap-old"})  # type: ignore[arg-type]
        with lives.life(make(double.url), tmp_path) as memory:
            tell(memory, "acme", OLD)
        cleared = [body["user_id"] for _, path, body in double.seen if path == "/memory/clear"]
        assert ("steeltrap-old", 2) == (cleared[0], len(cleared))
        assert not (own / "mirix-users.txt").exists()


# ---------------------------------------------------------------- errors


def test_too_many_requests_are_waited_for(mirix: Remote, service: MirixDouble, tenant: str) -> None:
    """429 is asked again as the service says, by us and not by the client, and the turn is there once."""
    service.fault("POST /memory/add", status=429, headers={"Retry-After": "0"}, times=2)
    tell(mirix, tenant, LUNCH)
    assert isinstance(mirix, Lists)
    assert [LUNCH] == texts(mirix.active(tenant))
    assert 3 == service.count("POST /memory/add")


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_refusal_is_certain(
    mirix: Remote, service: MirixDouble, tenant: str, status: int
) -> None:
    """Any other 4xx did nothing; the fault has the service's words, and it is asked once."""
    service.fault("POST /memory/add", status=status, body=b'{"detail": "not in this plan"}')
    with pytest.raises(MemoryFault, match=f"mirix-client: {status}: .*not in this plan"):
        mirix.ingest(turn(0, OLD, tenant))
    assert 1 == service.count("POST /memory/add")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"status": 500}, "500: .*out of order"),
        ({"status": 502, "body": b"<html>"}, "502"),
        ({"status": 200, "body": b"<html>"}, "another form|connection broke"),
        ({"status": 200, "body": b"{}"}, "names no trace"),
        ({"status": 200, "body": b'{"success": false, "trace_id": "t"}'}, "names no trace"),
        ({"status": 200, "cut": True}, "connection broke"),
        ({"status": 200, "delay_s": 1.5}, "connection broke"),
    ],
    ids=["500", "502", "no json", "no trace", "no success", "cut", "slow"],
)
def test_it_is_unknown_what_happened(
    mirix: Remote, service: MirixDouble, tenant: str, how: dict[str, Any], words: str
) -> None:
    """After an error of the service, a broken connection or an answer that cannot be read, the
    turn may be there: it is no fault, and it is not sent again."""
    service.fault("POST /memory/add", done=True, **how)
    with pytest.raises(WorkerFault, match=words) as told:
        mirix.ingest(turn(0, OLD, tenant))
    assert "Unsure" == type(told.value).__name__
    assert 1 == service.count("POST /memory/add")


def test_a_turn_without_a_user_was_certainly_not_sent(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """Where it is unknown whether the user was made, the turn's own fate is known."""
    service.fault("POST /users/create_or_get", status=500)
    with pytest.raises(MemoryFault, match="the turn was not sent"):
        mirix.ingest(turn(0, OLD, tenant))
    assert 0 == service.count("POST /memory/add")


def test_nobody_there_is_certain(make: Make, tmp_path: Path) -> None:
    """Where no connection comes about, nothing was done."""
    with pytest.raises(MemoryFault, match="mirix-client: no connection"):
        make(lives.nobody()).open(tmp_path)


def test_a_search_that_did_not_work_is_an_error(
    mirix: Remote, service: MirixDouble, tenant: str
) -> None:
    """An answer without success is no empty answer."""
    tell(mirix, tenant, OLD)
    service.fault("POST /memory/retrieve", status=200, body=b'{"success": false, "memories": {}}')
    with pytest.raises(WorkerFault, match="no memories"):
        mirix.retrieve(query("deadline", tenant))
