"""The HaluMem loader, on an invented user always and on a real one, read in place, where it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.halumem import DatasetError, scripts
from steeltrap.harness.script import Probe, Script, Turn


def said(text: str, at: str) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": f"{text} ({role})", "timestamp": at, "dialogue_turn": 0}
        for role in ("user", "assistant")
    ]


def point(text: str, kind: str = "secondary", old: list[str] | None = None) -> dict[str, Any]:
    return {
        "index": 1,
        "memory_content": text,
        "memory_source": kind,
        "memory_type": "Event Memory",
        "is_update": str(bool(old)),
        "original_memories": old or [],
    }


def question(text: str, kind: str, *points: str) -> dict[str, Any]:
    return {
        "question": text,
        "answer": f"The answer to {text}",
        "evidence": [{"memory_content": one, "memory_type": "Event Memory"} for one in points],
        "difficulty": "easy",
        "question_type": kind,
    }


def invented() -> dict[str, Any]:
    """A user of three sessions; the second begins before the first ends."""
    return {
        "uuid": "u-1",
        "persona_info": "not for systems",
        "sessions": [
            {
                "start_time": "Sep 04, 2025, 10:44:31",
                "end_time": "Sep 04, 2025, 11:00:00",
                "dialogue": said("I run.", "Sep 04, 2025, 10:44:31"),
                "memory_points": [point("runs"), point("flies", "interference")],
            },
            {
                "start_time": "Sep 04, 2025, 10:40:00",
                "end_time": "Sep 04, 2025, 11:30:00",
                "dialogue": said("I swim.", "Sep 04, 2025, 10:40:00"),
                "memory_points": [point("swims", old=["runs"])],
                "questions": [
                    question("Q0", "Dynamic Update", "swims", "runs"),
                    question("Q1", "Memory Boundary"),
                    question("Q2", "Memory Conflict", "flies"),
                    question("Q3", "Generalization & Application", "sings"),
                ],
            },
            {
                "start_time": "Sep 05, 2025, 10:00:00",
                "end_time": "Sep 05, 2025, 10:30:00",
                "dialogue": said("Bye.", "Sep 05, 2025, 10:00:00"),
                "memory_points": [],
            },
        ],
    }


def written(tmp_path: Path, user: dict[str, Any]) -> Path:
    path = tmp_path / "invented.jsonl"
    path.write_text(json.dumps(user) + "\n")
    return path


def probes(script: Script) -> list[Probe]:
    return [step for step in script.steps if isinstance(step, Probe)]


def test_questions_come_after_their_session(tmp_path: Path) -> None:
    """Turns and questions in the order of the sessions, at times that never step back."""
    (script,) = scripts(written(tmp_path, invented()), check=False)
    assert [(step.id, step.at) for step in script.steps] == [
        ("s1.1", "2025-09-04T10:44"),
        ("s1.2", "2025-09-04T10:44"),
        ("s2.1", "2025-09-04T10:44"),
        ("s2.2", "2025-09-04T10:44"),
        ("q0", "2025-09-04T11:30"),
        ("q1", "2025-09-04T11:30"),
        ("q2", "2025-09-04T11:30"),
        ("q3", "2025-09-04T11:30"),
        ("s3.1", "2025-09-05T10:00"),
        ("s3.2", "2025-09-05T10:00"),
    ]
    assert not any("not for systems" in str(step) for step in script.steps)


def test_evidence_is_that_of_whole_sessions(tmp_path: Path) -> None:
    """All turns of the sessions whose points are needed; planted and unknown points are flagged."""
    (script,) = scripts(written(tmp_path, invented()), check=False)
    assert [(probe.evidence, probe.flags) for probe in probes(script)] == [
        (("s2.1", "s2.2", "s1.1", "s1.2"), ("evidence-by-session",)),
        ((), ("abstention",)),
        (("s1.1", "s1.2"), ("evidence-by-session", "interference")),
        ((), ("evidence-defect",)),
    ]
    assert [probe.judged for probe in probes(script)][2:] == [
        "halumem/memory-conflict",
        "halumem/generalization-and-application",
    ]
    assert script.header.notes["replaced"] == [{"probe": "q0", "values": ["runs"]}]
    assert script.header.notes["interference"] == [{"session": "s1", "point": "flies"}]


def test_types_can_be_chosen(tmp_path: Path) -> None:
    """Only the types asked for are there, under the ids that they always have."""
    path = written(tmp_path, invented())
    (script,) = scripts(path, check=False, types=["memory-conflict"])
    assert [probe.id for probe in probes(script)] == ["q2"]
    with pytest.raises(DatasetError, match="no type 'x'"):
        scripts(path, check=False, types=["x"])


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (lambda u: u.pop("sessions"), "record 1: .*sessions"),
        (lambda u: u.update(sessions=[]), "has no turns"),
        (
            lambda u: u["sessions"][0]["dialogue"][0].update(timestamp="noon"),
            "session s1: .*'noon'",
        ),
        (
            lambda u: u["sessions"][1]["questions"][0].update(question_type="?"),
            "unknown type '\\?'",
        ),
        (
            lambda u: u["sessions"][0]["memory_points"][0].update(is_update=True),
            "record 1: .*is_up",
        ),
    ],
)
def test_another_form_is_refused(tmp_path: Path, break_it: Any, told: str) -> None:
    """A record of another form is an error that names the file and the place."""
    user = invented()
    break_it(user)
    with pytest.raises(DatasetError, match=rf"invented\.jsonl: .*{told}"):
        list(scripts(written(tmp_path, user), check=False))


def test_real_counts(data: Path) -> None:
    """One user: sessions, turns, questions by type and planted points as on the card."""
    folder = data / "halumem"
    if not folder.is_dir():
        pytest.skip(f"HaluMem is not in {folder}")
    (script,) = scripts(folder)
    counts = source.card("halumem").counts
    turns = [step for step in script.steps if isinstance(step, Turn)]
    assert (len(turns), len({turn.session for turn in turns})) == (
        counts["turns"],
        counts["sessions"],
    )
    assert Counter(probe.category for probe in probes(script)) == counts["questions"]
    assert len(script.header.notes["interference"]) == counts["interference"]
    flags = Counter(flag for probe in probes(script) for flag in probe.flags)
    assert flags == {"evidence-by-session": 118, "abstention": 43, "interference": 1}
    times = [step.at for step in script.steps]
    assert sorted(times) == times
    assert scripts(folder)[0].sha256() == script.sha256()
