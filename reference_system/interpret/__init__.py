"""Interpreters: who turns an utterance into statements and a question into a `Question`.

`ModelInterpreter` asks a language model, `WordsInterpreter` needs none. Prompts are in
`prompts/`.
"""

from __future__ import annotations

from steeltrap.reference_system.interpret.base import (
    InterpretationError,
    Interpreter,
    Known,
    Sketch,
    Speech,
)
from steeltrap.reference_system.interpret.model import ModelFault, ModelInterpreter, Usage
from steeltrap.reference_system.interpret.words import WordsInterpreter

__all__ = [
    "InterpretationError",
    "Interpreter",
    "Known",
    "ModelFault",
    "ModelInterpreter",
    "Sketch",
    "Speech",
    "Usage",
    "WordsInterpreter",
]
