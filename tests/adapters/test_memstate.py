"""MemState: how an ideal model places a message, and the adapter on a double of a checkout."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.memstate import MemState
from steeltrap.adapters.memstate.answers import answer
from steeltrap.adapters.memstate.memory import Fact, Placed
from steeltrap.harness.gateway.backend import BackendError, Call
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, capabilities
from steeltrap.harness.models import Ask, Message, Reply

CHECKOUT = Path(__file__).parent / "doubles" / "memstate"
ON_MAY = "The kick-off of Old Mill is 3 May 2026."
ON_JUNE = "The kick-off of Old Mill is 9 June 2026."
HOST = "The host of Old Mill is Ilse Brandt."
KICK_OFF = Subject("acme", "Old Mill", "kick-off", "When is the kick-off of Old Mill?")


# ---------------------------------------------------------------- the ideal model


def placed(small: Any, turn: str, *titles: str) -> list[Fact]:
    """Where the ideal model puts what a turn of the short script states."""
    said = msgspec.json.encode({"at": "t", "role": "user", "content": small.turns[turn].text})
    listed = "\n".join(msgspec.json.encode(title).decode() for title in titles)
    prompt = f"Topics, one JSON string a line:\n{listed}\n\nMessage:\n{said.decode()}"
    ask = Ask("m", (Message("user", prompt),), "schema", schema_name="placing")
    reply = answer(ask, ScriptMind(small.script))
    assert reply is not None
    return msgspec.json.decode(reply.text, type=Placed).facts


def test_a_fact_is_the_value_of_a_field_of_its_topic(small: Any) -> None:
    """A change has the field of what it changes; small talk has none."""
    assert placed(small, "tell") == [Fact("Old Mill", "kick-off", ON_MAY, "")]
    assert placed(small, "revise") == [Fact("Old Mill", "kick-off", ON_JUNE, "")]
    assert placed(small, "noise") == []


def test_what_is_no_present_value_stands_beside_the_field(small: Any) -> None:
    """Rumours, the past and rules replace no value."""
    fields = [placed(small, turn, "Old Mill")[0].field for turn in ("rumour", "late", "depend")]
    assert fields == ["kick-off (unconfirmed)", "kick-off (in the past)", "review (follows)"]


def test_a_topic_that_is_left_out_is_one_of_the_titles(small: Any) -> None:
    """The titles are shown; where none is, the topic stays unknown."""
    assert placed(small, "host", "Old Mill")[0].topic == "Old Mill"
    assert placed(small, "host")[0].topic == "Unknown topic"


# ---------------------------------------------------------------- the adapter


class Model(Ideal):
    """The ideal model, which can be down."""

    down = False

    async def chat(self, call: Call) -> Reply:
        if self.down:
            raise BackendError("down", status=500)
        return await super().chat(call)


@pytest.fixture
def memstate(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[MemState, Any]]:
    """On the double of a checkout, in this process; with its model."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    model = Model(answer, ScriptMind(small.script), HashEmbedder(), system="memstate")
    with Gateway(model, HashEmbedder(), retries=0) as gateway:
        memory = MemState(checkout=str(CHECKOUT))
        memory.connect(gateway.models)
        memory.open(tmp_path)
        yield memory, model
        memory.close()
    for name in [name for name in sys.modules if name.partition(".")[0] == "memstate"]:
        del sys.modules[name]


def served(memory: MemState, limit: int = 10) -> list[Item]:
    return list(memory.retrieve(Query("q", "2026-02-01T09:00", "acme", KICK_OFF.text, limit)))


def test_a_change_is_a_version_of_its_field(small: Any, memstate: Any) -> None:
    """The old value is kept with its end, and served after the present ones."""
    memory, _ = memstate
    for turn in ("tell", "host", "revise"):
        memory.ingest(small.heard(turn))
    items = [(item.text, item.valid_from, item.valid_to, item.sources) for item in served(memory)]
    assert items == [
        (HOST, "2026-01-03T09:30", None, ("host",)),
        (ON_JUNE, "2026-01-04T09:30", None, ("revise",)),
        (ON_MAY, "2026-01-01T09:30", "2026-01-04T09:30", ("tell",)),
    ]
    assert [item.text for item in memory.history(KICK_OFF)] == [ON_MAY, ON_JUNE]
    assert len(served(memory, limit=2)) == 2
    assert capabilities(memory) == [
        "list", "history", "salience", "maintain", "recover", "erase", "size", "models",
    ]  # fmt: skip


def test_a_query_raises_the_salience_of_what_it_finds(small: Any, memstate: Any) -> None:
    """As the prototype has it, and looking at the salience changes nothing."""
    memory, _ = memstate
    memory.ingest(small.heard("tell"))
    before = memory.salience(KICK_OFF)
    assert before == memory.salience(KICK_OFF) == 1.0
    served(memory)
    assert memory.salience(KICK_OFF) == pytest.approx(1.1)


def test_an_archived_topic_is_not_found_and_can_be_recovered(small: Any, memstate: Any) -> None:
    """What the reasoner archives is out of every query, and still there by its name."""
    memory, _ = memstate
    memory.ingest(small.heard("tell"))
    graph = memory._graphs["acme"]
    graph.executor.policies.topic_count_soft_limit = 1
    graph.executor.policies.forget_salience_threshold = 2.0
    memory.maintain("2026-03-01T09:00")
    assert served(memory) == []
    assert list(memory.active("acme")) == []
    assert [item.text for item in memory.recover(KICK_OFF)] == [ON_MAY]


def test_a_subject_is_erased_with_its_versions(small: Any, memstate: Any, tmp_path: Path) -> None:
    """The field goes with what stands beside it; what is not the subject's stays."""
    memory, _ = memstate
    for turn in ("tell", "host", "revise", "rumour"):
        memory.ingest(small.heard(turn))
    memory.erase("acme", KICK_OFF)
    assert [item.text for item in memory.active("acme")] == [HOST]
    assert not any(b"kick-off" in file.read_bytes() for file in tmp_path.rglob("*.kuzu"))
    memory.erase("acme", None)
    assert list(memory.active("acme")) == []


def test_a_model_that_does_not_answer_is_a_fault(small: Any, memstate: Any) -> None:
    """Nothing is written before the message is placed."""
    memory, model = memstate
    model.down = True
    with pytest.raises(MemoryFault, match="could not be asked"):
        memory.ingest(small.heard("tell"))
    model.down = False
    assert list(memory.active("acme")) == []


def test_without_a_checkout_one_sentence_says_where_to_get_one(
    tmp_path: Path, memstate: Any
) -> None:
    """It is named by a setting; a folder that holds something else is told apart."""
    (connected, _) = memstate
    for path, there in (("", "no checkout is named"), (str(tmp_path), "there is no MemState in")):
        memory = MemState(checkout=path)
        memory.connect(connected._models)
        with pytest.raises(MemoryFault, match=rf"{there}.*clone github\.com/CoDS-GCS/MemState"):
            memory.open(tmp_path)
        memory.close()


def test_a_checkout_that_has_changed_is_refused(
    memstate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is gone is told when a memory is opened, not in the middle of a run."""
    memory, _ = memstate
    monkeypatch.delattr(sys.modules["memstate.core.executor"], "_utc_iso")
    with pytest.raises(MemoryFault, match=r"does not fit this adapter.*_utc_iso"):
        memory.open(tmp_path)
