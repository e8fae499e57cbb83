"""The LongMemEval loader, on an invented file always and on the real ones where they are."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.longmemeval import TYPES, DatasetError, scripts
from steeltrap.harness.script import Probe, Script, Turn


def said(role: str, content: str, has_answer: bool | None = None) -> dict[str, Any]:
    marked = {} if has_answer is None else {"has_answer": has_answer}
    return {"role": role, "content": content, **marked}


SESSIONS: dict[str, list[dict[str, Any]]] = {
    "filler_1": [said("user", "Hello."), said("assistant", "Hi!")],
    "filler_2": [said("assistant", "Only I speak.")],
    "answer_a_1": [
        said("user", "I moved to Bergen.", True),
        said("assistant", "Nice.", False),
        said("user", "", False),
    ],
    "answer_a_2": [said("user", "Where do I live?", False), said("assistant", "In Bergen.", True)],
    "answer_b_abs_1": [said("user", "I have a cat.", False)],
}


def record(name: str, kind: str, answer: str | int, haystack: dict[str, str]) -> dict[str, Any]:
    """A record whose haystack is given as `session, or session again with a mark`: date."""
    ids = [session.rstrip("*") for session in haystack]
    return {
        "question_id": name,
        "question_type": kind,
        "question": f"What of {name}?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": answer,
        "answer_session_ids": [session for session in ids if "answer" in session],
        "haystack_dates": list(haystack.values()),
        "haystack_session_ids": ids,
        "haystack_sessions": [SESSIONS[session] for session in ids],
    }


def invented() -> list[dict[str, Any]]:
    """Three questions with every trap of the data: order, late sessions, duplicates, no evidence."""
    return [
        record(
            "aa11",
            "knowledge-update",
            3,
            {
                "answer_a_1": "2023/05/30 (Tue) 23:39",
                "filler_1": "2023/05/20 (Sat) 02:21",
                "filler_1*": "2023/05/20 (Sat) 02:21",
                "answer_a_2": "2023/06/02 (Fri) 08:00",
            },
        ),
        record(
            "bb22_abs",
            "multi-session",
            "not said",
            {"answer_b_abs_1": "2023/05/01 (Mon) 00:00", "filler_1": "2023/06/01 (Thu) 00:00"},
        ),
        record(
            "eac54add",
            "temporal-reasoning",
            "in May",
            {"filler_2": "2023/05/02 (Tue) 10:00", "answer_a_2": "2023/05/01 (Mon) 10:00"},
        ),
    ]


def written(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "invented.json", invented())


def told(script: Script, tenant: str = "") -> list[Turn]:
    return [s for s in script.steps if isinstance(s, Turn) and s.tenant in (tenant or s.tenant)]


def probes(made: Sequence[Script]) -> list[Probe]:
    return [step for script in made for step in script.steps if isinstance(step, Probe)]


def test_each_question_is_a_tenant_asked_after_its_own_life(file: Path) -> None:
    """The turns of a question come before it and carry its tenant, and no other's do."""
    (script,) = scripts(file, check=False)
    assert script.header.tenants == ["q000", "q001", "q002"]
    blocks: list[str] = []
    for step in script.steps:
        if not blocks or blocks[-1] != step.tenant:
            blocks.append(step.tenant)
        if isinstance(step, Probe):
            assert (step.id, step.ask, step.observe) == (step.tenant, "evidence", "in-script")
    assert blocks == script.header.tenants


def test_sessions_come_by_time_and_never_step_back(file: Path) -> None:
    """Sorted stably by date, a minute a turn, but not past the next session or the question."""
    (script,) = scripts(file, check=False)
    assert [(turn.id, turn.at, turn.role) for turn in told(script, "q000")] == [
        ("q000.1.1", "2023-05-20T02:21", "user"),
        ("q000.1.2", "2023-05-20T02:21", "assistant"),
        ("q000.2.1", "2023-05-20T02:21", "user"),
        ("q000.2.2", "2023-05-20T02:22", "assistant"),
        ("q000.0.1", "2023-05-30T23:39", "user"),
        ("q000.0.2", "2023-05-30T23:40", "assistant"),
        ("q000.0.3", "2023-05-30T23:40", "user"),
        ("q000.3.1", "2023-06-02T08:00", "user"),
        ("q000.3.2", "2023-06-02T08:01", "assistant"),
    ]
    assert probes([script])[0].at == "2023-05-30T23:40"


def test_the_record_s_own_order_can_be_had(file: Path) -> None:
    """With order=given sessions stand as in the record, each with its own date."""
    (script,) = scripts(file, check=False, order="given")
    assert [turn.session for turn in told(script, "q002")] == ["q002.0", "q002.1", "q002.1"]
    assert [turn.at[:10] for turn in told(script, "q002")][:2] == ["2023-05-02", "2023-05-01"]


def test_sessions_after_the_question_can_be_left_out(file: Path) -> None:
    """With late=dropped nothing is later than the question; the flag and the note stay."""
    (kept,), (dropped,) = scripts(file, check=False), scripts(file, check=False, late="dropped")
    assert {turn.session for turn in told(kept)} - {turn.session for turn in told(dropped)} == {
        "q000.3",
        "q001.1",
    }
    assert "after-question" in probes([dropped])[0].flags
    assert dropped.header.notes["questions"][0]["late"] == [3]


def test_a_session_in_which_the_user_says_nothing_can_be_kept(file: Path) -> None:
    """It becomes one empty turn of the user, as the official scorer's corpus has it, and no other
    session changes; where the assistant is heard as well there is nothing to keep."""
    dropped, kept = (scripts(file, check=False, turns="user", silent=silent)[0] for silent in ("dropped", "kept"))  # fmt: skip
    turns = [step for step in kept.steps if isinstance(step, Turn)]
    (empty,) = [turn for turn in turns if turn.id.endswith(".0")]
    assert ("q002.0", "user", "") == (empty.session, empty.role, empty.text)
    assert [step for step in kept.steps if step != empty] == list(dropped.steps)
    with pytest.raises(DatasetError, match="turns=user"):
        scripts(file, check=False, silent="kept")


def test_flags_say_how_the_official_scorer_sees_a_question(file: Path) -> None:
    """Abstentions, questions and sessions without a marked user turn, doubles, reported labels."""
    (script,) = scripts(file, check=False)
    assert [probe.flags for probe in probes([script])] == [
        ("noans-session", "after-question", "duplicate-session"),
        ("abstention", "no-user-evidence", "noans-session"),
        ("no-user-evidence", "noans-session", "wrong-gold:session"),
    ]
    assert script.header.notes["reported_defects"] == {
        "q002": "wrong-gold:session (xiaowu0162/LongMemEval issue 37)"
    }


def test_evidence_is_the_user_s_marked_turns_or_all(file: Path) -> None:
    """The scorer counts user turns alone; evidence=all takes the assistant's as well."""
    (users,), (both,) = scripts(file, check=False), scripts(file, check=False, evidence="all")
    assert [probe.evidence for probe in probes([users])] == [("q000.0.1",), (), ()]
    assert [probe.evidence for probe in probes([both])] == [
        ("q000.0.1", "q000.3.2"),
        (),
        ("q002.1.2",),
    ]
    with pytest.raises(DatasetError, match="turns=all"):
        scripts(file, check=False, evidence="all", turns="user")


def test_answers_keep_how_they_are_scored(file: Path) -> None:
    """Gold is text, also where the record has a number; an abstention has a rubric of its own."""
    (script,) = scripts(file, check=False)
    assert [(probe.gold, probe.category, probe.judged) for probe in probes([script])] == [
        ("3", "knowledge-update", "longmemeval/knowledge-update"),
        ("not said", "multi-session", "longmemeval/abstention"),
        ("in May", "temporal-reasoning", "longmemeval/temporal-reasoning"),
    ]


def test_nothing_that_a_system_sees_tells_the_gold(file: Path) -> None:
    """Ids of turns, sessions, tenants and questions hold positions alone."""
    (script,) = scripts(file, check=False)
    for step in script.steps:
        seen = [step.id, step.tenant] + ([step.session] if isinstance(step, Turn) else [])
        assert all(re.fullmatch(r"q\d{3}(\.\d+){0,2}", one) for one in seen)
    ids = [step.id for step in script.steps if isinstance(step, Turn)]
    assert len(ids) == len(set(ids))
    assert [life["question_id"] for life in script.header.notes["questions"]] == [
        "aa11",
        "bb22_abs",
        "eac54add",
    ]


def official(script: Script, tenant: str) -> tuple[list[str], list[str]]:
    """The official scorer's corpus and ids at the grain of sessions, from a script alone."""
    life = next(one for one in script.header.notes["questions"] if one["probe"] == tenant)
    probe = next(step for step in probes([script]) if step.tenant == tenant)
    texts: dict[str, list[str]] = {}
    for turn in told(script, tenant):
        if turn.role == "user":
            texts.setdefault(turn.session, []).append(turn.text)
    marked = {turn.id for turn in told(script, tenant) if turn.role == "user"} & {*probe.evidence}
    ids = [
        name.replace("answer", "noans")
        if "answer" in name and not any(turn.startswith(f"{tenant}.{i}.") for turn in marked)
        else name
        for i, name in enumerate(life["sessions"])
    ]
    return [" ".join(texts.get(f"{tenant}.{i}", ())) for i in range(len(ids))], ids


def expected(entry: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The same from a full record, as the official scorer reads it."""
    corpus, ids = [], []
    for name, session in zip(
        entry["haystack_session_ids"], entry["haystack_sessions"], strict=True
    ):
        users = [turn for turn in session if turn["role"] == "user"]
        corpus.append(" ".join(turn["content"] for turn in users))
        gold = "answer" in name and any(turn.get("has_answer") for turn in users)
        ids.append(name if gold or "answer" not in name else name.replace("answer", "noans"))
    return corpus, ids


@pytest.mark.parametrize("order", ["time", "given"])
def test_the_official_scorer_s_input_follows_from_the_script(file: Path, order: Any) -> None:
    """Its corpus and its ids, in its order, empty sessions and empty turns included."""
    (script,) = scripts(file, check=False, order=order)
    for tenant, entry in zip(script.header.tenants, invented(), strict=True):
        assert official(script, tenant) == expected(entry)


def test_questions_are_dealt_to_scripts_and_chosen_by_type(file: Path) -> None:
    """Each seed is a part; a question keeps its id whatever else is asked."""
    parts = scripts(file, check=False, questions_per_script=2)
    assert [script.header.tenants for script in parts] == [["q000", "q001"], ["q002"]]
    assert [script.header.seed for script in parts] == [0, 1]
    (one,) = scripts(file, check=False, types=["temporal-reasoning"])
    assert one.header.tenants == ["q002"]
    assert len(parts[:1]) == 1


def split(tmp_path: Path, data: list[dict[str, Any]]) -> tuple[Path, Path]:
    """The same data as an index and its user turns."""
    index, turns = tmp_path / "index.jsonl.gz", tmp_path / "turns.jsonl"
    bare = [{k: v for k, v in one.items() if k != "haystack_sessions"} for one in data]
    index.write_bytes(gzip.compress("\n".join(map(json.dumps, bare)).encode()))
    lines = []
    for name, session in SESSIONS.items():
        users = [
            {"turn": at, **{k: v for k, v in turn.items() if k != "role"}}
            for at, turn in enumerate(session, 1)
            if turn["role"] == "user"
        ]
        lines.append({"session_id": name, "n_turns": len(session), "user_turns": users})
    turns.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return index, turns


def test_an_index_with_user_turns_gives_the_same_as_full_records(
    file: Path, tmp_path: Path
) -> None:
    """The steps are those of the full records with turns=user."""
    index, turns = split(tmp_path, invented())
    (ours,) = scripts(index, turns, check=False)
    (full,) = scripts(file, check=False, turns="user")
    assert [str(step) for step in full.steps] == [str(step) for step in ours.steps]
    with pytest.raises(DatasetError, match=r"user turns alone; set script\.turns=user"):
        scripts(index, turns, check=False, turns="all")
    with pytest.raises(DatasetError, match=r"set script\.user_turns"):
        list(scripts(index, check=False))


def test_a_session_without_user_turns_on_file_is_named(tmp_path: Path) -> None:
    """An index that asks for a session which the other file lacks is refused."""
    data = invented()
    data[0]["haystack_session_ids"][1] = "unknown_9"
    index, turns = split(tmp_path, data)
    with pytest.raises(DatasetError, match="aa11: no user turns of session 'unknown_9'"):
        list(scripts(index, turns, check=False))


def test_the_same_bytes_twice(file: Path, tmp_path: Path) -> None:
    """Two makings and a gzipped file give the same script, and it survives being written."""
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    made = [scripts(path, check=False)[0] for path in (file, file, packed)]
    assert len({script.sha256() for script in made}) == 1
    assert made[0].write(tmp_path / "s.jsonl") == Script.read(tmp_path / "s.jsonl").sha256()


@pytest.mark.parametrize(
    ("break_it", "said_then"),
    [
        (lambda d: d[0].pop("question"), r"record 1: .*missing required field `question`"),
        (lambda d: d[1].update(question_type="<b>x"), r"record 2: .*question_type"),
        (lambda d: d[1].update(question_type="other"), "no question of type"),
        (lambda d: d[0].update(question_date="yesterday"), "aa11: date 'yesterday'"),
        (lambda d: d[0].update(question_date="2023/02/30 (Tue) 23:40"), "aa11: .*day"),
        (lambda d: d[0]["haystack_dates"].pop(), "4 session ids, 4 sessions and 3 dates"),
        (lambda d: d[0]["haystack_sessions"][0][0].update(role="system"), "record 1: .*system"),
        (lambda d: d[0].update(answer=["a"]), "record 1: .*answer"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, break_it: Any, said_then: str) -> None:
    """A record of another form is an error that names file, record and field."""
    data = invented()[:2]
    break_it(data)
    path = written(tmp_path / "broken.json", data)
    wanted = ["multi-session"] if "no question" in said_then else None
    with pytest.raises(DatasetError, match=rf"broken\.json.*{said_then}"):
        list(scripts(path, check=False, types=wanted))


@pytest.mark.parametrize(
    "setting",
    [
        {"variant": "x"}, {"turns": "x"}, {"order": "x"}, {"late": "x"}, {"evidence": "x"},
        {"types": ["x"]}, {"types": []}, {"questions_per_script": 0},
    ],
)  # fmt: skip
def test_unknown_settings_are_refused(file: Path, setting: dict[str, Any]) -> None:
    """A setting that is none of the known ones is an error, and not ignored."""
    with pytest.raises(DatasetError, match="longmemeval: "):
        scripts(file, check=False, **setting)


# ---------------------------------------------------------------- the real data


@pytest.fixture(scope="module")
def folder(data: Path) -> Path:
    folder = data / "longmemeval"
    if not folder.is_dir():
        pytest.skip(f"LongMemEval is not in {folder}")
    return folder


@pytest.fixture(scope="module")
def s(folder: Path) -> Sequence[Script]:
    return list(scripts(folder))


def in_order(made: Sequence[Script]) -> bool:
    """Whether no turn is earlier than the one before it in the same life."""
    for script in made:
        before: dict[str, str] = {}
        for turn in told(script):
            if turn.at < before.get(turn.tenant, ""):
                return False
            before[turn.tenant] = turn.at
    return True


def questions_of(made: Sequence[Script], flag: str) -> set[str]:
    return {
        life["question_id"]
        for script in made
        for life, probe in zip(script.header.notes["questions"], probes([script]), strict=True)
        if flag in probe.flags
    }


def on_card(flag: str, variant: str) -> set[str]:
    return {
        question
        for defect in source.card("longmemeval").defects
        if defect.kind == flag and defect.variant in ("", variant)
        for question in defect.questions
    }


def test_real_s_counts(s: Sequence[Script]) -> None:
    """499 questions by type, 23 806 sessions, and the numbers that official averages stand on."""
    counts = source.card("longmemeval").counts
    asked = Counter(probe.category for probe in probes(s))
    assert asked == counts["types"] | {"temporal-reasoning": 132}
    assert sum(len(life["sessions"]) for x in s for life in x.header.notes["questions"]) == 23806
    flags = [set(probe.flags) for probe in probes(s)]
    assert sum("abstention" not in found for found in flags) == 469
    assert sum(not found & {"abstention", "no-user-evidence"} for found in flags) == 418
    assert all(bool(p.evidence) != ("no-user-evidence" in p.flags) for p in probes(s))
    late = [life["late"] for x in s for life in x.header.notes["questions"]]
    assert (sum(map(bool, late)), sum(map(len, late))) == (76, 1475)
    assert in_order(s)


@pytest.mark.parametrize("flag", ["after-question", "duplicate-session"])
def test_real_s_defects_are_those_on_the_card(s: Sequence[Script], flag: str) -> None:
    """44 questions with a gold session after them, 13 with a session twice: as the card lists."""
    assert questions_of(s, flag) == on_card(flag, "s")
    assert len(questions_of(s, flag)) == {"after-question": 44, "duplicate-session": 13}[flag]


def test_real_reported_labels_are_flagged(s: Sequence[Script]) -> None:
    """Each reported label error becomes the flag of its question."""
    for kind in ("wrong-gold:session", "wrong-gold:date", "wrong-gold:answer"):
        assert questions_of(s, kind) == on_card(kind, "s")


def test_real_ids_are_opaque(s: Sequence[Script]) -> None:
    """No id that a system sees holds more than positions."""
    for script in s:
        for step in script.steps:
            assert re.fullmatch(r"q\d{3}(\.\d+\.\d+)?", step.id)


def test_real_oracle_counts(folder: Path) -> None:
    """500 questions, 948 sessions, 10 960 turns, 896 of them evidence; 419 and 470 official."""
    made = list(scripts(folder, variant="oracle", evidence="all"))
    counts = source.card("longmemeval").counts
    assert Counter(probe.category for probe in probes(made)) == counts["types"]
    assert set(TYPES) == counts["types"].keys()
    turns = [turn for script in made for turn in told(script)]
    assert (len(turns), len({turn.session for turn in turns})) == (10960, 948)
    assert sum(len(probe.evidence) for probe in probes(made)) == 896
    flags = [set(probe.flags) for probe in probes(made)]
    assert sum("abstention" not in found for found in flags) == 470
    assert sum(not found & {"abstention", "no-user-evidence"} for found in flags) == 419
    assert questions_of(made, "after-question") == on_card("after-question", "oracle")
    assert in_order(made)


def test_real_full_records_agree_with_index_and_user_turns(
    folder: Path, s: Sequence[Script]
) -> None:
    """The 100 full records give the official corpus and ids that index and user turns give."""
    full = folder / "longmemeval_s_cleaned_subset100.json.gz"
    places = {
        life["question_id"]: (script, life["probe"])
        for script in s
        for life in script.header.notes["questions"]
    }
    entries = json.loads(gzip.decompress(full.read_bytes()))
    assert len(entries) == 100
    for entry in entries:
        assert official(*places[entry["question_id"]]) == expected(entry)
    part = scripts(full, questions_per_script=10, types=["knowledge-update"])
    assert (len(part), len(probes(part))) == (3, 27)
    assert {turn.role for turn in told(part[0])} == {"user", "assistant"}


def test_real_hashes_are_checked(folder: Path, tmp_path: Path) -> None:
    """A file that differs in one byte is refused with both hashes and what to do."""
    raw = gzip.decompress((folder / "longmemeval_oracle.json.gz").read_bytes())
    other = tmp_path / "other.json"
    other.write_bytes(raw + b"\n")
    with pytest.raises(DatasetError, match=r"sha256 [0-9a-f]{64}, expected 821a2034.*check=false"):
        scripts(other)
