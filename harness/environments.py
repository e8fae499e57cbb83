"""Environments of systems that cannot share this one.

What belongs into one is pinned in `adapters/NAME/requirements.txt`, or in a file of the user's,
whose path is then the name. It is made by uv in the cache folder, at `environments/NAME-HASH`: the
hash is of the pins and of the Python, so that other pins are another environment. Its Python is this
one, or a newer one of the machine's where the pins need it. It is made aside and renamed when it is
whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import importlib.metadata
import importlib.resources
import os
import re
import shutil
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from steeltrap.harness import pythons
from steeltrap.harness.memory import Item, Lists, Memory, MemoryFault, Query, Utterance
from steeltrap.harness.models import Models, UsesModels
from steeltrap.harness.process import scratch
from steeltrap.harness.pythons import NoPython, Version
from steeltrap.harness.remote import Remote, WorkerError
from steeltrap.harness.tokens import cache_folder
from steeltrap.harness.worker import as_memory

__all__ = [
    "Check",
    "EnvironmentFault",
    "EnvironmentMissing",
    "Opened",
    "Packages",
    "doctor",
    "find",
    "folder",
    "install",
    "known",
    "pins",
]

_PIP_AS_UV: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "cert": "SSL_CERT_FILE",
}
_QUIET: Final = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "MEM0_TELEMETRY": "False",
    "POSTHOG_DISABLED": "1",
}
"""For looking at packages without their adapter, which switches them off otherwise."""
_OFF: Final = ("0", "false", "no", "off")


class EnvironmentFault(RuntimeError):
    """An environment cannot be made or used; the message says why and what to do."""


class EnvironmentMissing(EnvironmentFault):
    """An environment has not been installed."""


class Check(NamedTuple):
    """What was looked at, whether it is in order, and what was found."""

    what: str
    ok: bool
    words: str


# ---------------------------------------------------------------- what there is


def known() -> list[str]:
    """The names of all environments that can be installed."""
    return sorted(path.parent.name for path in _adapters().glob("*/requirements.txt"))


def pins(name: str) -> dict[str, list[str]]:
    """The versions of each package that an environment may hold: one, or one for each Python.

    Raises:
        EnvironmentFault: there is no such environment.
    """
    lines = _requirements(name).read_text().splitlines()
    found: dict[str, list[str]] = {}
    for line in lines:
        if pin := re.match(r"([\w.-]+)(?:\[[^]]*])?==([^\s;\\]+)", line):
            found.setdefault(pin[1], []).append(pin[2])
    return found


def folder(name: str) -> Path:
    """Where an environment is, or will be when it is installed.

    Raises:
        EnvironmentFault: there is no such environment.
    """
    return _folder(name)[0]


def _folder(name: str) -> tuple[Path, Version]:
    """The folder, and the version of its Python: one that is there before the best one."""
    versions = pythons.fitting(_requirements(name).read_text())
    folders = [(_for(name, version), version) for version in versions]
    return next((one for one in folders if _python(one[0]).exists()), folders[0])


def _for(name: str, version: Version) -> Path:
    required = _requirements(name)
    tag = f"{sys.implementation.name}-{version[0]}{version[1]}"
    pinned = hashlib.sha256(required.read_bytes() + tag.encode())
    named = f"{required.parent.name}-{pinned.hexdigest()[:12]}"
    return cache_folder().absolute() / "environments" / named


def find(name: str) -> Path:
    """The Python of an installed environment.

    Raises:
        EnvironmentMissing: it has not been installed.
        EnvironmentFault: there is no such environment.
    """
    python = _python(folder(name))
    if not python.exists():
        raise EnvironmentMissing(
            f"{name} needs an environment of its own: `steeltrap systems install {name}` makes it"
        )
    return python


def _adapters() -> Path:
    with importlib.resources.as_file(importlib.resources.files("steeltrap")) as package:
        return package / "adapters"


def _requirements(name: str) -> Path:
    if name.endswith(".txt"):
        path = Path(name).absolute()
    else:
        path = _adapters() / name.replace("-", "_") / "requirements.txt"
    if not path.is_file():
        raise EnvironmentFault(
            f"no environment '{name}'; known: {', '.join(known()) or 'none'}, and any file of pinned"
            " requirements, whose name ends in .txt"
        )
    return path


def _python(made: Path) -> Path:
    return made / "bin" / "python"


# ---------------------------------------------------------------- installing


def install(name: str, say: Callable[[str], object]) -> Path:
    """Make an environment, if it is not there; uv shows its progress on standard error.

    Args:
        name: of the environment.
        say: is told in a line each what is going on.

    Returns:
        The environment's Python.

    Raises:
        EnvironmentFault: it cannot be made; nothing half is left.
    """
    made, base = folder(name), Path(sys.executable)
    if not _python(made).exists():
        made, base = _planned(name)
    waiting = f"{name}: another installation is at work; waiting for it"
    with _alone(made, lambda: say(waiting)) as lock:
        if _python(made).exists():
            say(f"{name}: is installed")
            return _python(made)
        part = made.with_name(made.name + ".part")
        for left in (part, made):
            shutil.rmtree(left, ignore_errors=True)
        say(f"{name}: installing from {_requirements(name)} into {made}")
        try:
            _make(name, base, part, lock)
            os.replace(part, made)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    say(f"{name}: installed")
    return _python(made)


def _planned(name: str) -> tuple[Path, Path]:
    """Where an environment is to be made, and by which Python."""
    try:
        base, version = pythons.search(pythons.fitting(_requirements(name).read_text()))
    except NoPython as error:
        raise EnvironmentFault(f"{name} {error}") from None
    return _for(name, version), base


def _make(name: str, base: Path, part: Path, lock: int) -> None:
    required, python = str(_requirements(name)), str(_python(part))
    sync = ("pip", "sync", "--require-hashes", "--compile-bytecode", "--python", python, required)
    index = _index()
    for arguments in (("venv", "--quiet", "--python", str(base), str(part)), sync):
        if _uv(arguments, index, lock):
            raise EnvironmentFault(
                f"{name}: not installed; what uv says of it stands above. A mirror that is set for"
                " pip or uv is used; nothing half is left, so the same command tries again"
            )
    if subprocess.run([python, "-I", "-c", "import msgspec"], capture_output=True).returncode:
        raise EnvironmentFault(f"{name}: {required} does not pin msgspec, which every worker needs")


def _uv(arguments: Sequence[str], index: Mapping[str, str], lock: int) -> int:
    """Run uv; should this process be killed, the lock is held until uv has ended too."""
    import uv

    own = {key: os.environ[key] for key in os.environ if key != "VIRTUAL_ENV"}
    return subprocess.run(
        [uv.find_uv_bin(), *arguments],
        env={**index, **own},
        stdin=subprocess.DEVNULL,
        pass_fds=(lock,),
    ).returncode


def _index() -> dict[str, str]:
    """What is set for pip, as uv takes it; uv does not read pip's settings.

    Versions and hashes are pinned, so that it does not matter which index has a file.
    """
    told = _pip_settings()
    handed = {uv: " ".join(told[pip].split()) for pip, uv in _PIP_AS_UV.items() if told.get(pip)}
    if "UV_INDEX" in handed:
        handed["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return handed


def _pip_settings() -> dict[str, str]:
    """pip's settings from its files and from the environment, the latter last."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"],
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"^(?:global|install)\.([\w-]+)=('.*'|\".*\")$", told.stdout, re.MULTILINE)
    settings = {key: str(literal_eval(value)) for key, value in lines}
    for key in _PIP_AS_UV:
        if value := os.environ.get(f"PIP_{key.upper().replace('-', '_')}"):
            settings[key] = value
    return settings


@contextmanager
def _alone(made: Path, wait: Callable[[], object]) -> Iterator[int]:
    """Hold the lock on an environment; the system lets go of it when the process ends."""
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_name(made.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


# ---------------------------------------------------------------- looking after one


def doctor(
    name: str,
    *,
    node: Mapping[str, Any] | None = None,
    packages: Sequence[str] = (),
    passes: Sequence[str] = (),
) -> Iterator[Check]:
    """Look at an environment and at the system in it, as far as one can come.

    Args:
        name: of the environment.
        node: the system's settings; without them no worker is tried.
        packages: the distributions that the system stands on; each is imported.
        passes: names of environment variables that the system gets.

    Raises:
        EnvironmentFault: there is no such environment.
    """
    try:
        python = find(name)
    except EnvironmentMissing as missing:
        others = folder(name).parent.glob(f"{folder(name).name[:-12]}{'[0-9a-f]' * 12}")
        words = " (one is there, from other pins or for another Python)" if any(others) else ""
        yield Check("environment", False, f"{missing}{words}")
        return
    made, version = _folder(name)
    yield Check("environment", True, str(made))
    wanted = {one: pins(name).get(one, []) for one in ("msgspec", *packages)}
    yield from _inside(python, version, wanted)
    if node is not None:
        yield from _worker(node, python, packages, passes, "posthog" in pins(name))


def _inside(python: Path, made_by: Version, wanted: Mapping[str, Sequence[str]]) -> Iterator[Check]:
    """Python and packages, by asking a worker there."""
    try:
        found = Remote({"_target_": _path(Packages), "names": list(wanted)}, python=python)
    except WorkerError as error:
        yield Check("python", False, str(error))
        return
    version = found.versions["python"]
    yield Check("python", version.startswith(f"{made_by[0]}.{made_by[1]}."), version)
    for name, versions in wanted.items():
        words = found.identity[name]
        pinned = "" if words in versions else f"; pinned: {' or '.join(versions) or 'none'}"
        yield Check(name, not pinned, words + pinned)


def _worker(
    node: Mapping[str, Any],
    python: Path,
    packages: Sequence[str],
    passes: Sequence[str],
    telling: bool,
) -> Iterator[Check]:
    """Whether the system starts in a worker, opens an empty memory, and keeps to itself."""
    from steeltrap.harness.remote import Remote

    watched = {"_target_": _path(Opened), "memory": dict(node)}
    try:
        remote = Remote(watched, python=python, packages=packages, passes=passes)
    except WorkerError as error:
        yield Check("worker", False, str(error))
        return
    yield Check("worker", True, "starts")
    yield from _open(remote, telling)


def _open(remote: Remote, telling: bool) -> Iterator[Check]:
    assert isinstance(remote, Lists)
    with scratch() as home:
        try:
            remote.open(home)
            switches = [item.text for item in remote.active("")]
        except (WorkerError, MemoryFault) as error:
            yield Check("opens", False, f"{type(error).__name__}: {error}")
            return
        finally:
            remote.close()
    yield Check("opens", True, "an empty memory")
    on = [one for one in switches if one.partition("=")[2].lower() not in _OFF]
    words = ", ".join(switches) or ("nothing switches it off" if telling else "none known")
    yield Check("telemetry", not on and bool(switches or not telling), words)


def _path(made: type) -> str:
    return f"{made.__module__}.{made.__name__}"


# ---------------------------------------------------------------- made in the environment


class _Probe:
    """What is a memory, though nothing is ever said to it."""

    def open(self, folder: Path) -> None:
        """Begin."""

    def close(self) -> None:
        """End."""

    def ingest(self, turn: Utterance) -> None:
        """Take in nothing."""

    def retrieve(self, query: Query) -> list[Item]:  # noqa: ARG002
        """Nothing."""
        return []

    def settle(self) -> None:
        """Wait for nothing."""


class Packages(_Probe):
    """Sees whether packages can be imported where it is made; `identity` says what it found.

    Args:
        names: of distributions.
    """

    def __init__(self, names: Sequence[str]) -> None:
        os.environ.update(_QUIET)
        tops: dict[str, list[str]] = {}
        for top, owners in importlib.metadata.packages_distributions().items():
            for owner in owners:
                tops.setdefault(_normal(owner), []).append(top)
        self.identity = {name: self._tried(name, tops.get(_normal(name), [])) for name in names}

    def _tried(self, name: str, tops: Sequence[str]) -> str:
        try:
            version = importlib.metadata.version(name)
            for top in tops:
                if top.isidentifier() and not top.startswith("_"):
                    importlib.import_module(top)
        except importlib.metadata.PackageNotFoundError:
            return "not installed"
        except Exception as error:  # somebody else's package may raise anything
            return f"{type(error).__name__}: {error}"
        return version


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class Opened(_Probe):
    """Opens a memory and says how its process then is set.

    Args:
        memory: the system's own.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = as_memory(memory)
        if isinstance(memory, UsesModels):
            # nobody listens there: nothing may be asked before the first turn
            memory.connect(
                Models("http://127.0.0.1:9", "none", "none", 384, timeout_s=5, retries=0)
            )

    def open(self, folder: Path) -> None:
        """Open the system's memory."""
        self._memory.open(folder)

    def close(self) -> None:
        """Close it."""
        self._memory.close()

    def active(self, tenant: str) -> list[Item]:  # noqa: ARG002
        """The switches of telemetry as they are now."""
        names = sorted(name for name in os.environ if re.search("TELEMETRY|POSTHOG", name))
        return [Item(f"{name}={os.environ[name]}") for name in names]
