"""What looks after the graph."""

from __future__ import annotations

from memstate.core.executor import Executor


class Reasoner:
    """Archives where there are too many topics."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.events: list[str] = []

    def run(self, event: str) -> None:
        """Do what an event calls for."""
        self.events.append(event)
        if self._executor.store.count_topics() >= self._executor.policies.topic_count_soft_limit:
            self._executor.run_forget_low_salience()
