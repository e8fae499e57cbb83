"""From what was asked on the command line to memories, scripts and readers.

What was asked is read in `steeltrap.harness.composing`; here each cell of the sweep becomes
settings, and settings become the things that a run needs.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.resources
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

import steeltrap
from steeltrap.harness.composing import (
    ABOUT,
    SettingsError,
    assembled,
    choices,
    composed,
    configs,
    experiment,
    first_line,
    fitting,
    installed,
    key_of,
    loaded,
    offer_classes,
    options,
    parameters,
    parsed,
    plain,
    points,
)
from steeltrap.harness.evidence import weighed
from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import Memory
from steeltrap.harness.readers import READERS, Reader
from steeltrap.harness.record import RunSpec
from steeltrap.harness.script import Script, ScriptError
from steeltrap.harness.store import revision, run_spec
from steeltrap.harness.tokens import cache_folder
from steeltrap.harness.twins import with_unobserved
from steeltrap.workloads.compose import ScriptSettings, compose, compose_file

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

    from steeltrap.harness.gateway import Gateway
    from steeltrap.harness.gateway.budget import Purse

__all__ = [
    "Settings",
    "SettingsError",
    "System",
    "cells",
    "described",
    "options",
    "rebuilt",
]

_NUMBERS: Final = {"seed": 0, "limit": 1, "twins": 0, "repeats": 0, "processes": 1}
"""Settings that are whole numbers, with the least that makes sense."""


LONG_TURNS: Final = 20_000
"""A long life of more turns is composed into a file."""
_NAMED: Final = (
    "model=", "model.model=", "model.missed=", "model.wrong_host=", "model.overlooked=",
    "model.invented=", "model.seed=", "faults.", "faults=",
)  # fmt: skip
"""What makes another row of a system that asks models; addresses and budgets do not."""
_SYSTEMS: Final = importlib.resources.files("steeltrap.configs") / "system"


class System(NamedTuple):
    """A system as its settings describe it."""

    name: str
    about: str
    """One line."""
    environment: str = ""
    """Name of its environment; empty where it runs in this process."""
    packages: Sequence[str] = ()
    """Distributions that it stands on; its own first."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of one cell."""

    config: DictConfig
    overridden: tuple[str, ...]
    """What was set differently for the system, as `key=value`."""

    @property
    def system(self) -> str:
        """The system's name, with what was set differently."""
        return " ".join([self.config.system.name, *self.overridden])

    @property
    def folder(self) -> Path:
        """Where the run folders of this experiment are made."""
        return Path(self.config.runs) / str(self.config.name)

    @property
    def include(self) -> Path | None:
        """Where what a paper includes goes, below that; None where it is not made."""
        name = self.config.include
        return None if name is None else self.folder / str(name)

    @property
    def environment(self) -> str:
        """The environment of its own that the system needs; empty where it needs none."""
        return str(self.config.system.get("environment", ""))

    @property
    def identity(self) -> bytes:
        """Equal for cells that are the same run, whatever part of an experiment they are of."""
        from omegaconf import OmegaConf

        node = OmegaConf.to_container(self.config, resolve=False)
        assert isinstance(node, dict)
        unread = (
            "sweep",
            "parts",
            "execution",
            "processes",
            "limits",
            *(() if self.asks_models else ("model", "faults")),
        )
        own = {str(key): node[key] for key in node if key not in unread}
        named = msgspec.to_builtins([own, self.overridden], str_keys=True)
        return msgspec.json.encode(named, order="sorted")

    def memory(self, threads: int = 1) -> Memory:
        """A new memory, not yet opened; in a worker, where it has an environment of its own.

        Args:
            threads: that may ask it at once, where it claims that they may.

        Raises:
            SettingsError: its class or a package that it needs is missing, or a setting is wrong.
        """
        if self.remote:
            return self._remote(threads)
        made = _instantiate(self.node, f"system={self.config.system.name}")
        if not isinstance(made, Memory):
            raise SettingsError(
                f"system={self.config.system.name}: {type(made).__name__} is no memory;"
                " it needs open, close, ingest, retrieve and settle"
            )
        return made

    @property
    def remote(self) -> bool:
        """Whether the system runs in a worker."""
        system = self.config.system
        apart = "environment" in system or "command" in system or system.get("worker")
        return bool(apart or self.limits.apart)

    @property
    def limits(self) -> Limits:
        """What the system may take: its own limits, and over them those that were asked for.

        Raises:
            SettingsError: one is not of its kind.
        """
        asked = {
            key: value for key, value in plain(self.config.limits).items() if value is not None
        }
        own = plain(self.config.system).get("limits", {})
        try:
            return msgspec.convert(own | asked, Limits, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"limits: {error}".replace("`", "")) from None

    @property
    def cores(self) -> int:
        """How many cores a cell of the system keeps busy.

        Raises:
            SettingsError: no whole number, or less than one.
        """
        cores = self.config.system.get("cores", 1)
        if not isinstance(cores, int) or cores < 1:
            raise SettingsError(f"system.cores={cores}: write a whole number, at least 1")
        return cores

    @property
    def passes(self) -> list[str]:
        """The environment variables that the system's worker gets besides."""
        return list(self.config.system.get("passes", ()))

    def _remote(self, threads: int) -> Memory:
        from steeltrap.harness.environments import EnvironmentFault, find
        from steeltrap.harness.remote import Remote, WorkerError, WorkerFault

        system = plain(self.config.system)
        try:
            python = find(system["environment"]) if "environment" in system else None
            return Remote(
                self.node, python=python, packages=system["packages"], passes=self.passes,
                limits=self.limits, name=system["name"], threads=threads,
            )  # fmt: skip
        except (EnvironmentFault, WorkerError, WorkerFault) as error:
            raise SettingsError(f"system={system['name']}: {error}") from None

    @property
    def asks_models(self) -> bool:
        """Whether the system makes model calls."""
        return "answers" in self.config.system

    @contextmanager
    def gateway(self, script: Script, purse: Purse | None = None) -> Iterator[Gateway | None]:
        """Whoever answers the system's model calls, while it runs; None where it makes none.

        Args:
            script: what an ideal model understands.
            purse: from which a real model is paid, where several cells share a budget.

        Raises:
            SettingsError: a setting of the model is missing or wrong.
        """
        if not self.asks_models:
            yield None
            return
        from steeltrap.harness.gateway.setup import gateway

        system = self.config.system
        try:
            made = gateway(
                plain(self.config.model), plain(self.config.faults), script=script,
                embedder=self._embedder(), answer=loaded(system.answers) if system.answers else None,
                system=system.name, purse=purse,
            )  # fmt: skip
        except ValueError as error:
            raise SettingsError(f"model={self.config.model.name}: {error}") from None
        with made:
            yield made

    @property
    def vectors(self) -> Any:
        """Makes the vectors that the gateway gives; None where it gives none, or its provider does."""
        if not self.asks_models or self.config.model.get("embedding_model"):
            return None
        return self._embedder().embed

    def _embedder(self) -> Any:
        return _embedder(msgspec.json.encode(plain(self.config.embedder)))

    def script(self) -> Script:
        """The script with its truth.

        Raises:
            SettingsError: a setting is wrong.
            ScriptError: the script cannot be made or read.
        """
        script = _script(msgspec.json.encode(plain(self.config.script)), self.config.seed)
        script = weighed(script) if self.config.weigh else script
        return with_unobserved(script) if self.config.observing else script

    def reader(self) -> Reader:
        """The reader."""
        return READERS[self.config.reader.name]()

    def spec(self, script: Script, memory: Memory) -> RunSpec:
        """The spec of a run of this script on this memory."""
        embedder = getattr(memory, "embedder", None)
        model = {}
        if self.asks_models:
            embedder = embedder or self._embedder()
            model = self._model()
        return run_spec(
            script,
            system=self.system,
            model=model,
            settings=self.node | getattr(memory, "identity", {}),
            reader=self.config.reader.name,
            limit=self.config.limit,
            twins=self.config.twins,
            repeats=self.config.repeats,
            embedder=f"{embedder.name} {embedder.version}" if embedder else "",
            packages=self.config.system.packages,
            versions=getattr(memory, "versions", None),
        )

    def _model(self) -> dict[str, Any]:
        """What decides the answers of the model, faults included."""
        from steeltrap.harness.gateway.setup import identity

        try:
            return identity(plain(self.config.model), plain(self.config.faults))
        except ValueError as error:
            raise SettingsError(f"model={self.config.model.name}: {error}") from None

    @property
    def node(self) -> dict[str, Any]:
        """The settings of the adapter itself."""
        system = plain(self.config.system)
        return {key: value for key, value in system.items() if key not in ABOUT}


# ---------------------------------------------------------------- making things


@functools.lru_cache(maxsize=8)
def _script(settings: bytes, seed: int) -> Script:
    """A script is made once for all systems that run it."""
    made = _source(settings)
    if isinstance(made, ScriptSettings):
        try:
            if made.life and made.turns > LONG_TURNS:
                return _kept(made, seed)
            return compose(made, seed)
        except ScriptError as error:
            raise SettingsError(str(error)) from None
    if isinstance(made, Script):
        return made
    if not 0 <= seed < len(made):
        raise SettingsError(f"seed={seed}: this data has {len(made)} scripts, 0 to {len(made) - 1}")
    return made[seed]


def _kept(settings: ScriptSettings, seed: int) -> Script:
    """A long script, composed into the cache folder once for this code, these settings and this seed."""
    made_of = [
        msgspec.to_builtins(settings, str_keys=True),
        seed,
        steeltrap.__version__,
        revision(),
    ]
    name = hashlib.sha256(msgspec.json.encode(made_of, order="sorted")).hexdigest()[:16]
    path = cache_folder() / "scripts" / f"{settings.name}-{settings.turns}-{seed}-{name}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        return compose_file(settings, seed, path)
    return Script.stored(path)


@functools.lru_cache(maxsize=2)
def _embedder(settings: bytes) -> Any:
    return _instantiate(msgspec.json.decode(settings), "embedder")


@functools.lru_cache(maxsize=2)
def _source(settings: bytes) -> ScriptSettings | Script | Sequence[Script]:
    """Settings to compose a script from, a script that was read, or one for each seed."""
    node: dict[str, Any] = msgspec.json.decode(settings)
    try:
        if "_target_" not in node:
            return msgspec.convert(node, ScriptSettings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"script: {error}".replace("`", "")) from None
    made = _instantiate({key: node[key] for key in node if key not in ABOUT}, "script")
    if isinstance(made, str) or not isinstance(made, Script | Sequence):
        raise SettingsError(f"script: {node['_target_']} gives {type(made).__name__}, not a Script")
    return made


def _instantiate(node: Any, what: str) -> Any:
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate
    from omegaconf.errors import OmegaConfBaseException

    try:
        return instantiate(node, _convert_="all")
    except OmegaConfBaseException as error:
        raise SettingsError(f"{what}: {first_line(error)}") from None
    except InstantiationException as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, ModuleNotFoundError) and "'steeltrap[" not in str(cause):
            raise SettingsError(
                f"{what}: needs the package '{cause.name}', which is not installed"
            ) from None
        said = " ".join(str(cause or error).split())
        if isinstance(cause, TypeError) and "unexpected keyword" in said:
            said += f"; it takes: {', '.join(parameters(node['_target_'])) or 'nothing'}"
        raise SettingsError(f"{what}: {said}") from None


# ---------------------------------------------------------------- composing and sweeping


def cells(asked: Sequence[str]) -> list[Settings]:
    """The settings of every cell that the overrides ask for, sweeps carried out.

    What an experiment sweeps over yields to what was asked.

    Args:
        asked: overrides in Hydra's grammar.

    Raises:
        SettingsError: an unknown key or option, or a value that is not of its kind.
    """
    given = parsed(asked)
    for override in given:
        if override.key_or_group == "system":
            offer_classes(choices(override))
    with configs():
        base = composed(experiment(given))
        if not base.parts:
            return [_cell(point) for point in points(given)]
        # a part says itself which experiment it is, and lies in the folder of the whole
        asked_of_all = [o for o in given if o.key_or_group != "experiment"]
        named = parsed([f"{key}={_word(base[key])}" for key in _OF_ALL])
        keys = {override.key_or_group for override in given}
        whole = [*(o for o in named if o.key_or_group not in keys), *asked_of_all]
        return _of_parts([points(whole, parsed(part)) for part in base.parts], asked_of_all)


_OF_ALL: Final = ("name", "include", "install", "processes", "families", "execution")
"""What an experiment of several parts says for all of them."""


def _word(value: object) -> str:
    """A plain value, or the name of what was chosen of a group, as it is written on a command line."""
    value = value["name"] if isinstance(value, Mapping) else value
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _of_parts(parts: Sequence[list[list[str]]], given: Sequence[Override]) -> list[Settings]:
    """The cells of all parts, each once; an override goes where there is such a setting.

    Raises:
        SettingsError: there is none in any part.
    """
    asked = [point for part in parts for point in part]
    able = [fitting(point) for point in asked]
    for override in given:
        key = override.get_key_element().lstrip("+")
        if not any(key_of(word) == key for point in able for word in point):
            composed(asked[0])  # says what is wrong with it
    found: dict[bytes, Settings] = {}
    for settings in map(_cell, able):
        found.setdefault(settings.identity, settings)
    return list(found.values())


def rebuilt(spec: RunSpec) -> Settings:
    """The settings of a stored run, as far as they decide what a system does.

    Raises:
        SettingsError: the system or something that it needs is not here any more.
    """
    system, *overridden = re.split(r" (?=[\w.@]+=)", spec.system)
    asked = [f"system={system}", f"reader={spec.reader}", f"limit={spec.limit}"]
    asked += [f"twins={spec.twins}", f"repeats={spec.repeats}", f"seed={spec.seed}"]
    for word in overridden:
        if not word.startswith(("model.", "model=", "faults.", "faults=")):
            asked.append(word if word.startswith("window=") else f"++system.{word}")
    asked += _asked_again(spec.model)
    for embedder in options("embedder"):
        if spec.embedder.startswith(_embedder_name(embedder)):
            asked.append(f"embedder={embedder}")
    return cells(asked)[0]


def _asked_again(model: dict[str, Any]) -> list[str]:
    """The overrides that give a stored model again, its address included."""
    if not model:
        return []
    faults = model.get("faults", {})
    given = [f"model={model['name']}", f"faults={faults.get('name', 'none')}"]
    for group, settings in (("model", model), ("faults", faults)):
        for key, value in settings.items():
            if key not in ("name", "faults", "recordings_sha256"):
                given.append(f"{group}.{key}={'null' if value is None else value}")
    return given


def _embedder_name(option: str) -> str:
    with configs():
        node = plain(composed([f"embedder={option}"]).embedder)
    try:
        return str(loaded(node.get("embedder", node)["_target_"]).name)
    except (ImportError, AttributeError):
        return "\0"


def described() -> list[System]:
    """Each system that can be chosen, with a line about it.

    Settings files begin with it; for a memory of another package it is the first line of its
    docstring, or why it cannot be loaded.
    """
    elsewhere = {name: node for _, name, node in installed()}
    names = options("system")
    found = []
    with configs():
        for name in names:
            if node := elsewhere.get(name):
                found.append(System(name, _docstring(node["_target_"]), "", node["packages"]))
                continue
            system = composed([f"system={name}"]).system
            about = (_SYSTEMS / f"{name}.yaml").read_text().split("\n", 1)[0].removeprefix("# ")
            found.append(System(name, about, system.get("environment", ""), list(system.packages)))
    return found


def _docstring(target: str) -> str:
    try:
        made = loaded(target)
    except Exception as error:  # somebody else's module may raise anything
        return f"cannot be loaded: {first_line(error)}"
    words = str(made.__doc__ or target).strip()
    return words.split("\n", 1)[0]


def _cell(point: list[str]) -> Settings:
    config = assembled(point)
    for key, least in _NUMBERS.items():
        if not isinstance(config[key], int) or config[key] < least:
            raise SettingsError(f"{key}={config[key]}: write a whole number, at least {least}")
    for key in ("observing", "install", "families"):
        if not isinstance(config[key], bool):
            raise SettingsError(f"{key}={config[key]}: write true or false")
    for key in ("name", "include"):
        name = str(config[key])
        if name in ("", ".", "..") or re.search(r"[/\\]", name) or not name.isprintable():
            shown = name if name.isprintable() else repr(name)
            raise SettingsError(
                f"{key}={shown}: write the name of one folder; runs=FOLDER chooses where it is"
            )
    ours = ["system."]
    if "${window}" in _unresolved(config):
        ours.append("window=")
    if "answers" in config.system:
        ours += _NAMED
    overridden = (
        part for part in point
        if part.lstrip("+").startswith(tuple(ours)) and key_of(part) != "system.cores"
    )  # fmt: skip
    return Settings(config, tuple(part.lstrip("+").removeprefix("system.") for part in overridden))


def _unresolved(config: DictConfig) -> list[Any]:
    """The values of the system's settings as they were written."""
    from omegaconf import OmegaConf

    return list(OmegaConf.to_container(config.system, resolve=False).values())  # type: ignore[union-attr]
