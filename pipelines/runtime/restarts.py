"""Decides when a failed job is restarted: after pauses that grow, and only a limited number of times."""

from __future__ import annotations

from dataclasses import dataclass, field

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0)
"""Pause before each restart, seconds, as long as the job completes no micro-batch in between. After the last restart,
the next failure is final."""


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
        """Records a failure; returns True if the job should be restarted, False if it has failed too often.

        Args:
            reason: Why the job failed, in one line.
            now: Seconds of the monotonic clock.
            excused: True if the job did not cause the failure, which is then not counted.
        """
        if not excused and self.failures >= len(PAUSES):
            return False
        self.at = now + PAUSES[min(self.tries, len(PAUSES) - 1)]
        self.tries += 1
        self.failures += not excused
        self.reason, self.waiting = reason, True
        return True

    def due(self, now: float) -> bool:
        """True if the pause before the next restart is over."""
        return self.waiting and now >= self.at

    def started(self) -> None:
        """Records that the job was restarted."""
        self.waiting = False

    def calm(self) -> None:
        """Records that the job completed a micro-batch: earlier failures no longer count."""
        if not self.waiting:
            self.failures, self.tries, self.reason = 0, 0, ""
