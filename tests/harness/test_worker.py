"""The child's end of a worker: what it makes, answers and refuses, and what it stands on."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steeltrap
from steeltrap.adapters.flat import Flat
from steeltrap.adapters.vector import Vector
from steeltrap.harness.memory import Query, Utterance
from steeltrap.harness.worker import VERSION, make, serve

FLAT = {"_target_": "steeltrap.adapters.flat.Flat"}
TURN = Utterance("t1", "2026-03-02T10:00", "acme", "s1", "user", "Zażółć 🦀\n\u2028")
QUERY = Query("p1", "2026-03-02T11:00", "acme", "What?", 10)
PROGRAM = Path(steeltrap.__file__).parent / "harness" / "worker.py"
WORKERS = Path(__file__).parent / "workers"


def said(*lines: Any) -> list[Any]:
    """What is answered to some lines."""
    written = [line if isinstance(line, bytes) else msgspec.json.encode(line) for line in lines]
    answers = io.BytesIO()
    serve(io.BytesIO(b"".join(line + b"\n" for line in written)), answers)
    return [json.loads(line) for line in answers.getvalue().decode().split("\n")[:-1]]


def hello(node: dict[str, Any] = FLAT, **more: Any) -> dict[str, Any]:
    return {"steeltrap": VERSION, "make": node, **more}


def ask(number: int, do: str, on: int = 0, **given: Any) -> dict[str, Any]:
    return {"id": number, "do": do, "on": on, "with": given}


# ---------------------------------------------------------------- making


def test_what_a_node_describes_is_made_inner_first() -> None:
    """A `_target_` within another becomes its argument, as with Hydra; other values stay."""
    inner = {"_target_": "steeltrap.adapters.embedders.HashEmbedder"}
    made = make({"_target_": "steeltrap.adapters.vector.Vector", "embedder": inner})
    assert isinstance(made, Vector)
    assert type(made.embedder).__name__ == "HashEmbedder"
    assert {"a": [1, None, {"b": True}]} == make({"a": [1, None, {"b": True}]})
    assert make([FLAT])[0].__class__ is Flat


def test_what_only_hydra_understands_is_refused() -> None:
    """`_partial_` and its like are not passed on to a class as if they were settings."""
    with pytest.raises(ValueError, match="_partial_: in a worker only _target_ is understood"):
        make(FLAT | {"_partial_": True})


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ({"steeltrap": 2, "make": FLAT}, "speaks version 1 of the protocol, not 2"),
        ({"make": FLAT}, "speaks version 1 of the protocol, not None"),
        (b"hello", "DecodeError: JSON is malformed"),
        ({"steeltrap": 1}, "ValidationError: Object missing required field `make`"),
        (hello({"_target_": "steeltrap.nowhere.Flat"}), "No module named 'steeltrap.nowhere'"),
        (hello(FLAT | {"window": 3}), "unexpected keyword argument 'window'"),
        (hello(FLAT | {"window_turns": 0}), "ValueError: flat: a window of 0 keeps nothing"),
        (hello({"_target_": "fractions.Fraction"}), "TypeError: Fraction is no memory; it needs"),
    ],
)
def test_what_cannot_be_made_is_said(first: Any, words: str) -> None:
    """A hello that leads to no memory is answered with the version and with why, and waited on."""
    first_said, second_said = said(first, hello())
    assert 1 == first_said["steeltrap"]
    assert words in first_said["error"]
    assert {"steeltrap": 1, "capabilities": ["list", "erase"]} == {
        key: second_said[key] for key in ("steeltrap", "capabilities")
    }


def test_a_welcome_names_versions() -> None:
    """The versions of Python and of the packages that are there are told, no others."""
    (welcome,) = said(hello(packages=["msgspec", "no-such-package"]))
    assert {"python": sys.version.split()[0], "msgspec": msgspec.__version__} == welcome["versions"]


# ---------------------------------------------------------------- answering


def test_a_life_in_lines(tmp_path: Path) -> None:
    """Every request has one answer with its id; what was said is served letter by letter."""
    answers = said(
        hello(),
        ask(1, "open", folder=str(tmp_path)),
        ask(2, "ingest", turn=TURN),
        ask(3, "settle"),
        ask(4, "retrieve", query=QUERY),
        ask(5, "erase", tenant="acme", subject=None),
        ask(6, "active", tenant="acme"),
        ask(7, "close"),
    )
    item = {"text": TURN.text, "id": "t1", "sources": ["t1"], "valid_from": TURN.at}
    given = [None, None, None, [item], None, [], None]
    assert [{"id": n, "ok": ok} for n, ok in enumerate(given, 1)] == answers[1:]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ask(1, "fly"), "ValueError: 'fly' is no operation; known: connect, told, open"),
        (ask(1, "__init__"), "'__init__' is no operation"),
        (ask(1, "maintain", at="2026-03-02T10:00"), "AttributeError"),
        (ask(1, "settle", 7), "7 is no handle"),
        (ask(1, "ingest"), "missing required field `turn`"),
        (ask(1, "ingest", turn={"id": 5}), "Expected `str`, got `int`"),
        ({"id": 1}, "missing required field `do`"),
        (b"[1,", "ValidationError: Expected `object`"),
        (b"", "DecodeError"),
    ],
)
def test_a_request_that_makes_no_sense_is_an_error(request_: Any, words: str) -> None:
    """It is answered by an error, nothing is done, and the next request is answered as ever."""
    _, error, opened = said(hello(), request_, ask(2, "open", folder="."))
    assert words in error["error"]
    assert {"id": 2, "ok": None} == opened


def test_a_fault_is_told_apart_from_an_error() -> None:
    """A `MemoryFault` is a fault with its words alone, anything else an error with its type."""
    assert "flat: not open" in said(hello(), ask(1, "settle"))[1]["fault"]
    broken = {"_target_": "steeltrap.adapters.mutants.base.Mutant"}
    error = said(hello(broken), ask(1, "ingest", turn=TURN))[1]["error"]
    assert error.startswith("AttributeError: ")


# ---------------------------------------------------------------- the process


def test_it_stands_on_msgspec_alone_and_takes_nothing_else_along(tmp_path: Path) -> None:
    """Without site-packages, with msgspec only, it finds steeltrap where it lies itself.

    What lies beside steeltrap, in its environment or its checkout, is not to be found.
    """
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    (tmp_path / "odd.py").symlink_to(WORKERS / "odd.py")
    lines = [hello({"_target_": "odd.Odd", "a": {"_target_": "fractions.Fraction"}})]
    done = subprocess.run(
        [sys.executable, "-S", "-P", str(PROGRAM)],
        input=b"".join(msgspec.json.encode(line) + b"\n" for line in lines),
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=30,
    )
    welcome = json.loads(done.stdout)
    assert "error" not in welcome, done.stderr
    assert [str(PROGRAM.parents[1])] == welcome["identity"]["package"]
    assert {"a": "Fraction(0, 1)"} == welcome["identity"]["settings"]
    assert ["__main__", "msgspec", "odd", "steeltrap"] == welcome["identity"]["foreign"]
    kept = [path for path in welcome["identity"]["path"] if not path.startswith(sys.base_prefix)]
    assert [str(tmp_path)] == kept
    assert {"name": "words", "version": "3"} == welcome["embedder"]


def test_it_ends_with_its_input() -> None:
    """When there is nothing more to read it ends by itself, without a word."""
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM)],
        input=msgspec.json.encode(hello()) + b"\n",
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=30,
        start_new_session=True,
    )
    assert (0, b"") == (done.returncode, done.stderr)
    assert b'"capabilities":["list","erase"]' in done.stdout
