"""Governed Evolving Memory, the model of "Is Agent Memory a Database?", as a library of its own.

It knows nothing of the rest of steeltrap. `README.md` beside this shows how it is used.
"""

from __future__ import annotations

from steeltrap.reference_system.interpret import ModelInterpreter, Speech, WordsInterpreter
from steeltrap.reference_system.memory import Answer, Erased, Memory, Served
from steeltrap.reference_system.policy import PolicyError, PolicySet, default_policies
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Question,
    Same,
    Withdrawal,
)
from steeltrap.reference_system.stores import StoreError, open_store
from steeltrap.reference_system.transition import PolicyBreach, Transition

__all__ = [
    "Answer",
    "Association",
    "Dependency",
    "Erased",
    "Fact",
    "Memory",
    "ModelInterpreter",
    "Place",
    "PolicyBreach",
    "PolicyError",
    "PolicySet",
    "Question",
    "Rule",
    "Same",
    "Served",
    "Speech",
    "StoreError",
    "Transition",
    "Withdrawal",
    "WordsInterpreter",
    "default_policies",
    "open_store",
]
