"""The jobs that start once the others work: starting jobs compete for the processor."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.runtime.running_job import RunningJob

PATIENCE_SECONDS = 25.0
"""Longest time for which these jobs wait for the others."""


class LaterJobs:
    """The names of the jobs that have not been started yet, in the order in which they start.

    Args:
        names: Their names.
        now: Seconds of the monotonic clock: the others start now.
    """

    def __init__(self, names: Iterable[str] = (), now: float = 0.0) -> None:
        self.names = list(names)
        self._until = now + PATIENCE_SECONDS

    def due(self, others: Iterable[RunningJob], now: float) -> bool:
        """Whether they may start: each of the others has completed a micro-batch with messages, or is over.

        The last of them in the chain has messages when what came in has passed through all the others.

        Args:
            others: The jobs that start first.
            now: Seconds of the monotonic clock.
        """
        return now >= self._until or all(run.query is None or run.worked for run in others)

    def put_off(self, name: str) -> None:
        """Adds a job that could not be started with the others; it is the next to start."""
        self.names.insert(0, name)

    def drop(self, name: str) -> None:
        """Leaves out a job, which has been started or is not wanted any more; does nothing if it is not among them."""
        if name in self.names:
            self.names.remove(name)
