"""When a job that failed is started again: soon at first, then later and later, and not for ever."""

from __future__ import annotations

from dataclasses import dataclass, field

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0)
"""Seconds before each start after a failure, as long as no micro-batch ends in between; after the last, the job fails
for good."""


@dataclass
class Restarts:
    """The failures of one job since its last completed micro-batch.

    >>> job = Restarts()
    >>> job.failed("disk full", now=0.0), job.due(0.5), job.due(1.0)
    (True, False, True)
    >>> job.started()
    >>> job.failed("disk full", now=5.0), job.due(6.5), job.due(7.0)
    (True, False, True)
    """

    failures: int = 0
    tries: int = 0
    reason: str = ""
    at: float = field(default=0.0)
    waiting: bool = False

    def failed(self, reason: str, now: float, excused: bool = False) -> bool:
        """Takes in a failure; returns whether another start is worth it.

        Args:
            reason: Why, in one line.
            now: Seconds, monotonic.
            excused: The job is not to blame: the failure is no step towards giving up.
        """
        if not excused and self.failures >= len(PAUSES):
            return False
        self.at = now + PAUSES[min(self.tries, len(PAUSES) - 1)]
        self.tries += 1
        self.failures += not excused
        self.reason, self.waiting = reason, True
        return True

    def due(self, now: float) -> bool:
        """Whether the time of the next start has come."""
        return self.waiting and now >= self.at

    def started(self) -> None:
        """The job was started again."""
        self.waiting = False

    def calm(self) -> None:
        """A micro-batch ended: what was before does not count any more."""
        if not self.waiting:
            self.failures, self.tries, self.reason = 0, 0, ""
