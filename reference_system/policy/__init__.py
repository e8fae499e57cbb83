"""The policy language: what happens to a memory, said in text that is kept in its state.

A policy names an event, a condition on the state and an action (Definition 3.3); `default.policy`
is written in it and explains it. Operators ask a `PolicySet` what to do, and hold no rules of
their own.
"""

from steeltrap.reference_system.policy.language import PolicyError
from steeltrap.reference_system.policy.policies import Firing, Policy, PolicySet, default_policies
from steeltrap.reference_system.policy.vocabulary import EVENTS

__all__ = ["EVENTS", "Firing", "Policy", "PolicyError", "PolicySet", "default_policies"]
