"""A job as the driver follows it: its query, progress and failures; and the jobs that start once the others work."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

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


_STALL_SECONDS = 60.0
_START_SECONDS = 12.0


@dataclass
class RunningJob:
    """One job's query and its progress.

    Attributes:
        query: The query; ``None`` before the first start, and once the job has ended, as in a run with an end.
        restarts: The failures of the job.
        read: Offsets after its last micro-batch, or where it begins, by topic and partition; ``None`` before the start,
            empty if unknown.
        batch: Number of that micro-batch; -1 if the query has completed none since its start.
        worked: True once a micro-batch with messages was seen.
        moved: Latest of these times: the query started, a new micro-batch was seen, nothing was left to read (seconds
            of the monotonic clock).
        began: When the query started, seconds of the monotonic clock.
        lag: Number of messages not read yet; ``None`` if unknown.
        patience: Seconds without a micro-batch, although there is something to read, that are no problem.
    """

    query: StreamingQuery | None = None
    restarts: Restarts = field(default_factory=Restarts)
    read: dict[str, dict[str, int]] | None = None
    batch: int = -1
    worked: bool = False
    moved: float = 0.0
    began: float = 0.0
    lag: int | None = None
    patience: float = _STALL_SECONDS

    def started(self, query: StreamingQuery, read: dict[str, dict[str, int]]) -> None:
        """Begins to follow a query, which goes on at the given offsets."""
        self.read = self.read or read
        self.query, self.batch, self.moved = query, -1, time.monotonic()
        self.began = self.moved
        self.restarts.started()

    def look(self, now: float, lag: int | None) -> None:
        """Updates the progress from the query's last micro-batch.

        Args:
            now: Seconds of the monotonic clock.
            lag: Number of messages not read yet; ``None`` if unknown.
        """
        self.lag = lag
        if not lag:
            self.moved = now
        progress = self.query.lastProgress if self.query else None
        if progress is None:
            return
        if progress["batchId"] != self.batch:
            self.batch, self.moved = progress["batchId"], now
            self.restarts.calm()
        self.worked |= progress["numInputRows"] > 0
        ends = progress["sources"][0].get("endOffset")
        if ends:
            self.read = json.loads(ends) if isinstance(ends, str) else ends

    def starts(self, now: float) -> bool:
        """True if the query started a few seconds ago and has completed no micro-batch yet."""
        return bool(self.query and self.query.isActive and self.batch < 0 and now < self.began + _START_SECONDS)

    def stop(self) -> None:
        """Stops the query, whatever it is doing."""
        with suppress(Exception):
            if self.query:
                self.query.stop()

    def idle(self) -> bool:
        """Whether the query runs, and has read and processed all messages."""
        if not (self.query and self.query.isActive):
            return False
        status: dict[str, Any] = self.query.status
        return not (status["isDataAvailable"] or status["isTriggerActive"])

    def problem(self, name: str, now: float) -> str:
        """A sentence that says what keeps the job from its work; empty if nothing does."""
        if self.restarts.waiting:
            return f"{name}: failed and will restart: {self.restarts.reason}"
        if self.query is not None and self.lag and now > self.moved + self.patience:
            return f"{name}: completed no micro-batch for {now - self.moved:.0f} s, {self.lag} messages wait"
        return ""


PATIENCE_SECONDS = 25.0
"""Longest time for which these jobs wait for the others."""


class LaterJobs:
    """The names of the jobs that have not been started yet, in the order in which they start.

    Args:
        names: Their names.
        now: Seconds of the monotonic clock: the others start now.
        held: Names of jobs that do not start before they are released, as they wait for the end of others.
    """

    def __init__(self, names: Iterable[str] = (), now: float = 0.0, held: Iterable[str] = ()) -> None:
        self.held = set(held)
        self.names = [name for name in names if name not in self.held]
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

    def release(self, name: str) -> None:
        """A job that was held is due at once; does nothing if it was not."""
        if name in self.held:
            self.held.remove(name)
            self.names.insert(0, name)
            self._until = 0.0

    def drop(self, name: str) -> None:
        """Leaves out a job, which has been started or is not wanted any more; does nothing if it is not among them."""
        if name in self.names:
            self.names.remove(name)
