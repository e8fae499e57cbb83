"""From settings to a gateway: whoever answers, and what stands in between.

Back ends are put around each other: the model itself, a recording of it, a budget, faults.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from steeltrap.harness.gateway.backend import Backend, Embedder
from steeltrap.harness.gateway.budget import Budgeted, Purse
from steeltrap.harness.gateway.faults import Faulty
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import Dials, ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.models import Answerer
from steeltrap.harness.script import Script

__all__ = ["gateway", "identity", "recorded"]

_NOT_IDENTITY: Final = (
    "budget_tokens", "budget_usd", "concurrency", "recordings", "retries", "timeout_s",
)  # fmt: skip
"""Settings of a model that decide how it is asked and not what it answers."""
_FAULTS: Final = {
    "status_429": "429", "status_500": "500", "timeout": "timeout", "cut": "cut",
    "malformed": "malformed", "empty": "empty", "wrong_schema": "wrong-schema",
}  # fmt: skip
"""Settings by the names of the faults."""


def identity(model: Mapping[str, Any], faults: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the answers of a model: its settings, its address, or what was recorded."""
    found = {key: value for key, value in model.items() if key not in _NOT_IDENTITY}
    if "provider" in model:
        from steeltrap.harness.gateway.upstream import address

        found["base_url"] = address(model["provider"], model["base_url"] or "")
    elif model["name"] == "replay":
        found["recordings_sha256"] = _contents(Path(model["recordings"]))
    return found | {"faults": dict(faults)}


def _contents(folder: Path) -> str:
    """The sha256 of what a folder holds; empty where there is nothing."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.jsonl")):
        digest.update(path.read_bytes())
    return digest.hexdigest() if folder.is_dir() else ""


def gateway(
    model: Mapping[str, Any],
    faults: Mapping[str, Any],
    *,
    script: Script,
    embedder: Embedder,
    answer: Answerer | None,
    system: str,
    purse: Purse | None = None,
) -> Gateway:
    """A gateway, not yet open.

    Args:
        model: settings as in `configs/model`.
        faults: settings as in `configs/faults`.
        script: what an ideal model understands.
        embedder: makes the vectors, unless the model's provider does.
        answer: how an ideal model answers the system's prompts; None: it cannot.
        system: name and version of the system, for errors.
        purse: from which a real model is paid, where several gateways share a budget.

    Raises:
        ValueError: a setting is missing or wrong; the message names it.
    """
    if not model.get("embedding_model"):
        # the first text loads the embedder, which takes longer than impatient clients wait
        embedder.embed(["first"])
    if model["name"] == "ideal":
        shares = {key: value for key, value in model.items() if key != "name"}
        dials = msgspec.convert(shares, Dials, strict=False)
        ideal = Ideal(answer, ScriptMind(script, dials), embedder, system=system)
        return _open(ideal, faults, embedder.dimension)
    from steeltrap.harness.gateway.upstream import LocalEmbeddings

    asked = recorded(model, purse)
    if not model["embedding_model"]:
        return _open(LocalEmbeddings(asked, embedder), _patient(faults), embedder.dimension)
    if not model["dimension"]:
        raise ValueError("model.embedding_model needs model.dimension: how long its vectors are")
    return _open(asked, _patient(faults), model["dimension"])


class _Vectors(NamedTuple):
    """What systems are told of vectors."""

    name: str
    dimension: int


def _patient(faults: Mapping[str, Any]) -> Mapping[str, Any]:
    """The back end waits and asks again by itself, so clients need not."""
    return {"timeout_s": 900.0, "retries": 0} | dict(faults)


def _open(backend: Backend, faults: Mapping[str, Any], dimension: int) -> Gateway:
    """Systems know their models by names that are always the same: prompts and recordings do not
    depend on who answers. Under faults, clients are less patient.
    """
    patience = {key: _number(faults, key) for key in ("timeout_s", "retries") if key in faults}
    vectors = _Vectors("embedding", dimension)
    return Gateway(_faulty(backend, faults), vectors, chat="chat", **patience)


def recorded(model: Mapping[str, Any], purse: Purse | None) -> Backend:
    """A real model and its recordings, or these alone.

    Args:
        model: settings as in `configs/model`; for a replay, `model` says whose answers are wanted.
        purse: from which a real model is paid, where several share a budget.

    Raises:
        ValueError: a setting is missing or wrong; the message names it.
    """
    from steeltrap.harness.gateway.recording import Recorded, Replay
    from steeltrap.harness.gateway.upstream import Upstream

    folder = Path(model["recordings"])
    if model["name"] == "replay":
        return Replay(folder, model.get("model") or "")
    upstream = Upstream(
        model["provider"], model["model"], base_url=model["base_url"] or "",
        embedding_model=model["embedding_model"] or "", concurrency=model["concurrency"],
        retries=model["retries"], timeout_s=model["timeout_s"],
    )  # fmt: skip
    budgeted = Budgeted(
        upstream, model=model["model"], embedding_model=model["embedding_model"] or "",
        limit_tokens=model["budget_tokens"], limit_usd=model["budget_usd"], purse=purse,
    )  # fmt: skip
    return Recorded(budgeted, folder)


def _number(faults: Mapping[str, Any], key: str) -> Any:
    """A setting of the faults that is a number, not below 0."""
    value = faults[key]
    if isinstance(value, bool | str) or value < 0:
        raise ValueError(f"faults.{key}={value}: write a number, at least 0")
    return value


def _faulty(backend: Backend, faults: Mapping[str, Any]) -> Backend:
    """With faults, where any are asked for."""
    shares = {kind: _number(faults, key) for key, kind in _FAULTS.items() if faults.get(key)}
    if not shares:
        return backend
    return Faulty(backend, shares, seed=faults["seed"])
