"""One job's query and its progress, as the driver follows it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery

from pipelines.runtime.restarts import Restarts

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

    def problem(self, name: str, now: float) -> str:
        """A sentence that says what keeps the job from its work; empty if nothing does."""
        if self.restarts.waiting:
            return f"{name}: failed and will restart: {self.restarts.reason}"
        if self.query is not None and self.lag and now > self.moved + self.patience:
            return f"{name}: completed no micro-batch for {now - self.moved:.0f} s, {self.lag} messages wait"
        return ""
