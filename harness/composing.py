"""What can be set and chosen, and how what was asked is read: all that is Hydra's.

Overrides are read by Hydra's grammar, settings are composed from `configs/`; no folder of Hydra's
is made. Besides the files there is a script for each family, and a system for each memory that
another package offers under the entry-point group `steeltrap.systems`, or that is named by its
class, as `system=package.module:Class`.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import importlib.metadata
import inspect
import itertools
import pickle
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steeltrap.workloads.compose import ScriptSettings
from steeltrap.workloads.families import EVERY
from steeltrap.workloads.render import Surface

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

__all__ = [
    "ABOUT",
    "ENTRY_POINTS",
    "SettingsError",
    "assembled",
    "choices",
    "composed",
    "configs",
    "experiment",
    "first_line",
    "fitting",
    "installed",
    "key_of",
    "loaded",
    "offer_classes",
    "options",
    "parameters",
    "parsed",
    "plain",
    "points",
]

ENTRY_POINTS: Final = "steeltrap.systems"
ABOUT: Final = ("name", "packages", "answers", "environment", "passes", "worker", "limits", "cores")
"""Keys of a system that are not settings of its adapter: how it is called, the distributions it
stands on, who answers its prompts where the model is ideal, the environment that it has of its
own, the variables that its worker gets, whether it runs in one, limits that differ from the usual
ones, and how many cores a cell of it keeps busy."""
_GROUPS: Final = (
    "experiment", "system", "script", "reader", "embedder", "model", "faults", "execution",
)  # fmt: skip
"""Groups of settings, of which one option each is chosen."""


class SettingsError(ValueError):
    """Something that was asked for does not exist; the message names it and what does."""


def parameters(target: str) -> list[str]:
    """What can be given to a class or function by name; nothing where it cannot be loaded."""
    try:
        return list(inspect.signature(loaded(target)).parameters)
    except (ImportError, AttributeError, ValueError, TypeError):
        return []


def loaded(target: str) -> Any:
    """The class or function of a dotted name."""
    module, _, name = target.rpartition(".")
    return getattr(importlib.import_module(module), name)


def plain(node: Any) -> Any:
    """Settings as plain data.

    Raises:
        SettingsError: one that must be given is not.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import MissingMandatoryValue

    try:
        return OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key = error.full_key or "a setting"
        raise SettingsError(f"{key} must be given: {key}=VALUE") from None


# ---------------------------------------------------------------- what can be chosen


def options(group: str) -> list[str]:
    """What can be chosen in a group of settings: `system`, `script`, `reader`, ..."""
    from hydra.core.global_hydra import GlobalHydra

    with configs():
        loader = GlobalHydra.instance().config_loader()
        return sorted(name for name in loader.get_group_options(group) if ":" not in name)


# ---------------------------------------------------------------- overrides and sweeps


def experiment(overrides: Sequence[Override]) -> list[str]:
    """The choice of an experiment, where there is one."""
    chosen = [override for override in overrides if override.key_or_group == "experiment"]
    return [choice for override in chosen for choice in choices(override)[:1]]


def points(given: Sequence[Override], own: Sequence[Override] = ()) -> list[list[str]]:
    """The overrides of each cell: what is given, for which a part's own and a sweep's yield."""
    keys = {override.key_or_group for override in given}
    kept = [override for override in own if override.key_or_group not in keys]
    keys |= {override.key_or_group for override in own}
    base = _composed(tuple(experiment([*own, *given])))
    swept = [axis for axis in parsed(base.sweep) if axis.key_or_group not in keys]
    axes = [choices(override) for override in (*swept, *kept, *given)]
    return [list(point) for point in itertools.product(*axes)]


def fitting(point: Sequence[str]) -> list[str]:
    """Without overrides of settings that the chosen system, script and the like do not have."""
    groups = tuple(word for word in point if key_of(word) in _GROUPS)
    there = _keys(groups)
    return [word for word in point if word.startswith("+") or key_of(word) in there]


def key_of(word: str) -> str:
    """The key of an override as it was written."""
    return word.lstrip("+").partition("=")[0]


@functools.lru_cache(maxsize=256)
def _keys(groups: tuple[str, ...]) -> frozenset[str]:
    """Every key of the settings of such choices, those that hold others included."""
    from omegaconf import OmegaConf

    def below(node: Any, above: str) -> Iterator[str]:
        for key, value in node.items() if isinstance(node, dict) else ():
            yield f"{above}{key}"
            yield from below(value, f"{above}{key}.")

    node = OmegaConf.to_container(_chosen(groups), resolve=False)
    return frozenset([*_GROUPS, *below(node, "")])


def choices(override: Override) -> list[str]:
    """Each value of a sweep as an override of its own."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    if not override.is_discrete_sweep():
        raise SettingsError(f"{override.input_line}: list the values, or use range(start,stop)")
    key = override.get_key_element()
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def parsed(asked: Sequence[str]) -> list[Override]:
    """Overrides in Hydra's grammar.

    Raises:
        SettingsError: one is not understood.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import OverrideParseException

    try:
        return OverridesParser.create().parse_overrides(list(asked))
    except OverrideParseException as error:
        word = error.override
        hint = f", as system={word}" if word in options("system") else ""
        raise SettingsError(f"'{word}' is not understood; write KEY=VALUE{hint}") from None


def composed(overrides: list[str]) -> DictConfig:
    """The settings that these overrides give; inside `configs`.

    Raises:
        SettingsError: an unknown key, group or option.
    """
    import hydra
    from hydra.errors import ConfigCompositionException, MissingConfigException

    try:
        return hydra.compose("config", overrides=overrides)
    except MissingConfigException as error:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        known = ", ".join(error.options or [])
        raise SettingsError(f"unknown {group} '{name}'; known: {known}") from None
    except ConfigCompositionException as error:
        raise SettingsError(_in_words(error, overrides)) from None


def assembled(overrides: Sequence[str]) -> DictConfig:
    """What `composed` gives, put together from what was composed before; inside `configs`.

    A sweep has few options of each group, and many combinations of them. An option sets its own
    group alone, whatever is chosen beside it but an experiment, so each is composed once and
    copied. Plain values are set in the way that Hydra sets them. Anything else, and anything that
    is wrong, is composed as a whole, so that it gives what it always gave, errors included.

    Raises:
        SettingsError: an unknown key, group or option.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    chosen = tuple(word for word in overrides if word.partition("=")[0] in _GROUPS)
    keys = [key_of(word) for word in chosen]
    values = [_plain_value(word) for word in overrides if word not in chosen]
    try:
        if None in values or len(set(keys)) < len(keys):
            return composed(list(overrides))
        made: DictConfig = pickle.loads(_kept(chosen))
        for key, value in filter(None, values):
            OmegaConf.update(made, key, value, merge=True)
        return made
    except (SettingsError, OmegaConfBaseException):
        return composed(list(overrides))


@functools.lru_cache(maxsize=256)
def _kept(choices: tuple[str, ...]) -> bytes:
    """`_chosen`, to be copied: in this way four times as fast as by a deep copy."""
    return pickle.dumps(_chosen(choices))


@functools.lru_cache(maxsize=64)
def _chosen(choices: tuple[str, ...]) -> DictConfig:
    """The settings of such choices, at most one of each group; not to be changed."""
    from omegaconf import open_dict

    leading = tuple(word for word in choices if key_of(word) == "experiment")
    made = copy.deepcopy(_composed(leading))
    with open_dict(made):
        for word in choices:
            if word in leading:
                continue
            alone = _composed((*leading, word))
            if (group := key_of(word)) not in alone:  # nothing was chosen, as by system=null
                return composed(list(choices))
            made[group] = alone[group]
    return made


@functools.lru_cache(maxsize=256)
def _composed(overrides: tuple[str, ...]) -> DictConfig:
    """What `composed` gives; not to be changed."""
    return composed(list(overrides))


@functools.lru_cache(maxsize=1024)
def _plain_value(word: str) -> tuple[str, Any] | None:
    """Key and value of an override that changes one setting; None for any other kind."""
    from hydra.core.override_parser.types import OverrideType

    (override,) = parsed([word])
    if override.type is not OverrideType.CHANGE or override.package is not None:
        return None
    if override.is_hydra_override() or override.is_sweep_override():
        return None
    return override.key_or_group, override.value()


def _in_words(error: Exception, overrides: list[str]) -> str:
    """Hydra's words for an unknown key, said so that the next step is plain."""
    said = first_line(error)
    if unknown := re.search(r"Could not override '([^']+)'", said):
        key = unknown[1]
        if key.startswith("system."):
            return _no_such_system_setting(key, overrides)
        return f"unknown setting '{key}'; `steeltrap run --help` lists them all"
    return said


def _no_such_system_setting(key: str, overrides: list[str]) -> str:
    """What the chosen system does take, and how a memory of another package is set."""
    chosen = [part for part in overrides if re.match(r"(experiment|system)=", part)]
    system = composed(chosen).system
    keys = [str(name) for name in system if name not in (*ABOUT, "_target_")]
    takes = ", ".join(keys or parameters(system["_target_"])) or "nothing"
    asked = next((part for part in overrides if part.startswith(f"{key}=")), f"{key}=VALUE")
    return (
        f"unknown setting '{key}'; system={system.name} takes: {takes};"
        f" write +{asked} for a memory of another package"
    )


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(error).strip().split("\n", 1)[0]


def configs() -> Any:
    """The configuration folder, with a script for each family and each installed system."""
    from hydra import initialize_config_module

    _register()
    return initialize_config_module("steeltrap.configs", version_base="1.3")


@functools.cache
def _register() -> None:
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    for group, name, node in (*_families(), *installed()):
        store.store(group=group, name=name, node=node)


def _families() -> Iterator[tuple[str, str, dict[str, Any]]]:
    surface = dataclasses.asdict(Surface())
    for family in EVERY:
        alone = ScriptSettings(name=family, families={family: 1.0}, surface=surface)
        yield "script", family, msgspec.to_builtins(alone)


def installed() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Memories that other packages offer; none is imported before it is chosen."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        node = {
            "_target_": point.value.replace(":", "."),
            "name": point.name,
            "packages": [point.dist.name] if point.dist else [],
        }
        yield "system", point.name, node


def offer_classes(choices: Sequence[str]) -> None:
    """Make each `system=module:Class` a system of that name.

    Raises:
        SettingsError: there is no such class; says what there is, and what to do.
    """
    from hydra.core.config_store import ConfigStore

    for choice in choices:
        name = choice.partition("=")[2].strip("'\"").replace("\\:", ":")  # escaped in a sweep
        if ":" in name:
            _class(name)
            node = {"_target_": name.replace(":", "."), "name": name, "packages": []}
            ConfigStore.instance().store(group="system", name=name, node=node)


def _class(name: str) -> Any:
    """The class of `module:Class`, looked for as `python -m` does: in this folder as well."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise SettingsError(f"system={name}: write module:Class, as mypackage.memory:MyMemory")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.import_module(module)
    except Exception as error:  # somebody else's module may raise anything
        raise SettingsError(f"system={name}: {_no_module(module, error)}") from error
    if not hasattr(found, attribute):
        there = [key for key, made in vars(found).items() if isinstance(made, type) and hasattr(made, "ingest")]  # fmt: skip
        raise SettingsError(
            f"system={name}: {module} has no '{attribute}'; memories in it: {', '.join(there) or 'none'}"
        )
    return getattr(found, attribute)


def _no_module(module: str, error: Exception) -> str:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and (module == missing or module.startswith(f"{missing}.")):
        return (
            f"there is no module '{missing}' here; install its package (pip install -e .), or begin"
            " in the folder that holds it"
        )
    return f"importing {module} raised {type(error).__name__}: {first_line(error)}"
