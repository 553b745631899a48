"""How far a replay has come: event time, share of the log, rate and time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from dashboards.status import Progress
from pipelines.runtime.driver import Driver
from pipelines.versions.program import VersionProgram

_RATE_SECONDS = 15.0
_CAUGHT_UP = 0.999


class ReplayProgress:
    """Follows a driver that replays.

    The share of the log is that of the jobs that read it. Later jobs work on what these have written: the event time is
    that of the slowest job, and the replay has caught up when no job has more to read than a live one.

    Args:
        driver: The driver.
        program: Its jobs.
        clock: Seconds of a monotonic clock.

    Attributes:
        caught_up: True when the log was read, from then on.
    """

    def __init__(self, driver: Driver, program: VersionProgram, clock: Callable[[], float] = time.monotonic) -> None:
        self._driver, self._program, self._clock = driver, program, clock
        self._most: dict[str, int] = {}
        self._seen: deque[tuple[float, int, float]] = deque()
        self.caught_up = False

    def look(self) -> Progress | None:
        """The progress now; ``None`` when the replay has caught up: from then on the version is live."""
        lags, tallies = self._driver.lags(), self._driver.status.tallies
        for name, lag in lags.items():
            if lag is not None:
                self._most[name] = max(self._most.get(name, 0), lag)
        first = [name for name in self._program.first if self._most.get(name)]
        left, most = sum(lags[name] or 0 for name in first), sum(self._most[name] for name in first)
        share = 1.0 - left / most if most else 0.0
        marks = [tally.watermark for tally in tallies.values() if tally.watermark is not None]
        records = sum(tallies[name].records_in for name in self._program.first)
        now = self._clock()
        self._seen.append((now, records, share))
        while self._seen[0][0] < now - _RATE_SECONDS:
            self._seen.popleft()
        (then, before, was), passed = self._seen[0], max(now - self._seen[0][0], 1e-9)
        rate, speed = (records - before) / passed, (share - was) / passed
        if share > _CAUGHT_UP and all(self._near(name, lag) for name, lag in lags.items()):
            self.caught_up = True
        if self.caught_up:
            return None
        seconds = (1.0 - share) / speed if now > then and speed > 0 else None
        return Progress(self._program.version.name, min(marks, default=None), share, rate, seconds)

    def _near(self, name: str, lag: int | None) -> bool:
        """Whether a job has read nearly all: what is left is what comes while a micro-batch runs."""
        return lag is not None and lag <= max(100, self._most.get(name, 0) // 100)
