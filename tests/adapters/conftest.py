"""What tests of systems in environments of their own share: a short script and an ideal model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.harness import environments
from steeltrap.harness.gateway.backend import BackendError, Call
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import Utterance
from steeltrap.harness.models import Answerer, Reply
from steeltrap.harness.remote import Remote
from steeltrap.harness.script import Header, Op, Rule, Script, Turn, unit_id

MAY, JUNE = "date:2026-05-03", "date:2026-06-09"


class Small:
    """A script of a few turns about the topics Old Mill and Harbour Lights.

    Attributes:
        turns: by what they do.
        script: all of them.
    """

    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}
        self._add("tell", "Kick-off of Old Mill: 3 May.", _op("tell", "kick-off", MAY))
        self._add("noise", "Lunch was late again.", _op("noise", "kick-off"))
        self._add("host", "Its host is Ilse Brandt.", _op("tell", "host", "name:Ilse Brandt"))
        self._add("revise", "Old Mill starts on 9 June now.", _op("revise", "kick-off", JUNE))
        self._add(
            "rumour",
            "Someone said Old Mill starts on 3 May.",
            _op("rumour", "kick-off", MAY, source="hearsay"),
        )
        self._add("revert", "Back to 3 May for Old Mill.", _op("revert", "kick-off", MAY))
        self._add("retract", "Old Mill has no kick-off any more.", _op("retract", "kick-off"))
        self._add(
            "depend",
            "The review of Harbour Lights is a day after the kick-off of Old Mill.",
            _op(
                "depend", "kick-off",
                target=unit_id("acme", "Harbour Lights", "review"), rule=Rule("offset", days=1),
            ),
        )  # fmt: skip
        self._add(
            "late",
            "Old Mill was to start on 9 June from December.",
            _op("revise", "kick-off", JUNE, valid_at="2025-12-01T12:00"),
        )
        self._add(
            "two",
            "Kick-off of Old Mill is 9 June, its budget 4,300 EUR.",
            _op("restate", "kick-off", JUNE),
            _op("tell", "budget", "money:EUR 4300"),
        )
        self.script = Script(Header(name="small", tenants=["acme"]), list(self.turns.values()))

    def _add(self, name: str, text: str, *ops: Op) -> None:
        day = len(self.turns) + 1
        self.turns[name] = Turn(
            id=name, at=f"2026-01-{day:02d}T09:30", tenant="acme", session="s", text=text,
            ops=list(ops),
        )  # fmt: skip

    def heard(self, name: str, tenant: str = "acme", role: str = "user") -> Utterance:
        """A turn as a system receives it."""
        turn = self.turns[name]
        return Utterance(turn.id, turn.at, tenant, turn.session, role, turn.text)


def _op(name: str, field: str, value: str | None = None, **more: Any) -> Op:
    return Op(name, unit_id("acme", "Old Mill", field), value, **more)  # type: ignore[arg-type]


class Observed(Ideal):
    """The ideal model over the short script, which can be made to fail.

    Attributes:
        bodies: of all requests.
        broken: what it answers with instead, if anything.
    """

    def __init__(self, answer: Answerer, script: Script) -> None:
        super().__init__(answer, ScriptMind(script), HashEmbedder(), system="a system")
        self.bodies: list[dict[str, Any]] = []
        self.broken: BackendError | Reply | None = None

    async def chat(self, call: Call) -> Reply:
        self.bodies.append(call.body)
        if isinstance(self.broken, BackendError):
            raise self.broken
        return self.broken or await super().chat(call)

    async def embed(self, call: Call) -> Any:
        self.bodies.append(call.body)
        return await super().embed(call)


@pytest.fixture(scope="session")
def small() -> Small:
    """The short script."""
    return Small()


Living = Callable[[str, dict[str, Any], Answerer], tuple[Any, Observed]]


@pytest.fixture(scope="module")
def living(small: Small) -> Iterator[Living]:
    """Makes a system that lives in its own environment, connected to a model of its own.

    A test is skipped where the environment is not installed.
    """
    with ExitStack() as stack:

        def make(environment: str, node: dict[str, Any], answer: Answerer) -> tuple[Any, Observed]:
            try:
                python = environments.find(environment)
            except environments.EnvironmentMissing as missing:
                pytest.skip(str(missing))
            model = Observed(answer, small.script)
            gateway = stack.enter_context(Gateway(model, HashEmbedder(), retries=0))
            memory: Any = Remote(node, python=python, limits=Limits(step_s=120))
            memory.connect(gateway.models)
            return memory, model

        yield make


@pytest.fixture
def memory(system: tuple[Any, Any], tmp_path: Path) -> Iterator[Any]:
    """The `system` of a module, opened; its model works, and remembers no earlier request."""
    made, model = system[:2]
    model.broken = None
    model.bodies.clear()
    made.open(tmp_path)
    yield made
    made.close()


@pytest.fixture
def model(system: tuple[Any, Any]) -> Any:
    """The model of the `system` of a module."""
    return system[1]
