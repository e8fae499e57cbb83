"""Letta: how an ideal model acts as its agent, what the agent may run, and the package itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.letta import Letta
from steeltrap.adapters.letta.answers import answer
from steeltrap.adapters.letta.files import Files, slug
from steeltrap.adapters.letta.shell import allowed
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Message, Reply

ON_MAY = "The kick-off of Old Mill is 3 May 2026."
ON_JUNE = "The kick-off of Old Mill is 9 June 2026."
BUDGET = "The budget of Old Mill is 4,300 EUR."
KICK_OFF = Subject("acme", "Old Mill", "kick-off", "When is the kick-off of Old Mill?")
FILE = "facts/old-mill.md"
SYSTEM = Message("system", "You are a Letta Code agent, and so on.")


@pytest.fixture
def acted(small: Any) -> Callable[..., Reply]:
    """How the ideal model acts on a turn of the short script, after results of its commands."""

    def act(turn: str, *results: str) -> Reply:
        said = f"<system-reminder>x</system-reminder>\nAt 2026-01-05T09:30 the user said:\n\n{small.turns[turn].text}"
        messages = [SYSTEM, Message("user", said), *(Message("tool", text) for text in results)]
        reply = answer(Ask("m", tuple(messages)), ScriptMind(small.script))
        assert reply is not None
        return reply

    return act


def command(reply: Reply) -> str:
    (call,) = reply.calls
    text: str = call.arguments["command"]
    assert allowed(text), text
    return text


def lines_of(written: str) -> list[str]:
    """What a command writes into the topic's file, without its front matter."""
    document = written.partition(f"cat > '{FILE}' <<'END_OF_FILE'\n")[2].partition("\nEND_OF_FILE")[
        0
    ]
    return document.split("\n")[4:]


KNOWN = f"MEMORY.md:# Memory\n{FILE}:---\n{FILE}:name: x\n{FILE}:description: y\n{FILE}:---\n"


# ---------------------------------------------------------------- the ideal model as the agent


def test_it_reads_what_is_known_before_it_writes(acted: Callable[..., Reply]) -> None:
    """First the index and the topic's file; then both with the new fact, committed; then an end."""
    assert f"'{FILE}'" in command(acted("tell"))
    written = command(acted("tell", "MEMORY.md:# Memory"))
    assert lines_of(written) == [ON_MAY]
    assert "- [Old Mill](old-mill.md)" in written and "git commit" in written
    assert acted("tell", "MEMORY.md:# Memory", "") == Reply("Noted.")


def test_a_change_takes_the_place_of_what_it_changes(acted: Callable[..., Reply]) -> None:
    """And a withdrawal leaves nothing, as the prompt wants what is out of date rewritten."""
    known = f"{KNOWN}{FILE}:{BUDGET}\n{FILE}:{ON_MAY}"
    assert lines_of(command(acted("revise", known))) == [BUDGET, ON_JUNE]
    assert lines_of(command(acted("retract", known))) == [BUDGET]


def test_small_talk_and_repetition_write_nothing(acted: Callable[..., Reply]) -> None:
    """The first without a look, the second after one."""
    assert acted("noise") == Reply("Noted.")
    assert acted("tell", f"{KNOWN}{FILE}:{ON_MAY}") == Reply("Noted.")


def test_other_prompts_are_left_to_the_gateway(small: Any) -> None:
    """Such as one that wants a conversation summarised."""
    mind = ScriptMind(small.script)
    assert answer(Ask("m", (SYSTEM, Message("user", "Summarise!"))), mind) is None


# ---------------------------------------------------------------- what the agent may run


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf /", "cat /etc/passwd", 'cd "$MEMORY_DIR" && cat ../../x', 'cd "$MEMORY_DIR" && curl x',
        'cd "$MEMORY_DIR" && cat x | sh', 'cd "$MEMORY_DIR" && cat $(id)', 'cd "$MEMORY_DIR" && cat x; id',
        'cd "$MEMORY_DIR" && git -c core.pager=id log', 'cd "$MEMORY_DIR" && git log --output=x',
        "cd \"$MEMORY_DIR\" && cat > 'x' <<EOT\n$(id)\nEOT", "cd \"$MEMORY_DIR\" && cat > 'x' <<'EOT'\nEOT\nid",
        "cd \"$MEMORY_DIR\" && cat > '.git/hooks/pre-commit' <<'EOT'\nid\nEOT",
        "cd \"$MEMORY_DIR\" && cat > '/tmp/x' <<'EOT'\nid\nEOT", 'cd "$MEMORY_DIR" || id', 'cd "$MEMORY_DIR"id',
    ],
)  # fmt: skip
def test_a_command_that_leads_elsewhere_is_refused(text: str) -> None:
    """Other folders, other programs, pipes, expansions, hooks, and what stands after a document."""
    assert not allowed(text)


def test_commands_about_memory_are_run() -> None:
    """Reading, writing whatever text, moving and committing."""
    assert allowed(
        "cd \"$MEMORY_DIR\" && mkdir -p facts && cat > 'facts/a b.md' <<'EOT'\n$(id); rm -rf /\nEOT\n"
        "git add -- facts && git commit -q -m 'facts: it is so'\ngit log --oneline"
    )


# ---------------------------------------------------------------- reading the repository


def test_files_are_read_as_they_are_committed(tmp_path: Path) -> None:
    """A line has the turn that committed it and the end of when it went; structure says nothing."""

    def git(*arguments: str) -> None:
        own = ("-c", "user.name=n", "-c", "user.email=e@localhost", "-C", str(tmp_path))
        subprocess.run(["git", *own, *arguments], check=True, capture_output=True)

    def commit(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / f"{name}.md").write_text(text)
        git("add", ".")
        git("commit", "-q", "-m", "m")

    git("init", "-q")
    commit(human="Nobody yet.")
    files = Files(tmp_path)
    files.begin()
    commit(a=f"---\nname: a\n---\n# A\n\n- [b](b.md)\n{ON_MAY}\n{BUDGET}", human="Nobody yet.")
    assert files.follow("t1", "2026-01-01T10:00")
    assert not files.follow("t2", "2026-01-02T10:00")
    commit(a=f"---\nname: a\n---\n{BUDGET}\n{ON_JUNE}")
    assert files.follow("t3", "2026-01-03T10:00")
    assert [(line.text, line.turn, line.until) for line in files.lines] == [
        (ON_MAY, "t1", "2026-01-03T10:00"), (BUDGET, "t1", ""), (ON_JUNE, "t3", ""),
    ]  # fmt: skip
    files.remove(files.standing[:1], "2026-01-04T10:00")
    assert [line.text for line in files.standing] == [ON_JUNE]
    assert BUDGET not in (tmp_path / "a.md").read_text()


def test_names_of_files_are_plain() -> None:
    """Whatever a topic is called, it names a file in the folder and the same one each time."""
    assert slug("../Old  Mill!") == "old-mill"
    assert slug("昼食") == "u663c-u98df"
    assert len(slug("a" * 500)) == 100


# ---------------------------------------------------------------- the adapter


def test_not_connected_is_said(tmp_path: Path) -> None:
    """Without models nothing can be opened, and the message says what to call."""
    with pytest.raises(MemoryFault, match=r"connect\(models\)"):
        Letta().open(tmp_path)


def test_use_while_not_open_is_a_fault() -> None:
    """Every call before `open` fails with a message that says so, where nothing is installed too."""
    memory = Letta()
    memory.close()
    turn = Utterance("t", "2026-01-01T09:30", "acme", "s", "user", "Too early.")
    calls: list[Callable[[], object]] = [
        lambda: memory.ingest(turn), lambda: asked(memory, "Anything?"), memory.settle,
        lambda: memory.active("acme"), lambda: memory.history(KICK_OFF),
        lambda: memory.erase("acme", None), memory.size_bytes,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(MemoryFault, match="not open"):
            call()


# ---------------------------------------------------------------- the package


def asked(memory: Any, text: str, limit: int = 10) -> list[Item]:
    return list(memory.retrieve(Query("q", "2026-02-01T12:00", "acme", text, limit)))


def texts(items: list[Item]) -> list[str]:
    return [item.text for item in items]


@pytest.fixture(scope="module")
def system(living: Any) -> tuple[Any, Any]:
    made: tuple[Any, Any] = living("letta", {"_target_": "steeltrap.adapters.letta.Letta"}, answer)
    return made


def test_a_life(memory: Any, system: Any, small: Any) -> None:
    """A change takes the place of what it changes, git keeps both, and deletion does not reach git."""
    assert capabilities(memory) == ["list", "history", "erase", "size", "models"]
    for turn in ("tell", "noise", "two"):
        memory.ingest(small.heard(turn))
    memory.ingest(small.heard("tell", tenant="birch"))
    memory.settle()
    tell, two = small.turns["tell"], small.turns["two"]
    assert texts(memory.active("acme")) == [ON_JUNE, BUDGET]
    assert asked(memory, "What is the budget of the mill?")[0] == Item(
        BUDGET, sources=("two",), valid_from=two.at
    )
    assert texts(asked(memory, "Old Mill?", limit=1)) == [BUDGET]
    assert asked(memory, " ") == asked(memory, "Lighthouse?") == []
    told = memory.history(KICK_OFF)
    assert [(item.text, item.sources, item.valid_from, item.valid_to) for item in told] == [
        (ON_MAY, ("tell",), tell.at, two.at), (ON_JUNE, ("two",), two.at, None),
    ]  # fmt: skip
    assert memory.size_bytes() > 1000
    memory.erase("acme", KICK_OFF)
    assert texts(memory.active("acme")) == [BUDGET]
    assert texts(memory.history(KICK_OFF)) == [ON_MAY, ON_JUNE]
    memory.ingest(small.heard("revert"))
    assert len(memory.active("acme")) == 2
    memory.erase("acme", None)
    assert memory.active("acme") == memory.history(KICK_OFF) == []
    assert texts(memory.active("birch")) == [ON_MAY]
    memory.ingest(small.heard("tell"))
    assert texts(memory.active("acme")) == [ON_MAY]
    system[1].broken = BackendError("down", status=400)
    with pytest.raises(MemoryFault, match="letta"):
        memory.ingest(small.heard("revise"))
    assert texts(memory.active("acme")) == [ON_MAY]
