"""The back end `ideal`: a model that understands everything, or fails by measured shares."""

from __future__ import annotations

from typing import Final

from steeltrap.harness.gateway.backend import BackendError, Call, Embedder, Local
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.models import Answerer, Ask, NotUnderstood, Reply
from steeltrap.harness.script import Script

__all__ = ["Ideal"]

SHOWN_CHARS: Final = 400
"""So much of an unknown prompt is shown."""


class Ideal(Local):
    """Answers a system's own prompts from what they show.

    Args:
        answer: knows the prompts of the system; None: nobody does.
        mind: understands the sentences in them.
        embedder: makes the vectors.
        system: name and version of the system, for errors.
    """

    name = "ideal"

    def __init__(
        self, answer: Answerer | None, mind: ScriptMind, embedder: Embedder, *, system: str
    ) -> None:
        super().__init__(embedder)
        self._answer = answer
        self._mind = mind
        self._system = system

    def begin(self) -> None:
        """What is answered depends on the prompt alone."""

    def understand(self, script: Script) -> None:
        """Have another script in mind, with the same dials."""
        self._mind = ScriptMind(script, self._mind.dials)

    async def chat(self, call: Call) -> Reply:
        """The answer.

        Raises:
            BackendError: the prompt, or a sentence in it, is not known.
        """
        assert call.ask is not None
        if self._answer is None:
            raise self._unknown(call.ask, "nothing is known of its prompts")
        try:
            reply = self._answer(call.ask, self._mind)
        except NotUnderstood as error:
            raise self._unknown(call.ask, str(error)) from None
        except Exception as error:
            why = f"its prompt could not be taken apart ({type(error).__name__}: {error})"
            raise self._unknown(call.ask, why) from error
        if reply is None:
            raise self._unknown(call.ask, "a prompt of a kind that is not known")
        return reply

    def _unknown(self, ask: Ask, why: str) -> BackendError:
        begins = "\n".join(
            f"{message.role}: {_beginning(message.text)}" for message in ask.messages
        )
        form = f" (answer in the form {ask.schema_name})" if ask.schema_name else ""
        return BackendError(
            f"the ideal model cannot answer {self._system}: {why}. The prompt{form} begins:\n{begins}",
            status=400,
            kind="unknown-prompt",
        )


def _beginning(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
