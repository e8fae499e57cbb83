"""Generative Agents: a memory stream, ranked by recency, importance and relevance, and reflection."""

from __future__ import annotations

from steeltrap.adapters.generative_agents.memory import GenerativeAgents

__all__ = ["GenerativeAgents"]
