"""How far a replay has come: event time, share of the log, rate and time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

from dashboards.status import Progress
from engine.kafka.offsets import Offsets
from engine.spec.duration import iso
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.topics import ABOUT_THE_SITE
from pipelines.runtime.driver import Driver
from pipelines.versions.program import VersionProgram

_RATE_SECONDS = 15.0
_CAUGHT_UP = 0.999


class ReplayProgress:
    """Follows a driver that replays.

    The share of the log is that of the jobs that read it, without the topics of operators: of these nearly all messages
    are heartbeats, which come while the replay runs. Later jobs work on what these have written: the event time is
    that of the slowest job, and the replay has caught up when no job has more to read than a live one.

    Args:
        driver: The driver.
        program: Its jobs.
        first: Event time at which the log begins, epoch milliseconds; ``None`` if unknown.

    Attributes:
        caught_up: True when the log was read, from then on.
    """

    def __init__(self, driver: Driver, program: VersionProgram, first: int | None) -> None:
        self._driver, self._program, self._first = driver, program, first
        self._began = time.monotonic()
        self._read = LogRead()
        self._heartbeats = {driver.settings.reads(topic) for topic in ABOUT_THE_SITE}
        self._seen: deque[tuple[float, int, float]] = deque()
        self._near_with: Offsets | None = None
        self.caught_up = False

    def look(self) -> Progress | None:
        """The progress now; ``None`` when the replay has caught up: from then on the version is live."""
        lags, tallies = self._driver.lags(without=self._heartbeats), self._driver.status.tallies
        share = self._read.share(lags, self._program.first)
        marks = [tally.watermark for tally in tallies.values() if tally.watermark is not None]
        records = sum(tallies[name].records_in for name in self._program.first)
        now = time.monotonic()
        self._seen.append((now, records, share))
        while self._seen[0][0] < now - _RATE_SECONDS:
            self._seen.popleft()
        (then, before, was), passed = self._seen[0], max(now - self._seen[0][0], 1e-9)
        rate, speed = (records - before) / passed, (share - was) / passed
        ends, near = self._driver.ends, share > _CAUGHT_UP and all(self._near(*lag) for lag in lags.items())
        # what a job has just written is not in the ends that were asked for before
        self.caught_up |= near and self._near_with is not None and self._near_with is not ends
        self._near_with = (self._near_with or ends) if near else None
        if self.caught_up:
            return None
        seconds = (1.0 - share) / speed if now > then and speed > 0 else None
        return Progress(self._program.version.name, min(marks, default=None), share, rate, seconds)

    def summary(self) -> dict[str, str]:
        """What was replayed until now: records, their event times, the time it took, and how much faster than live."""
        seconds = time.monotonic() - self._began
        tallies = self._driver.status.tallies
        records = sum(tallies[name].records_in for name in self._program.first)
        figures = {
            "records": f"{records:,}",
            "took": duration(round(seconds * 1000)),
            "rate": f"{records / seconds:,.0f}/s",
        }
        last = max((tally.watermark or 0 for tally in tallies.values()), default=0)
        if self._first is None or last <= self._first:
            return figures
        ratio = (last - self._first) / 1000 / seconds
        return figures | {"event_times": f"{iso(self._first)} to {iso(last)}", "times_as_fast_as_live": f"{ratio:,.0f}"}

    def _near(self, name: str, lag: int | None) -> bool:
        """Whether a job has read nearly all: what is left is what comes while a micro-batch runs."""
        return lag is not None and lag <= max(100, self._read.most.get(name, 0) // 100)


class LogRead:
    """How much of the log jobs have read.

    Attributes:
        most: For each job the most messages that it had not read yet.

    >>> read = LogRead()
    >>> [read.share({"detector": left}, ["detector"]) for left in (80, 20, 30)]
    [0.0, 0.75, 0.75]
    """

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self._share = 0.0

    def share(self, lags: Mapping[str, int | None], first: Sequence[str]) -> float:
        """The share that is read, 0 to 1. It never falls, although messages such as heartbeats come meanwhile.

        Args:
            lags: For each job the messages that it has not read yet; ``None``: unknown.
            first: The jobs that read the log; later ones read what these write.
        """
        for name, lag in lags.items():
            if lag is not None:
                self.most[name] = max(self.most.get(name, 0), lag)
        begun = [name for name in first if self.most.get(name)]
        left, most = sum(lags[name] or 0 for name in begun), sum(self.most[name] for name in begun)
        known = all(lags[name] is not None for name in first)
        self._share = max(self._share, 1.0 - left / most if most else float(known))
        return self._share
