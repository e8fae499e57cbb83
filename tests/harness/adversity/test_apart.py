"""A run keeps to this machine, and keys stay where they are: in the environment."""

from __future__ import annotations

import base64
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

HERE = Path(__file__).parent
SMALL = ("script=flip-flop", "script.turns=3")
KEYS = {
    name: f"canary-{name.lower()}-/+4f9c2e71d0"
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ZEP_API_KEY", "MEM0_API_KEY", "MIRIX_API_KEY")
}  # fmt: skip


# ---------------------------------------------------------------- loopback


@pytest.mark.parametrize(
    "words",
    [
        ("run", "system=flat,vector,gem-told", *SMALL),
        ("run", "system=gem", *SMALL),
        pytest.param(("report", "runs", "--html", "page.html"), marks=pytest.mark.slow),
        pytest.param(("systems",), marks=pytest.mark.slow),
    ],
)
def test_a_command_stays_on_this_machine(
    commands: Any, work: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    """Whatever a command does, it asks for no address and opens no connection beyond loopback."""
    if words[0] == "report":
        commands(work, "run", "system=flat", *SMALL)
    log = tmp_path / "beyond"
    commands(work, *words, shims=[("loopback", {"log": str(log)})], timeout_s=120)
    assert not log.exists(), log.read_text()


def test_the_guard_sees_who_leaves(commands: Any, work: Path, tmp_path: Path) -> None:
    """The guard of these tests notices a memory that would connect elsewhere."""
    log = tmp_path / "beyond"
    commands(
        work, "run", "system=memories:Leaving", *SMALL, shims=[("loopback", {"log": str(log)})]
    )
    assert "192.0.2.1" in log.read_text()
    assert "example.org" in log.read_text()


@pytest.mark.slow
def test_a_run_needs_no_network(work: Path, root: Path) -> None:
    """In a network of its own, where there is loopback and nothing else, all kinds of runs end well:
    in this process, in a worker, and through the gateway."""
    if shutil.which("ip") is None or subprocess.run(["unshare", "-n", "true"]).returncode:
        pytest.skip("needs ip, and the right to make a network")
    path = os.pathsep.join([str(root / ".src"), str(HERE)])
    for words in (
        "system=flat,vector", "system=gem", "system=memories:Noted +system.worker=true +system.passes=[PYTHONPATH]",
    ):  # fmt: skip
        command = [sys.executable, "-m", "steeltrap", "run", *words.split(), *SMALL]
        done = subprocess.run(
            ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command],
            cwd=work, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- keys


def forms(key: str) -> list[bytes]:
    """A key as it may be written: as it is, for an address, and in base64 wherever it begins."""
    raw = key.encode()
    coded = [base64.b64encode(b"x" * lead + raw)[4:-4] for lead in range(3)]
    return [raw, quote(key, safe="").encode(), raw[::-1], raw.hex().encode(), *coded]


def nowhere(place: Path, *said: str) -> None:
    """No form of a key stands in a file or in what was said."""
    texts = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    for key in KEYS.values():
        for form in forms(key):
            for text in said:
                assert form not in text.encode(), text
            for path, data in texts.items():
                assert form not in path.name.encode()
                assert form not in data, path


SUMMARY = "summary system.trigger_tokens=20 system.keep_tokens=5"
QUICK = (("gem", "record", "errors"), (SUMMARY, "upstream", "echoes"))
EVERY = [
    pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow)
    for one in itertools.product(
        ("gem", SUMMARY), ("upstream", "record"), ("echoes", "errors", "refuses", "friendly")
    )
]


@pytest.mark.parametrize(("system", "model", "how"), EVERY)
def test_keys_are_nowhere(
    commands: Any, work: Path, provider: Any, system: str, model: str, how: str
) -> None:
    """Whatever a provider does with the key that it was sent, no byte of it is in a file of the run,
    in a recording, or in what the command says."""
    key = KEYS["OPENAI_API_KEY"]
    coded = base64.b64encode(f"user:{key}".encode()).decode()
    words = f"the key {key}, or {quote(key, safe='')}, or {coded}, is wrong"
    if how == "echoes":
        provider.says = lambda _: words
    elif how != "friendly":
        status = 401 if how == "refuses" else 500
        for _ in range(60):
            provider.plan(
                status, {"error": {"message": words, "code": key}}, headers={"x-key": key}
            )
    env = KEYS | {"OPENAI_BASE_URL": f"{provider.url}/v1", "ANTHROPIC_BASE_URL": provider.url}
    asked = (
        "run", *f"system={system}".split(), *SMALL, f"model={model}", "model.model=gpt-4o-mini",
        "++model.retries=0", "twins=0",
    )  # fmt: skip
    ended = commands(work, *asked, shims=[("environment", env)], code=None, timeout_s=120)
    assert provider.seen
    assert any(key in value for seen in provider.seen for value in seen.headers.values())
    nowhere(work, ended.out, ended.err)


def test_keys_of_a_worker_are_nowhere(commands: Any, work: Path) -> None:
    """A system that gets a key, prints it and fails with it leaves no trace of it."""
    asked = (
        "run", "system=memories:Telling", *SMALL, "+system.worker=true", "limits.restarts=0",
        "+system.passes=[PYTHONPATH,ZEP_API_KEY]",
    )  # fmt: skip
    ended = commands(work, *asked, shims=[("environment", KEYS)], code=None)
    assert list(work.rglob("history.jsonl")), ended
    nowhere(work, ended.out, ended.err)
