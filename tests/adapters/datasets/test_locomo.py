"""The LoCoMo loader, on an invented file always and on the real one where it is."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.locomo import DatasetError, scripts
from steeltrap.adapters.vector import Fusion, Vector
from steeltrap.harness.memory import Query, Utterance
from steeltrap.harness.script import Probe, Script, Turn


def invented() -> list[dict[str, Any]]:
    """A conversation in the form of the data set, with every defect of evidence that it has."""
    evidence: list[tuple[int, list[str]]] = [
        (1, ["D1:1", "D2:1"]),
        (2, ["D1:2; D2:2"]),
        (3, ["D", "D:2:01"]),
        (4, ["D2:1", "D9:4"]),
        (5, []),
        (4, ["D1:1", "D1:1"]),
    ]
    return [
        {
            "sample_id": "conv-1",
            "conversation": {
                "speaker_a": "Ilse",
                "speaker_b": "Tomás",
                "session_1_date_time": "11:59 pm on 8 May, 2023",
                "session_10_date_time": "12:05 am on 2 June, 2023",
                "session_2_date_time": "9:30 am on 9 May, 2023",
                "session_11_date_time": "9:30 am on 9 July, 2023",
                "session_10": [{"speaker": "Ilse", "dia_id": "D10:1", "text": "Back home!"}],
                "session_2": [
                    {
                        "speaker": "Ilse",
                        "dia_id": "D2:1",
                        "text": "Look.",
                        "blip_caption": "a photo of a canoe",
                        "img_url": ["somewhere"],
                    },
                    {"speaker": "Tomás", "dia_id": "D2:2", "text": "Nice."},
                ],
                "session_1": [
                    {"speaker": "Tomás", "dia_id": "D1:1", "text": "Hi, Ilse."},
                    {"speaker": "Ilse", "dia_id": "D1:2", "text": "Grüße!"},
                ],
            },
            "qa": [
                {"question": f"Question {at}?", "answer": at, "category": category, "evidence": ids}
                for at, (category, ids) in enumerate(evidence)
            ],
            "event_summary": {},
        }
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "invented.json"
    path.write_text(json.dumps(invented()))
    return path


def probes(script: Script) -> list[Probe]:
    return [step for step in script.steps if isinstance(step, Probe)]


def test_turns_come_in_order_with_speaker_caption_and_time(file: Path) -> None:
    """Sessions in number order, a minute a turn from the session's time, speaker a as the user."""
    (script,) = scripts(file, check=False)
    turns = [step for step in script.steps if isinstance(step, Turn)]
    assert [(turn.id, turn.at, turn.session, turn.role, turn.text) for turn in turns] == [
        ("D1:1", "2023-05-08T23:59", "session_1", "assistant", "Tomás: Hi, Ilse."),
        ("D1:2", "2023-05-09T00:00", "session_1", "user", "Ilse: Grüße!"),
        (
            "D2:1",
            "2023-05-09T09:30",
            "session_2",
            "user",
            "Ilse: Look. [image: a photo of a canoe]",
        ),
        ("D2:2", "2023-05-09T09:31", "session_2", "assistant", "Tomás: Nice."),
        ("D10:1", "2023-06-02T00:05", "session_10", "user", "Ilse: Back home!"),
    ]
    assert {"conv-1"} == {step.tenant for step in script.steps}
    assert {("noise",)} == {tuple(op.op for op in turn.ops) for turn in turns}


def test_questions_follow_all_turns(file: Path) -> None:
    """Every question is an in-script probe for evidence, after the last turn."""
    (script,) = scripts(file, check=False)
    assert script.steps[5:] == probes(script)
    assert {("evidence", "in-script", "2023-06-02T00:06")} == {
        (probe.ask, probe.observe, probe.at) for probe in probes(script)
    }
    assert [probes(script)[0].text, probes(script)[0].category] == ["Question 0?", "1"]


def test_evidence_is_repaired_or_dropped_and_flagged(file: Path) -> None:
    """Joined and malformed ids are repaired, ids of no turn dropped, and both are flagged."""
    (script,) = scripts(file, check=False)
    assert [(probe.evidence, probe.flags) for probe in probes(script)] == [
        (("D1:1", "D2:1"), ()),
        (("D1:2", "D2:2"), ("evidence-defect",)),
        (("D2:1",), ("evidence-defect",)),
        (("D2:1",), ("evidence-defect",)),
        ((), ("evidence-defect",)),
        (("D1:1",), ()),
    ]
    assert (script.header.notes["evidence_defects"]) == {
        "q1": "joined",
        "q2": "malformed",
        "q3": "no-such-turn",
        "q4": "empty",
    }
    assert script.header.notes["without_evidence"] == ["q4"]


def test_audit_findings_become_flags(file: Path, tmp_path: Path) -> None:
    """A wrong citation and a wrong gold are told apart, and counted in the notes."""
    audit = tmp_path / "audit.json"
    findings = [(0, "WRONG_CITATION"), (1, "TEMPORAL_ERROR")]
    audit.write_text(
        json.dumps(
            [
                {
                    "question_id": f"locomo_0_qa{at}",
                    "question": f"Question {at}?",
                    "error_type": kind,
                }
                for at, kind in findings
            ]
        )
    )
    (script,) = scripts(file, audit, check=False)
    assert [probe.flags for probe in probes(script)[:2]] == [
        ("wrong-citation",),
        ("evidence-defect", "wrong-gold:TEMPORAL_ERROR"),
    ]
    assert script.header.notes["audit"]["wrong-gold:TEMPORAL_ERROR"] == 1
    (without,) = scripts(file, check=False)
    assert "none given" in without.header.notes["audit"]


@pytest.mark.parametrize(
    ("number", "text"), [("locomo_0_qa0", "Another question?"), ("locomo_7_qa0", "?"), ("x", "?")]
)
def test_an_audit_of_other_data_is_refused(
    file: Path, tmp_path: Path, number: str, text: str
) -> None:
    """A finding on a question that the data does not have is an error that names it."""
    audit = tmp_path / "audit.json"
    audit.write_text(
        json.dumps([{"question_id": number, "question": text, "error_type": "AMBIGUOUS"}])
    )
    with pytest.raises(DatasetError, match=f"{number} is not a question of the data"):
        scripts(file, audit, check=False)


def test_categories_can_be_chosen(file: Path) -> None:
    """Only the questions of the chosen categories are asked; their ids stay."""
    (script,) = scripts(file, check=False, categories=["3", "4"])
    assert [probe.id for probe in probes(script)] == ["q2", "q3", "q5"]
    with pytest.raises(DatasetError, match="no category '6'; known: 1, 2, 3, 4, 5"):
        scripts(file, check=False, categories=["6"])


def test_another_file_is_refused_and_can_be_forced(file: Path) -> None:
    """A file with another hash is refused; the message names both hashes and the way round."""
    with pytest.raises(DatasetError, match=r"sha256 [0-9a-f]{64}, expected 79fa87e9.*check=false"):
        scripts(file)
    assert len(scripts(file, check=False)) == 1


def test_gzip_makes_no_difference(file: Path, tmp_path: Path) -> None:
    """A gzipped file gives the same scripts, to the hash, as the plain one."""
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    (plain,), (zipped,) = scripts(file, check=False), scripts(packed, check=False)
    assert plain.sha256() == zipped.sha256()


def test_a_script_survives_its_file(file: Path, tmp_path: Path) -> None:
    """Written and read again, a script has the same identity."""
    (script,) = scripts(file, check=False)
    assert script.write(tmp_path / "s.jsonl") == Script.read(tmp_path / "s.jsonl").sha256()


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda d: d[0].pop("qa"), "missing required field `qa`"),
        (lambda d: d[0]["qa"][0].update(category=9), r"record 1: .*\$\.qa\[0\]\.category"),
        (lambda d: d[0]["conversation"]["session_2"][1].pop("text"), "conv-1, session_2: .*text"),
        (lambda d: d[0]["conversation"].pop("session_2_date_time"), "conv-1, session_2"),
        (lambda d: d[0]["conversation"].update(session_2_date_time="noon"), "conv-1, session_2"),
        (lambda d: d[0].update(conversation={}), "conv-1 has no session"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, break_it: Any, said: str) -> None:
    """A file of another form is refused, checked or not, with the place that is wrong."""
    broken = invented()
    break_it(broken)
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))
    with pytest.raises(DatasetError, match=said):
        list(scripts(path, check=False))


def test_answers_and_how_they_are_scored_are_kept(tmp_path: Path) -> None:
    """An answer is text, an adversarial question has none; what it tempts to is told apart."""
    data = invented()
    data[0]["qa"][4] |= {"adversarial_answer": "A canoe"}
    del data[0]["qa"][4]["answer"]
    path = tmp_path / "data.json"
    path.write_text(json.dumps(data))
    (script,) = scripts(path, check=False)
    assert [(probe.gold, probe.judged) for probe in probes(script)[3:5]] == [
        ("3", "locomo/single-hop"),
        ("", "locomo/adversarial"),
    ]
    assert script.header.notes["tempting"] == [{"probe": "q4", "answer": "A canoe"}]


@pytest.mark.parametrize("content", [None, b"\x1f\x8bshort", b"no json"])
def test_an_unreadable_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """A missing, torn or senseless file is an error that names it."""
    path = tmp_path / "file.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"file\.json"):
        scripts(path, check=False)


# ---------------------------------------------------------------- the real data


@pytest.fixture(scope="module")
def real(data: Path) -> list[Script]:
    folder = data / "locomo"
    if not folder.is_dir():
        pytest.skip(f"LoCoMo is not in {folder}")
    return list(scripts(folder, folder))


def test_real_counts(real: list[Script]) -> None:
    """Ten conversations, 5882 turns, 272 sessions, and 1986 questions in five categories."""
    names = "26 30 41 42 43 44 47 48 49 50".split()
    assert [f"conv-{name}" for name in names] == [script.header.tenants[0] for script in real]
    turns = [step for script in real for step in script.steps if isinstance(step, Turn)]
    assert len(turns) == 5882
    assert len({(turn.tenant, turn.session) for turn in turns}) == 272
    asked = Counter(probe.category for script in real for probe in probes(script))
    assert asked == source.card("locomo").counts["questions"]
    assert sum(not probe.gold for script in real for probe in probes(script)) == 444
    assert sum(len(script.header.notes["tempting"]) for script in real) == 446
    for script in real:
        ids = [step.id for step in script.steps]
        assert len(ids) == len(set(ids))
        times = [step.at for step in script.steps]
        assert sorted(times) == times


def test_real_defects_are_those_on_the_card(real: list[Script]) -> None:
    """The 13 questions with defective evidence are those of `locomo.json`; four have none left."""
    card = source.card("locomo")
    listed = {question: one.about for one in card.defects for question in one.questions}
    found = {
        f"{script.header.tenants[0]}/{question}": kind
        for script in real
        for question, kind in script.header.notes["evidence_defects"].items()
    }
    assert len(found) == 13
    assert listed == found
    assert sum(len(script.header.notes["without_evidence"]) for script in real) == 4


def test_real_audit_flags(real: list[Script]) -> None:
    """99 questions have a doubted gold, by type, and 57 a doubted citation only."""
    flags = Counter(flag for script in real for probe in probes(script) for flag in probe.flags)
    assert flags == {
        "evidence-defect": 13,
        "wrong-citation": 57,
        "wrong-gold:HALLUCINATION": 33,
        "wrong-gold:TEMPORAL_ERROR": 26,
        "wrong-gold:ATTRIBUTION_ERROR": 24,
        "wrong-gold:AMBIGUOUS": 13,
        "wrong-gold:INCOMPLETE": 3,
    }


def recalled(memory: Vector, script: Script, k: int, folder: Path) -> list[float]:
    """Share of evidence among the first k, for the questions of categories 1 to 4."""
    memory.open(folder)
    shares = []
    for step in script.steps:
        if isinstance(step, Turn):
            memory.ingest(
                Utterance(step.id, step.at, step.tenant, step.session, step.role, step.text)
            )
        elif isinstance(step, Probe) and step.evidence and step.category != "5":
            served = memory.retrieve(Query(step.id, step.at, step.tenant, step.text, k))
            found = {source for item in served for source in item.sources or ()}
            shares.append(fmean(turn in found for turn in step.evidence))
    memory.close()
    return shares


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        ("bm25", 55.1),
        pytest.param("dense", 38.2, marks=pytest.mark.slow),
        pytest.param("hybrid", 53.0, marks=pytest.mark.slow),
    ],
)
def test_real_recall_is_what_was_measured(
    real: list[Script], tmp_path: Path, fusion: Fusion, expected: float
) -> None:
    """Evidence recall at 10 over the 1536 questions of categories 1 to 4, with WordLlama."""
    shares = [
        share
        for script in real
        for share in recalled(
            Vector(fusion=fusion), script, 10, tmp_path / script.header.tenants[0]
        )
    ]
    assert len(shares) == 1536
    assert expected == pytest.approx(100 * fmean(shares), abs=0.1)
