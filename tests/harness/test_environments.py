"""Environments of third-party systems: pinned, whole or not there, found again, looked after.

All of it is real (uv, Python, a worker), from wheels that are made here, without a network.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from steeltrap.harness import environments, pythons
from steeltrap.harness.commands import systems
from steeltrap.harness.commands.systems import System
from steeltrap.harness.environments import EnvironmentFault, EnvironmentMissing
from steeltrap.harness.memory import Query, Utterance
from steeltrap.harness.remote import Remote

WORKERS = Path(__file__).parent / "workers"
SETTINGS = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_CONFIG_FILE",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
)


def wheel_of_msgspec(folder: Path) -> Path:
    """The installed msgspec as a wheel, as it once was."""
    found = importlib.metadata.distribution("msgspec")
    tag = (found.read_text("WHEEL") or "").split("Tag: ")[1].split("\n")[0]
    path = folder / f"msgspec-{found.version}-{tag}.whl"
    left_out = ("INSTALLER", "REQUESTED", "direct_url.json")
    with zipfile.ZipFile(path, "w") as wheel:
        for file in found.files or ():
            if file.name not in left_out and "__pycache__" not in file.parts:
                wheel.write(str(file.locate()), str(file))
    return path


def wheel_of_odd(folder: Path) -> Path:
    """A package with the memories of `workers/odd.py`."""
    path = folder / "odd_memory-1.2-py3-none-any.whl"
    info = "odd_memory-1.2.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(WORKERS / "odd.py", "odd.py")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: odd-memory\nVersion: 1.2\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package index of two packages."""
    simple = tmp_path_factory.mktemp("simple")
    for name, make in (("msgspec", wheel_of_msgspec), ("odd-memory", wheel_of_odd)):
        (simple / name).mkdir()
        wheel = make(simple / name)
        (simple / name / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    return simple


@pytest.fixture(scope="session")
def index_of_any(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package index of one package for any Python, which only has the name of msgspec."""
    simple = tmp_path_factory.mktemp("any")
    name, info = "msgspec-0.0.1-py3-none-any.whl", "msgspec-0.0.1.dist-info"
    (simple / "msgspec").mkdir()
    with zipfile.ZipFile(simple / "msgspec" / name, "w") as wheel:
        wheel.writestr("msgspec.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: msgspec\nVersion: 0.0.1\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    (simple / "msgspec" / "index.html").write_text(f'<a href="{name}">{name}</a>')
    return simple


@pytest.fixture(scope="session")
def newer() -> str:
    """The version of a newer Python of this machine."""
    major, minor = pythons.HERE
    try:
        _, found = pythons.search([(major, minor + 1), (major, minor + 2)])
    except pythons.NoPython as none:
        pytest.skip(f"this test {none}")
    return f"{found[0]}.{found[1]}"


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uv")


def cut_off(set_: pytest.MonkeyPatch, index: Path, uv_cache: Path, cache: Path) -> None:
    """An empty cache folder, and no other place to get packages from than the index."""
    for name in SETTINGS:
        set_.delenv(name, raising=False)
    set_.setenv("PIP_CONFIG_FILE", os.devnull)
    set_.setenv("PIP_INDEX_URL", index.as_uri())
    set_.setenv("UV_OFFLINE", "1")
    set_.setenv("UV_CACHE_DIR", str(uv_cache))
    set_.setenv("STEELTRAP_CACHE", str(cache))


@pytest.fixture
def alone(index: Path, uv_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty cache folder of a test."""
    cut_off(monkeypatch, index, uv_cache, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def installed(
    index: Path, uv_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of an environment that is there."""
    folder = tmp_path_factory.mktemp("installed")
    with pytest.MonkeyPatch.context() as set_:
        cut_off(set_, index, uv_cache, folder / "cache")
        name = write(folder / "odd" / "requirements.txt", index)
        environments.install(name, print)
        yield name


def write(path: Path, index: Path, *names: str, wrong: bool = False) -> str:
    """Pin what is in the index, or some of it; gives the name of the environment."""
    lines = []
    for wheel in sorted(index.rglob("*.whl")):
        name, version, *_ = wheel.name.split("-")
        digest = hashlib.sha256(b"" if wrong else wheel.read_bytes()).hexdigest()
        if not names or name in names:
            lines.append(f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}\n")
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines))
    return str(path)


@pytest.fixture
def pinned(index: Path, tmp_path: Path) -> Callable[..., str]:
    """Writes requirements of the test's own."""
    return functools.partial(write, tmp_path / "odd" / "requirements.txt", index)


def left(cache: Path) -> list[str]:
    """What lies in the cache's environments, beside locks."""
    found = (cache / "environments").iterdir()
    return sorted(path.name for path in found if path.suffix != ".lock")


# ---------------------------------------------------------------- what there is


def test_each_adapter_with_requirements_has_an_environment(root: Path) -> None:
    """An environment is named after its adapter's folder, written with - or _."""
    folders = {path.parent.name for path in root.glob("adapters/*/requirements.txt")}
    assert sorted(folders) == environments.known()
    for name in folders:
        assert environments.folder(name) == environments.folder(name.replace("_", "-"))


def test_requirements_are_pinned_with_hashes_and_hold_no_address(root: Path) -> None:
    """Every requirement of every environment has a version and hashes, msgspec among them."""
    for name in environments.known():
        lines = (root / "adapters" / name / "requirements.txt").read_text().splitlines()
        assert [line for line in lines if "://" in line or line.startswith("-")] == []
        assert all("==" in line and line.endswith("\\") for line in lines if line[:1].isalnum())
        assert "msgspec" in environments.pins(name)


def test_an_unknown_environment_is_named(alone: Path) -> None:
    """The message says what is known."""
    for act in (environments.find, environments.pins, environments.folder):
        with pytest.raises(EnvironmentFault, match="no environment 'memo'; known: "):
            act("memo")


def test_an_environment_that_is_not_there_says_how_to_get_it(
    alone: Path, pinned: Callable[..., str]
) -> None:
    """One sentence, with the command."""
    name = pinned()
    with pytest.raises(EnvironmentMissing, match=f"`steeltrap systems install {name}` makes it$"):
        environments.find(name)


def test_other_pins_are_another_environment(alone: Path, pinned: Callable[..., str]) -> None:
    """The folder follows the requirements, so that an old one is never taken for the new."""
    assert environments.folder(pinned()) != environments.folder(pinned("msgspec"))
    assert environments.folder(pinned()) == environments.folder(pinned())


def test_another_python_is_another_environment(
    alone: Path, pinned: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the benchmark on two Pythons has each system twice."""
    here = environments.folder(pinned())
    monkeypatch.setattr(pythons, "HERE", (3, 97))
    assert here != environments.folder(pinned())


# ---------------------------------------------------------------- installing


def test_a_system_runs_in_its_own_environment(
    alone: Path, pinned: Callable[..., str], tmp_path: Path
) -> None:
    """Installed once and found from then on; its packages are there, and ours are not."""
    name, said = pinned(), []
    python = environments.install(name, said.append)
    assert python == environments.find(name) == environments.install(name, said.append)
    assert ["installing", "installed", "is installed"] == [
        line.removeprefix(f"{name}: ").split(" from ")[0] for line in said
    ]
    assert [environments.folder(name).name] == left(alone)
    remote = Remote({"_target_": "odd.Odd"}, python=python, packages=["odd-memory", "numpy"])
    assert {"python", "odd-memory"} == set(remote.versions)
    assert "1.2" == remote.versions["odd-memory"]
    assert {"__main__", "msgspec", "odd", "steeltrap"} == {
        one for one in remote.identity["foreign"] if one not in ("sitecustomize", "_virtualenv")
    }
    assert not any(str(path).endswith(".src") for path in remote.identity["path"])
    remote.open(tmp_path / "run")
    remote.ingest(Utterance("t1", "2026-03-02T10:00", "acme", "s1", "user", "one"))
    (item,) = remote.retrieve(Query("p1", "2026-03-02T10:00", "acme", "?", 10))
    assert "one" == item.text
    remote.close()


def test_pins_for_a_newer_python_get_one(
    alone: Path, newer: str, index_of_any: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made by a Python of the machine that fits, and found from then on."""
    requirements = tmp_path / "odd" / "requirements.txt"
    name = write(requirements, index_of_any)
    text = requirements.read_text()
    requirements.write_text(f"# made by: uv pip compile --python-version {newer} -\n{text}")
    monkeypatch.setenv("PIP_INDEX_URL", index_of_any.as_uri())
    python = environments.install(name, print)
    program = "import sys, msgspec; print('%d.%d' % sys.version_info[:2])"
    told = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True)
    assert f"{newer}\n" == told.stdout
    monkeypatch.setenv("PATH", "")  # what is installed needs no search
    assert python == environments.find(name) == environments.install(name, print)


def test_pins_for_a_python_that_is_nowhere_are_refused(
    alone: Path, pinned: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence says which is needed and how one is named; nothing is left."""
    name = pinned()
    text = Path(name).read_text()
    Path(name).write_text(f"# made by: uv pip compile --python-version 3.99 -\n{text}")
    said = f"^{name} needs Python 3.99; this is .*STEELTRAP_PYTHON=/path/to/python3.99$"
    with pytest.raises(EnvironmentFault, match=said):
        environments.install(name, print)
    assert not alone.exists()


def test_an_installation_that_fails_leaves_nothing(
    alone: Path, pinned: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Wrong hashes are refused in uv's words and ours; what was begun is taken away."""
    with pytest.raises(EnvironmentFault, match="not installed; what uv says of it stands above"):
        environments.install(pinned(wrong=True), print)
    assert "ash mismatch" in capfd.readouterr().err
    assert [] == left(alone)


def test_an_environment_without_msgspec_is_none(alone: Path, pinned: Callable[..., str]) -> None:
    """It could not run a worker, and says so before anything is run in it."""
    with pytest.raises(EnvironmentFault, match="does not pin msgspec"):
        environments.install(pinned("odd_memory"), print)
    assert [] == left(alone)


def installing(name: str, root: Path) -> subprocess.Popen[str]:
    """Another process that installs an environment."""
    program = f"from steeltrap.harness import environments as e; e.install({name!r}, lambda s: print(s, flush=True))"  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(root / ".src")}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True
    )


def test_two_installations_make_one(alone: Path, pinned: Callable[..., str], root: Path) -> None:
    """Of two processes that install the same, one does it and the other waits."""
    name = pinned()
    both = [installing(name, root) for _ in range(2)]
    said = "".join(process.communicate(timeout=60)[0] for process in both)
    assert [0, 0] == [process.returncode for process in both]
    assert 1 == said.count(": installing from")
    assert 1 == said.count(": is installed")
    environments.find(name)


class Gate(SimpleHTTPRequestHandler):
    """Serves the index, once it is let."""

    asked, let = threading.Event(), threading.Event()

    def do_GET(self) -> None:
        self.asked.set()
        assert self.let.wait(30)
        super().do_GET()

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def gate(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Gate]]:
    """The index behind a gate, on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Gate, directory=str(index)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("UV_OFFLINE")
    yield Gate
    Gate.let.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_killed_installation_is_begun_anew(
    alone: Path, pinned: Callable[..., str], gate: type[Gate], root: Path
) -> None:
    """What a killed process left is never found, and the next installation is whole.

    It waits for the uv of the killed one, which would write into the same folder.
    """
    name = pinned()
    process = installing(name, root)
    assert gate.asked.wait(30)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    with pytest.raises(EnvironmentMissing):
        environments.find(name)
    assert 1 == len(left(alone))
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "waiting for it" in line:
            gate.let.set()

    environments.install(name, say)
    assert ["another installation is at work; waiting for it", "installing", "installed"] == [
        line.removeprefix(f"{name}: ").split(" from ")[0] for line in said
    ]
    assert [environments.folder(name).name] == left(alone)


@pytest.mark.parametrize("where", ["variable", "file", "further"])
def test_a_mirror_that_is_set_for_pip_is_used(
    where: str, alone: Path, index: Path, pinned: Callable[..., str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By a variable, by pip's settings file, or as a further index beside one of old versions."""
    old = tmp_path / "old"
    (old / "msgspec").mkdir(parents=True)
    wheel = "msgspec-0.0.1-py3-none-any.whl"
    (old / "msgspec" / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
    if where == "file":
        monkeypatch.delenv("PIP_INDEX_URL")
        (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.as_uri()}\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    elif where == "further":
        monkeypatch.setenv("PIP_INDEX_URL", old.as_uri())
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{old.as_uri()} {index.as_uri()}")
    environments.install(pinned(), print)


# ---------------------------------------------------------------- looking after one


def test_a_doctor_looks_at_everything(installed: str) -> None:
    """From the folder to a memory that opens; telemetry is what the open system has set."""
    node = {"_target_": "odd.Telling", "telemetry": False}
    found = environments.doctor(installed, node=node, packages=["odd-memory"])
    checks = {check.what: check for check in found}
    assert all(check.ok for check in checks.values())
    looked_at = "environment python msgspec odd-memory worker opens telemetry"
    assert looked_at.split() == list(checks)
    assert "ODD_TELEMETRY=False" == checks["telemetry"].words
    assert [] == list((environments.folder(installed).parents[1] / "workers").iterdir())


def test_a_doctor_says_that_the_pins_are_others(installed: str, pinned: Callable[..., str]) -> None:
    """An environment that is not there is the one failure, older ones beside it are named."""
    (missing,) = environments.doctor(pinned("msgspec"))
    assert (False, "environment") == (missing.ok, missing.what)
    assert "`steeltrap systems install" in missing.words
    assert "(one is there, from other pins" in missing.words


@pytest.mark.parametrize(
    ("node", "packages", "what", "words"),
    [
        ({"_target_": "odd.Telling", "telemetry": True}, [], "telemetry", "ODD_TELEMETRY=True"),
        ({"_target_": "odd.Closed"}, [], "opens", "OSError: the disk is full"),
        ({"_target_": "odd.NoMemory"}, [], "worker", "NoMemory is no memory"),
        ({"_target_": "odd.Plain"}, ["numpy"], "numpy", "not installed; pinned: none"),
    ],
)
def test_a_doctor_finds_what_is_wrong(
    node: dict[str, object], packages: list[str], what: str, words: str, installed: str
) -> None:
    """One check fails, and says what it found."""
    checks = environments.doctor(installed, node=node, packages=packages)
    failed = [check for check in checks if not check.ok]
    assert [what] == [check.what for check in failed]
    assert words in failed[0].words


# ---------------------------------------------------------------- the commands


def test_the_commands(
    alone: Path, pinned: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Listed as not installed, installed by the system's name, listed again, looked at."""
    odd = System("odd", "An odd one.", pinned(), ["odd-memory"])
    there = [System("flat", "The full transcript."), odd]
    out = Console(width=200)

    def lines(act: Callable[[], object]) -> list[str]:
        act()
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    assert [
        "flat       in process                      The full transcript.",
        "odd   1.2  own environment, not installed  An odd one.",
    ] == lines(lambda: systems.listing(there, out))
    assert systems.install(["odd", "flat"], there, out)
    assert "flat: runs in this environment; nothing to install" in capsys.readouterr().out
    assert "odd   1.2  own environment  An odd one." in lines(lambda: systems.listing(there, out))
    assert not systems.install(["nothing"], there, out)
    assert "no environment 'nothing'; known: " in capsys.readouterr().out
    assert systems.doctor(there[0], out, node={})
    assert systems.doctor(odd, out, node={"_target_": "odd.Plain"})
    assert not systems.doctor(odd, out, node={"_target_": "odd.Closed"})
    assert "FAIL  opens: OSError: the disk is full" in capsys.readouterr().out
