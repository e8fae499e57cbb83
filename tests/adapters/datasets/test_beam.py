"""The BEAM loader, on invented conversations always and on the real ones where they are."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.datasets import beam, source
from steeltrap.adapters.datasets.beam import ABILITIES, DatasetError, scripts
from steeltrap.harness.script import Probe, Script, Turn


def message(number: int, text: str, anchor: str | None = None) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "id": number, "content": text} | (
        {"time_anchor": anchor} if anchor else {}
    )


def batch(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"batch_number": 1, "time_anchor": None, "turns": [list(messages)]}


def chat() -> list[dict[str, Any]]:
    """Three batches: dated, without a date, and dated before the end of the one before."""
    return [
        batch(
            message(0, "I use Rust. ->-> 1,1", "March-15-2024"),
            message(1, "Why ->-> that?"),
        ),
        batch(message(2, "For speed.\n ->->  1,N/A"), message(3, "I see.")),
        batch(message(4, "Now I use Go ->-> 2,3)", "March-16-2024"), message(5, "Good.")),
    ]


def questions() -> dict[str, list[dict[str, Any]]]:
    """One or two questions of each ability, with every form of evidence and every defect."""
    told = {"difficulty": "easy", "rubric": ["LLM response should state: Go"]}
    return {
        "abstention": [{"question": "Q0", "ideal_response": "no word of it", **told}],
        "contradiction_resolution": [
            {
                "question": "Q1",
                "ideal_answer": "which is it?",
                "source_chat_ids": {"first_statement": [0], "second_statement": [4]},
                **told,
            }
        ],
        "event_ordering": [
            {
                "question": "Q2",
                "answer": "Rust, Go",
                "ordering_tested": ["1st: Rust", "2nd: Go"],
                "source_chat_ids": [0, [2, 4]],
                **told | {"rubric": ["Rust", "Go"]},
            },
            {
                "question": "Q3",
                "answer": "Rust, Go",
                "ordering_tested": ["1st: Rust", "2nd: Go"],
                "source_chat_ids": [0, 2, 4],
                **told,
            },
        ],
        "information_extraction": [
            {"question": "Q4", "answer": 3, "source_chat_ids": [2, 99, "x"], **told}
        ],
        "instruction_following": [
            {"question": "Q5", "expected_compliance": "code", "source_chat_ids": [5, 5], **told}
        ],
        "knowledge_update": [
            {
                "question": "Q6",
                "answer": "Go",
                "source_chat_ids": {"original_info": [0], "updated_info": [4]},
                **told,
            },
            {
                "question": "Q7",
                "answer": "Go",
                "source_chat_ids": {"original_info": [0], "updated_info": []},
                **told,
            },
            {
                "question": "Q8",
                "answer": "Go",
                "source_chat_ids": {"original_info": [4], "updated_info": [4]},
                **told,
            },
        ],
        "summarization": [
            {"question": "Q9", "ideal_summary": "All.", "source_chat_ids": [], **told}
        ],
    }


def invented() -> list[dict[str, Any]]:
    return [
        {
            "conversation_id": "7",
            "scale": "100K",
            "topic": {"id": 7},
            "chat": chat(),
            "probing_questions": questions(),
        }
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "invented.json"
    path.write_text(json.dumps(invented()))
    return path


def probes(script: Script) -> list[Probe]:
    return [step for step in script.steps if isinstance(step, Probe)]


def turns(script: Script) -> list[Turn]:
    return [step for step in script.steps if isinstance(step, Turn)]


def test_batches_are_sessions_and_times_never_step_back(file: Path) -> None:
    """Dated batches begin at nine, undated ones a day later, early ones after the one before."""
    (script,) = scripts(file, check=False)
    assert [(turn.id, turn.session, turn.at, turn.role) for turn in turns(script)] == [
        ("m0", "b1", "2024-03-15T09:00", "user"),
        ("m1", "b1", "2024-03-15T09:01", "assistant"),
        ("m2", "b2", "2024-03-16T09:00", "user"),
        ("m3", "b2", "2024-03-16T09:01", "assistant"),
        ("m4", "b3", "2024-03-16T09:02", "user"),
        ("m5", "b3", "2024-03-16T09:03", "assistant"),
    ]
    assert {probe.at for probe in probes(script)} == {"2024-03-16T09:04"}
    times = script.header.notes["times"]
    assert "a day after the batch before" in times
    assert "put after it" in times


def test_generator_marks_are_stripped_from_what_the_user_says(file: Path) -> None:
    """The mark at the end of a user's text goes; an assistant's text stays as it is."""
    (script,) = scripts(file, check=False)
    assert [turn.text for turn in turns(script)] == [
        "I use Rust.",
        "Why ->-> that?",
        "For speed.\n",
        "I see.",
        "Now I use Go",
        "Good.",
    ]


def test_evidence_of_every_form_becomes_turns(file: Path) -> None:
    """Lists, lists of lists and dicts of lists; each turn once; what cites nothing is flagged."""
    (script,) = scripts(file, check=False)
    assert [(probe.id, probe.evidence, probe.flags) for probe in probes(script)] == [
        ("q00", (), ("abstention",)),
        ("q01", ("m0", "m4"), ()),
        ("q02", ("m0", "m2", "m4"), ()),
        ("q03", ("m0", "m2", "m4"), ("order-unlike-rubric",)),
        ("q04", ("m2",), ("evidence-defect",)),
        ("q05", ("m5",), ()),
        ("q06", ("m0", "m4"), ()),
        ("q07", ("m0",), ("no-updated-info",)),
        ("q08", ("m4",), ("update-in-same-message",)),
        ("q09", (), ("no-evidence",)),
    ]


def test_what_evidence_is_for_and_the_order_of_events_are_kept(file: Path) -> None:
    """Roles by question, and events in order, with their turns where these go with them."""
    notes = scripts(file, check=False)[0].header.notes
    assert notes["evidence_roles"][0] == {
        "probe": "q01",
        "first_statement": ["m0"],
        "second_statement": ["m4"],
    }
    assert [one["probe"] for one in notes["evidence_roles"]] == ["q01", "q06", "q07", "q08"]
    assert notes["event_order"] == [
        {"probe": "q02", "events": ["Rust", "Go"], "turns": [["m0"], ["m2", "m4"]]},
        {"probe": "q03", "events": ["Rust", "Go"], "turns": []},
    ]


def test_answers_keep_how_they_are_scored(file: Path) -> None:
    """The gold text has another name for each ability; rubric and ability go with it."""
    (script,) = scripts(file, check=False)
    golds = [(probe.gold, probe.judged) for probe in probes(script)]
    assert golds[0] == ("no word of it", "beam/abstention")
    assert golds[1] == ("which is it?", "beam/contradiction-resolution")
    assert golds[4] == ("3", "beam/information-extraction")
    assert golds[5] == ("code", "beam/instruction-following")
    assert golds[9] == ("All.", "beam/summarization")
    assert probes(script)[2].rubric == ("Rust", "Go")
    assert {probe.category for probe in probes(script)} == {
        name.replace("_", "-") for name in questions()
    }


def test_abilities_can_be_chosen_and_ids_stay(file: Path) -> None:
    """Only the questions asked for are there, under the ids that they always have."""
    (script,) = scripts(file, check=False, abilities=["knowledge_update", "abstention"])
    assert [probe.id for probe in probes(script)] == ["q00", "q06", "q07", "q08"]


def test_plans_are_read_one_after_the_other(tmp_path: Path) -> None:
    """At 10M a chat is a list of plans; an id that two messages have is no clear evidence."""
    data = invented()
    first, second, third = chat()
    third["turns"][0][0]["id"] = 0
    data[0]["chat"] = [{"plan-1": [first], "plan-2": None}, {"plan-2": [second, third]}]
    path = tmp_path / "plans.json"
    path.write_text(json.dumps(data))
    (script,) = scripts(path, check=False, scale="10M")
    assert [turn.session for turn in turns(script)] == ["b1", "b1", "b2", "b2", "b3", "b3"]
    assert (probes(script)[7].evidence, "evidence-defect" in probes(script)[7].flags) == (
        ("m0", "m4"),
        True,
    )


def test_upstream_s_own_folders_give_the_same(file: Path, tmp_path: Path) -> None:
    """A copy of the repository gives the scripts of a packed file, in the order of the numbers."""
    packed = [
        {**invented()[0], "conversation_id": number, "topic": {"id": number}}
        for number in ("2", "10")
    ]
    one = tmp_path / "packed.json"
    one.write_text(json.dumps(packed, separators=(",", ":"), ensure_ascii=False))
    for record in packed:
        folder = tmp_path / "chats" / "100K" / str(record["conversation_id"])
        (folder / "probing_questions").mkdir(parents=True)
        (folder / "topic.json").write_text(json.dumps(record["topic"], indent=2))
        (folder / "chat.json").write_text(json.dumps(record["chat"], indent=4))
        asked = folder / "probing_questions" / "probing_questions.json"
        asked.write_text(json.dumps(record["probing_questions"], indent=4))
    want = [script.sha256() for script in scripts(one, check=False)]
    assert want == [script.sha256() for script in scripts(tmp_path / "chats", check=False)]
    assert want == [script.sha256() for script in scripts(tmp_path, check=False)]
    (tmp_path / "chats" / "100K" / "2" / "topic.json").unlink()
    with pytest.raises(DatasetError, match=r"topic\.json: cannot be read \(no such file\)"):
        scripts(tmp_path, check=False)


def test_the_same_bytes_twice(file: Path, tmp_path: Path) -> None:
    """Two makings and a gzipped file give the same script, and it survives being written."""
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    made = [scripts(path, check=False)[0] for path in (file, file, packed)]
    assert len({script.sha256() for script in made}) == 1
    assert made[0].write(tmp_path / "s.jsonl") == Script.read(tmp_path / "s.jsonl").sha256()


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda d: d.pop("chat"), "record 1: .*chat"),
        (lambda d: d["chat"][0].update(turns=[{"role": "user"}]), "conversation 7, chat: "),
        (lambda d: d["chat"][0]["turns"][0][0].update(time_anchor="noon"), "batch 1: .*'noon'"),
        (lambda d: d.update(chat=[]), "has no messages"),
        (lambda d: d["probing_questions"].update(guessing=[]), "unknown ability 'guessing'"),
        (lambda d: d["probing_questions"].update(abstention=[{}]), "record 1: .*question"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, break_it: Any, said: str) -> None:
    """A record of another form is an error that names the file and the place."""
    data = invented()
    break_it(data[0])
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(data))
    with pytest.raises(DatasetError, match=rf"broken\.json: .*{said}"):
        list(scripts(path, check=False))


def test_unknown_settings_are_refused(file: Path) -> None:
    """A scale or an ability that there is not is an error."""
    with pytest.raises(DatasetError, match="no scale '2M'"):
        scripts(file, scale="2M")
    with pytest.raises(DatasetError, match="no ability 'guessing'"):
        scripts(file, check=False, abilities=["guessing"])


# ---------------------------------------------------------------- the real data


@pytest.fixture(scope="module")
def folder(data: Path) -> Path:
    folder = data / "beam"
    if not folder.is_dir():
        pytest.skip(f"BEAM is not in {folder}")
    return folder


@pytest.fixture(scope="module", params=["100K", "500K", "1M"])
def real(folder: Path, request: pytest.FixtureRequest) -> tuple[str, Sequence[Script]]:
    return request.param, list(scripts(folder, scale=request.param))


def test_real_counts(real: tuple[str, Sequence[Script]]) -> None:
    """Conversations and messages as on the card; two questions of each ability in each."""
    scale, made = real
    counts = source.card("beam").counts[scale]
    assert len(made) == counts["conversations"]
    assert sum(script.turns for script in made) == counts["messages"]
    kinds = [name.replace("_", "-") for name in ABILITIES]
    for script in made:
        assert Counter(probe.category for probe in probes(script)) == dict.fromkeys(kinds, 2)
        assert all(probe.gold and probe.rubric for probe in probes(script))
        times = [step.at for step in script.steps]
        assert sorted(times) == times
        assert all(re.fullmatch(r"[mq]\d+", step.id) for step in script.steps)


def test_real_defects_are_those_on_the_card(real: tuple[str, Sequence[Script]]) -> None:
    """Every question with a defect is listed, and every listed one is flagged."""
    scale, made = real
    found: dict[str, set[str]] = {}
    for script in made:
        for probe in probes(script):
            for flag in probe.flags:
                name = f"{scale}/{script.header.settings['conversation']}/{probe.id}"
                found.setdefault(flag, set()).add(name)
    abstentions = found.pop("abstention")
    assert len(abstentions) == 2 * len(made)
    listed = {
        defect.kind: {name for name in defect.questions if name.startswith(f"{scale}/")}
        for defect in source.card("beam").defects
    }
    assert found == {kind: names for kind, names in listed.items() if names}


def test_real_marks_are_gone(real: tuple[str, Sequence[Script]], folder: Path) -> None:
    """No text of a user ends in a mark, and nothing but marks was taken off."""
    scale, made = real
    (name,) = folder.glob(f"beam_{scale.lower()}*")
    before = [
        said["content"]
        for record in json.loads(gzip.decompress(name.read_bytes()))
        for part in record["chat"]
        for turn in part["turns"]
        for said in turn
    ]
    after = [turn for script in made for turn in turns(script)]
    gone = [
        old.removeprefix(new.text)
        for old, new in zip(before, after, strict=True)
        if old != new.text
    ]
    assert len(gone) == {"100K": 2155, "500K": 2057, "1M": 628}[scale]
    assert all(re.fullmatch(r" ?->->[ \w,/).]{3,20}", mark) for mark in gone)
    assert not any("->->" in turn.text for turn in after if turn.role == "user")


def test_real_events_are_in_order(real: tuple[str, Sequence[Script]]) -> None:
    """The order of events is the rubric's, where both have as many."""
    for script in real[1]:
        asked = {probe.id: probe for probe in probes(script)}
        for one in script.header.notes["event_order"]:
            probe = asked[one["probe"]]
            if "order-unlike-rubric" not in probe.flags:
                pairs = zip(one["events"], probe.rubric, strict=True)
                assert all(point.lower().endswith(event.lower()) for event, point in pairs)


def test_real_upstream_layout_has_the_known_hash(folder: Path, tmp_path: Path) -> None:
    """Taken apart as in upstream's repository, the 100K scale is known again by its hash."""
    records = json.loads(gzip.decompress((folder / "beam_100k.json.gz").read_bytes()))
    for record in records:
        chats = tmp_path / "100K" / record["conversation_id"]
        (chats / "probing_questions").mkdir(parents=True)
        (chats / "topic.json").write_text(json.dumps(record["topic"]))
        (chats / "chat.json").write_text(json.dumps(record["chat"], indent=4))
        asked = chats / "probing_questions" / "probing_questions.json"
        asked.write_text(json.dumps(record["probing_questions"]))
    assert len(scripts(tmp_path)) == 20


def test_real_scale_is_told(folder: Path) -> None:
    """A file of another scale than was asked for says which it is."""
    with pytest.raises(DatasetError, match=r"is of scale 1M; set script\.scale=1M"):
        beam.scripts(folder / "beam_1m_subset1.json.gz")
