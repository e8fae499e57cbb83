"""The MemoryAgentBench loader, on an invented file always and on the real one where it is."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.memoryagentbench import DatasetError, scripts
from steeltrap.harness.script import Probe, Script, Turn

FACTS = [
    "Ada Brom was born in the city of Oslo.",
    "The capital of Norland is Bergen.",
    "Ada Brom is a citizen of Norland.",
    "Ole Brom was born in the city of Vik.",
    "Ada Brom was born in the city of Vik.",
    "The capital of Norland is Lund.",
    "Kai Lund died in the city of Oslo.",
    "Kai Lund worked in the city of Oslo.",
    "Ole Brom is a citizen of Sudland.",
]
ASKED = [
    ("In which city was Ada Brom born?", ["Vik", "Wik"]),
    ("What is the capital of Norland?", ["Bergen"]),
    ("Ole Brom is a citizen of which country?", ["Sudland"]),
    ("In which city was it that Kai Lund died and worked?", ["Oslo"]),
    ("Who is Ole?", ["Sudland"]),
    ("Who painted this?", ["Nobody"]),
]


def record(hops: str, size: str) -> dict[str, Any]:
    lines = "\n".join(f"{number}. {fact}" for number, fact in enumerate(FACTS))
    return {
        "context": f"Here is a list of facts:\n{lines}\n",
        "questions": [question for question, _ in ASKED],
        "answers": [answers for _, answers in ASKED],
        "metadata": {"source": f"factconsolidation_{hops}_{size}", "demo": None},
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "invented.json"
    path.write_text(json.dumps([record("mh", "6k"), record("sh", "6k"), record("sh", "32k")]))
    return path


def probes(script: Script) -> list[Probe]:
    return [step for step in script.steps if isinstance(step, Probe)]


def turns(script: Script) -> list[Turn]:
    return [step for step in script.steps if isinstance(step, Turn)]


def test_facts_are_turns_a_minute_apart(file: Path) -> None:
    """Each fact is a turn with its number in the text, and all questions follow."""
    script = scripts(file, check=False)[1]
    assert [(turn.id, turn.at, turn.text) for turn in turns(script)][:2] == [
        ("f0", "2024-01-01T00:00", "0. Ada Brom was born in the city of Oslo."),
        ("f1", "2024-01-01T00:01", "1. The capital of Norland is Bergen."),
    ]
    assert script.steps[len(FACTS) :] == probes(script)
    assert {probe.at for probe in probes(script)} == {"2024-01-01T00:09"}


def test_numbers_can_be_left_out(file: Path) -> None:
    """With numbers=false the texts are the bare facts."""
    script = scripts(file, check=False, numbers=False)[0]
    assert [turn.text for turn in turns(script)] == FACTS


def test_evidence_is_found_where_it_is_clear(file: Path) -> None:
    """The later of a pair, a lone fact, an earlier one; none where two fit or words are lacking."""
    multi, single, _ = scripts(file, check=False)
    assert [(probe.evidence, probe.flags) for probe in probes(single)] == [
        (("f4",), ()),
        (("f1",), ("wrong-gold:earlier-fact",)),
        (("f8",), ("no-conflict",)),
        ((), ("no-evidence",)),
        ((), ("no-evidence",)),
        ((), ("no-evidence",)),
    ]
    assert {(probe.evidence, probe.flags) for probe in probes(multi)} == {((), ("no-evidence",))}
    assert single.header.notes["found_defects"] == {"q1": "wrong-gold:earlier-fact"}


def test_answers_are_scored_as_substrings(file: Path) -> None:
    """The first spelling is the gold, further ones are the rubric."""
    script = scripts(file, check=False)[0]
    first = probes(script)[0]
    assert (first.gold, first.rubric, first.judged) == ("Vik", ("Wik",), "substring")
    assert {probe.category for probe in probes(script)} == {"multi-hop"}


def test_records_can_be_chosen(file: Path) -> None:
    """By hops and size; nothing left is an error."""
    made = scripts(file, check=False, hops=["sh"], sizes=["32k"])
    assert [script.header.settings["record"] for script in made] == ["factconsolidation_sh_32k"]
    with pytest.raises(DatasetError, match="holds none of"):
        scripts(file, check=False, sizes=["262k"])
    with pytest.raises(DatasetError, match="no size '1k'"):
        scripts(file, check=False, sizes=["1k"])


def test_the_same_bytes_twice(file: Path, tmp_path: Path) -> None:
    """Two makings and a gzipped file give the same script, and it survives being written."""
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    made = [scripts(path, check=False)[1] for path in (file, file, packed)]
    assert len({script.sha256() for script in made}) == 1
    assert made[0].write(tmp_path / "s.jsonl") == Script.read(tmp_path / "s.jsonl").sha256()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"context": "Here is a list of facts:\n0. A.\n2. B."}, "expected fact 1, found '2. B.'"),
        ({"context": "Here is a list of facts:"}, "no numbered facts"),
        ({"answers": [["a"]]}, "6 questions and 1 answers"),
        ({"answers": [[]] * 6}, "record 1: .*answers"),
        ({"metadata": {"source": "<b>"}}, "record 1: .*source"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, broken: dict[str, Any], said: str) -> None:
    """A record of another form is an error that names the file and the place."""
    path = tmp_path / "broken.json"
    path.write_text(json.dumps([record("sh", "6k") | broken]))
    with pytest.raises(DatasetError, match=rf"broken\.json: .*{said}"):
        list(scripts(path, check=False))


# ---------------------------------------------------------------- the real data


@pytest.fixture(scope="module")
def real(data: Path) -> Sequence[Script]:
    folder = data / "memoryagentbench"
    if not folder.is_dir():
        pytest.skip(f"MemoryAgentBench is not in {folder}")
    return list(scripts(folder))


def test_real_counts(real: Sequence[Script]) -> None:
    """Eight records of a hundred questions, with as many facts as on the card."""
    counts = source.card("memoryagentbench").counts
    sizes = {script.header.settings["record"].split("_")[2]: script.turns for script in real}
    assert sizes == counts["facts"]
    assert [len(probes(script)) for script in real] == [100] * counts["records"]
    for script in real:
        times = [step.at for step in script.steps]
        assert sorted(times) == times


def test_real_evidence(real: Sequence[Script]) -> None:
    """Of 400 single-hop questions, 392 have evidence: 270 in the later of a pair, 116 alone."""
    single = [script for script in real if "_sh_" in script.header.settings["record"]]
    flags = Counter(probe.flags for script in single for probe in probes(script))
    assert flags == {
        (): 270,
        ("no-conflict",): 116,
        ("wrong-gold:earlier-fact",): 6,
        ("no-evidence",): 8,
    }
    for script in single:
        texts = {turn.id: turn.text for turn in turns(script)}
        for probe in probes(script):
            assert all(texts[turn].endswith(f" {probe.gold}.") for turn in probe.evidence)


def test_real_defects_are_those_on_the_card(real: Sequence[Script]) -> None:
    """The six golds that a later fact contradicts are listed."""
    (defect,) = source.card("memoryagentbench").defects
    found = {
        f"{script.header.settings['record'].removeprefix('factconsolidation_')}/{question}"
        for script in real
        for question in script.header.notes.get("found_defects", ())
    }
    assert found == set(defect.questions)
