from __future__ import annotations

import asyncio
import fcntl
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.harness.gateway.backend import BackendError, Call, Vectors
from steeltrap.harness.gateway.recording import Recorded, RecordingError, Replay
from steeltrap.harness.gateway.upstream import Upstream
from steeltrap.harness.models import Ask, Message, Reply, ToolCall, Usage

KEY = "sk-test-0123456789abcdef"


class Speaker:
    """Says what it was given to say, and counts."""

    def __init__(self, reply: Reply | None = None, vectors: Any = (), name: str = "m") -> None:
        self.name = name
        self.reply = reply
        self.vectors = vectors
        self.asked = 0

    def begin(self) -> None:
        pass

    async def chat(self, call: Call) -> Reply:
        self.asked += 1
        return self.reply or Reply(f"answer {self.asked} to {call.key}")

    async def embed(self, call: Call) -> Vectors:  # noqa: ARG002
        self.asked += 1
        return self.vectors


def call(key: str = "k", nth: int = 0, system: str = "You extract facts.") -> Call:
    ask = Ask("m", (Message("system", system), Message("user", "I like tea.")))
    return Call("chat", {}, key, nth, ask)


def vectors_of(*texts: str) -> Call:
    return Call("embeddings", {}, "e", 0, texts=texts)


def chat(backend: Recorded | Replay, of: Call) -> Reply:
    return asyncio.run(backend.chat(of))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "recordings.jsonl").read_text().splitlines()]


# ---------------------------------------------------------------- round trip

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.text() | NUMBERS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
REPLIES = st.builds(
    Reply,
    text=st.text(),
    calls=st.lists(
        st.builds(ToolCall, st.text(), st.dictionaries(st.text(), VALUES)), max_size=2
    ).map(tuple),
    finish=st.sampled_from(["stop", "length", "tools", "refusal"]),
    logprobs=st.lists(st.dictionaries(st.text(), NUMBERS), max_size=2).map(tuple),
    usage=st.builds(Usage, prompt_tokens=st.integers(0, 10**9), ms=st.floats(0, 1e9)),
)


@settings(max_examples=60, deadline=None)
@given(reply=REPLIES, system=st.text(), key=st.text(), nth=st.integers(0, 10**6))
def test_any_answer_comes_back(reply: Reply, system: str, key: str, nth: int) -> None:
    """Whatever was answered is replayed to the letter, usage and time included."""
    with tempfile.TemporaryDirectory() as folder:
        of = call(key, nth, system)
        first = chat(Recorded(Speaker(reply), Path(folder)), of)
        assert first == reply
        assert chat(Replay(Path(folder)), of) == reply


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(0, 3).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(-1e30, 1e30), min_size=width, max_size=width), min_size=1
        )
    )
)
def test_any_vectors_come_back(rows: list[list[float]]) -> None:
    """Vectors are float32 from the first time on, so that a replay differs in no bit."""
    with tempfile.TemporaryDirectory() as folder:
        of = vectors_of(*(str(i) for i in range(len(rows))))
        first = asyncio.run(Recorded(Speaker(vectors=rows), Path(folder)).embed(of))
        again = asyncio.run(Replay(Path(folder)).embed(of))
        assert np.asarray(first).tolist() == np.asarray(rows, np.float32).tolist()
        assert np.asarray(again).tobytes() == np.asarray(first).tobytes()


def test_a_real_provider_recorded(provider: Any, tmp_path: Path) -> None:
    """What a provider said once is replayed without it, key or address, with what it cost then."""
    recorded = Recorded(Upstream("openai", "big", embedding_model="e"), tmp_path)

    async def both(backend: Recorded | Replay) -> tuple[Reply, list[list[float]]]:
        rows = await backend.embed(vectors_of("a", "bb"))
        return await backend.chat(call()), np.asarray(rows).tolist()

    first = asyncio.run(both(recorded))
    assert (first[0].text, first[0].usage.prompt_tokens) == ("Lisbon.", 1200)
    assert first[0].usage.ms > 0
    assert asyncio.run(both(Replay(tmp_path))) == first
    assert len(provider.seen) == 2
    header, vectors, reply = lines(tmp_path)
    assert header == {"format": "steeltrap-recordings", "version": 1}
    assert (vectors["begins"], reply["begins"]) == ("a", "You extract facts.")
    assert re.fullmatch(r"openai:big@[0-9a-f]{8}\+e", reply["model"])
    text = (tmp_path / "recordings.jsonl").read_text()
    for hidden in (KEY, provider.url, "127.0.0.1", str(tmp_path), "I like tea"):
        assert hidden not in text


# ---------------------------------------------------------------- what is asked again


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    """A second run asks only for what is new: other keys, and more occurrences of the same."""
    first = Speaker()
    recorded = Recorded(first, tmp_path)
    said = [chat(recorded, of) for of in (call("a"), call("a", 1), call("b"))]
    assert len({reply.text for reply in said}) == first.asked == 3
    second = Speaker()
    again = Recorded(second, tmp_path)
    assert [chat(again, of) for of in (call("b"), call("a"), call("a", 1))] == [
        said[2], said[0], said[1],
    ]  # fmt: skip
    assert second.asked == 0
    chat(again, call("a", 2))
    assert second.asked == 1


def test_errors_are_not_answers(provider: Any, tmp_path: Path) -> None:
    """A failure passes through and is not recorded; the next time the call is asked for."""
    provider.plan(500, {"error": {"message": "broken"}})
    recorded = Recorded(Upstream("openai", "big", retries=0), tmp_path)
    with pytest.raises(BackendError, match="broken"):
        chat(recorded, call())
    assert len(lines(tmp_path)) == 1
    assert chat(recorded, call()).text == "Lisbon."


def test_an_error_takes_no_occurrence(provider: Any, tmp_path: Path) -> None:
    """What is asked again after an error is replayed where the first try was."""
    provider.plan(500, {"error": {"message": "broken"}})
    provider.plan(200, {"choices": [{"message": {"content": "first"}}]})
    provider.plan(200, {"choices": [{"message": {"content": "second"}}]})
    recorded = Recorded(Upstream("openai", "big", retries=0), tmp_path)
    recorded.begin()
    with pytest.raises(BackendError, match="broken"):
        chat(recorded, call())
    assert [chat(recorded, call(nth=nth)).text for nth in (1, 2)] == ["first", "second"]
    recorded.begin()
    for backend in (recorded, Replay(tmp_path)):
        assert [chat(backend, call(nth=nth)).text for nth in (0, 1)] == ["first", "second"]
    assert len(provider.seen) == 3


def test_a_client_that_is_gone(provider: Any, tmp_path: Path) -> None:
    """An answer that comes too late is kept, and is what the client gets when it asks again."""
    provider.plan(200, {"choices": [{"message": {"content": "late"}}]}, after_s=0.3)
    recorded = Recorded(Upstream("openai", "big"), tmp_path)

    async def impatient() -> list[str]:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(recorded.chat(call()), 0.1)
        joined = await recorded.chat(call(nth=1))
        return [joined.text, (await recorded.chat(call(nth=2))).text]

    assert asyncio.run(impatient()) == ["late", "Lisbon."]
    assert len(provider.seen) == 2
    replay = Replay(tmp_path)
    assert [chat(replay, call(nth=nth)).text for nth in (0, 1)] == ["late", "Lisbon."]


def test_a_client_that_never_comes_back(provider: Any, tmp_path: Path) -> None:
    """A failure that nobody waits for any more disturbs nobody."""
    provider.plan(500, {"error": {"message": "broken"}}, after_s=0.2)
    recorded = Recorded(Upstream("openai", "big", retries=0), tmp_path)

    async def gone() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(recorded.chat(call()), 0.1)
        await asyncio.sleep(0.3)
        assert not recorded._asking

    asyncio.run(gone())
    assert len(lines(tmp_path)) == 1


def test_each_model_has_its_own_answers(tmp_path: Path) -> None:
    """Another model behind the same prompts is asked, in the same folder; a replay has to choose."""
    chat(Recorded(Speaker(Reply("one"), name="m1"), tmp_path), call())
    assert chat(Recorded(Speaker(Reply("two"), name="m2"), tmp_path), call()).text == "two"
    with pytest.raises(RecordingError, match="answers of m1, m2; say whose"):
        Replay(tmp_path)
    assert chat(Replay(tmp_path, "m2"), call()).text == "two"
    with pytest.raises(RecordingError, match="nothing of m3 is recorded there, only of m1, m2"):
        Replay(tmp_path, "m3")


def test_a_call_that_was_not_recorded(tmp_path: Path) -> None:
    """It is an error that shows the prompt, says what there is and what to do."""
    chat(Recorded(Speaker(), tmp_path), call())
    replay = Replay(tmp_path)
    with pytest.raises(BackendError) as caught:
        chat(replay, call("other", system="You resolve\nedges. " * 20))
    failure = caught.value
    assert (failure.kind, failure.status) == ("unknown-prompt", 400)
    assert "a chat call that begins 'You resolve edges. You resolve" in failure.message
    assert "nothing recorded matches (among 1 answers of m)" in failure.message
    assert "model=record" in failure.message
    with pytest.raises(BackendError, match="it was recorded 1x, and asked once more"):
        chat(replay, call("k", 1))
    with pytest.raises(BackendError, match="a request for vectors that begins 'tea'"):
        asyncio.run(replay.embed(vectors_of("tea")))


def test_an_empty_folder(tmp_path: Path) -> None:
    """A replay of nothing says so before anything runs."""
    with pytest.raises(RecordingError, match="nothing is recorded there; run once with model=rec"):
        Replay(tmp_path)


# ---------------------------------------------------------------- files


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(1, 400))
def test_a_kill_in_mid_write_loses_the_last_record(cut: int) -> None:
    """A file cut off anywhere in its last line has all others; the last is asked for again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded = Recorded(Speaker(), folder)
        said = [chat(recorded, call(key)) for key in "abc"]
        path = folder / "recordings.jsonl"
        whole = path.read_bytes()
        last = len(whole.splitlines(keepends=True)[-1])
        path.write_bytes(whole[: -min(cut, last)])
        speaker = Speaker()
        again = Recorded(speaker, folder)
        assert [chat(again, call(key)) for key in "ab"] == said[:2]
        assert speaker.asked == 0
        new = chat(again, call("c"))
        assert speaker.asked == 1
        replay = Replay(folder)
        assert [chat(replay, call(key)) for key in "abc"] == [*said[:2], new]


def test_a_header_cut_off(tmp_path: Path) -> None:
    """A kill while the very first line was written spoils nothing."""
    (tmp_path / "recordings.jsonl").write_bytes(b'{"format":"steel')
    reply = chat(Recorded(Speaker(), tmp_path), call())
    assert chat(Replay(tmp_path), call()) == reply


WRITER = """
import asyncio, sys
from pathlib import Path
from steeltrap.harness.gateway.backend import Call
from steeltrap.harness.gateway.recording import Recorded
from steeltrap.harness.models import Ask, Message, Reply

class Speaker:
    name = "m"
    def begin(self): ...
    async def chat(self, call):
        await asyncio.sleep(0)
        return Reply((sys.argv[4] + call.key) * 4000)

recorded = Recorded(Speaker(), Path(sys.argv[1]))
print("ready", flush=True)
async def go():
    for i in range(int(sys.argv[3])):
        key = f"{sys.argv[2]}{i}"
        reply = await recorded.chat(Call("chat", {}, key, 0, Ask("m", (Message("user", "x"),))))
        print(reply.text[:6])
asyncio.run(go())
"""


def test_a_real_kill(tmp_path: Path) -> None:
    """A process killed while it writes leaves whole records and at most one torn line."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), "k", "100000", "t"], stdout=subprocess.PIPE
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        writer.send_signal(signal.SIGKILL)
    torn = not (tmp_path / "recordings.jsonl").read_bytes().endswith(b"\n")
    again = Recorded(Speaker(), tmp_path)
    written = again._file.models["m"]
    assert written > 0
    assert again._file.damaged == 0
    for i in range(written):
        assert chat(again, call(f"k{i}")).text == f"tk{i}" * 4000
    chat(again, call("new"))
    assert Recorded(Speaker(), tmp_path)._file.damaged == torn


def test_several_processes_in_one_folder(tmp_path: Path) -> None:
    """Records of several writers stand whole beside each other, and each call has one answer."""
    keys = [f"k{i}" for i in range(40)]
    arguments = [sys.executable, "-c", WRITER, str(tmp_path), "k", "40"]
    writers = [subprocess.Popen([*arguments, tag], stdout=subprocess.PIPE) for tag in "abc"]
    served = [writer.communicate(timeout=60)[0].decode().splitlines()[1:] for writer in writers]
    replay = Replay(tmp_path)
    answers = [chat(replay, call(key)).text[:6] for key in keys]
    assert served == [answers] * 3
    assert len(lines(tmp_path)) == 1 + len(keys)


def test_a_writer_waits_for_another(tmp_path: Path) -> None:
    """Two writers never write at once: whoever comes second waits for the lock."""
    recorded = Recorded(Speaker(), tmp_path)
    writing = threading.Thread(target=chat, args=(recorded, call()))
    with (tmp_path / "recordings.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writing.start()
        writing.join(0.2)
        assert writing.is_alive()
        assert len(lines(tmp_path)) == 1
    writing.join(10)
    assert len(lines(tmp_path)) == 2


def test_the_first_answer_stands(tmp_path: Path) -> None:
    """Where two runs ask the same at once, both go on with the answer that was written first."""
    first = Recorded(Speaker(Reply("first")), tmp_path)

    class Slow(Speaker):
        async def chat(self, call: Call) -> Reply:
            await first.chat(call)
            return Reply("second")

    assert chat(Recorded(Slow(), tmp_path), call()).text == "first"
    assert len(lines(tmp_path)) == 2


def test_what_another_process_adds_is_seen(tmp_path: Path) -> None:
    """Two runs over one folder profit from each other while they run."""
    one, two = Recorded(Speaker(), tmp_path), Recorded(other := Speaker(), tmp_path)
    reply = chat(one, call("a"))
    assert chat(two, call("a")) == reply
    assert other.asked == 0


def test_files_merge_by_one_after_the_other(tmp_path: Path) -> None:
    """Two files written into one hold both; of two answers to a call the first counts."""
    for name, keys in (("one", "ab"), ("two", "bc")):
        recorded = Recorded(Speaker(Reply(name)), tmp_path / name)
        for key in keys:
            chat(recorded, call(key))
    (tmp_path / "both").mkdir()
    merged = b"".join(
        (tmp_path / name / "recordings.jsonl").read_bytes() for name in ("one", "two")
    )
    (tmp_path / "both" / "recordings.jsonl").write_bytes(merged)
    replay = Replay(tmp_path / "both")
    assert [chat(replay, call(key)).text for key in "abc"] == ["one", "one", "two"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format":"steeltrap-recordings","version":2}\n', "reads steeltrap-recordings up to 1"),
        ('{"format":"steeltrap-history","version":1}\n', "written as steeltrap-history 1"),
        ('{"key":"k","nth":0}\n', "does not begin as recordings do"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    """A file of another kind or of a later version is left alone, and the message says why."""
    path = tmp_path / "recordings.jsonl"
    path.write_text(text)
    for kind in (Replay, lambda folder: Recorded(Speaker(), folder)):
        with pytest.raises(RecordingError, match=words):
            kind(tmp_path)
    assert path.read_text() == text


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """It is said before anything is asked for."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot be written"):
        Recorded(Speaker(), tmp_path / "file")


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize("key", [KEY, 'pass"word\\with-marks'])
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "ZEP_API_KEY", "SOME_TOKEN"])
def test_keys_are_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, key: str
) -> None:
    """An answer or a prompt that holds a key is not recorded, and the message names the variable."""
    monkeypatch.setenv(variable, key)
    monkeypatch.setenv("OTHER_API_KEY", "none")
    answers = Recorded(Speaker(Reply(f"your key is {key}")), tmp_path)
    prompts = Recorded(Speaker(Reply("none")), tmp_path)
    for recorded, of in ((answers, call()), (prompts, call(system=f"Key: {key}"))):
        with pytest.raises(BackendError) as caught:
            chat(recorded, of)
        assert f"repeats the value of {variable}" in caught.value.message
        assert key not in caught.value.message
    assert len(lines(tmp_path)) == 1
    assert chat(prompts, call()).text == "none", "a placeholder is no key"


def test_records_hold_what_is_documented(tmp_path: Path) -> None:
    """A line has the documented fields and no more."""
    chat(Recorded(Speaker(Reply("x", usage=Usage(ms=2.5))), tmp_path), call())
    assert lines(tmp_path)[1] == {
        "key": "k", "nth": 0, "model": "m", "begins": "You extract facts.",
        "reply": {"text": "x", "usage": {"ms": 2.5}},
    }  # fmt: skip
    assert (
        msgspec.json.encode(lines(tmp_path)[1]) + b"\n"
        in (tmp_path / "recordings.jsonl").read_bytes()
    )
