"""Collects the reports of the running jobs into the status that the live view, the console and the summary show."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dashboards.status import JobStatus, PipelineStatus, Progress
from engine.clock import now_ms
from engine.runtime.shard import Stats
from engine.spark.query import BatchReport
from engine.spec.duration import NEVER
from engine.vectorized.processor import StateCounts
from pipelines.contracts.records.novelty import NEWS_KINDS
from pipelines.jobs.archive.job import ARCHIVE, ArchiveReport
from pipelines.jobs.sink.document import IndexedNews
from pipelines.jobs.sink.job import SinkReport

OPENS = ("anomaly", "state_change", "absence", "exhaustion", "outlier")
"""Kinds of news that leave a series open, until news of another kind arrives or its incident closes."""


class NewsCounts:
    """Counts news since the process started. Open series of earlier runs are counted if `seed` was called.

    >>> counts = NewsCounts()
    >>> counts.take([IndexedNews("a", "cpu", "anomaly", 10), IndexedNews("b", "cpu", "absence", 10)])
    >>> counts.take([IndexedNews("a", "cpu", "recovered", 20)])
    >>> counts.stored["anomaly"], counts.open()
    (1, {'anomaly': 0, 'state_change': 0, 'absence': 1, 'exhaustion': 0, 'outlier': 0})
    >>> counts.take([IndexedNews("b", "cpu", "normal", 30, closes=True)])
    >>> counts.open()["absence"]
    0
    """

    def __init__(self) -> None:
        self.stored = dict.fromkeys(NEWS_KINDS, 0)
        self._newest: dict[tuple[str, str], tuple[int, str]] = {}

    def take(self, news: Iterable[IndexedNews]) -> None:
        """Adds news that was just stored."""
        for each in news:
            if each.kind in self.stored:
                self.stored[each.kind] += 1
            self._newer(each)

    def seed(self, news: Iterable[IndexedNews]) -> None:
        """Adds news that was stored before the start: it may leave series open, but is not counted as stored."""
        for each in news:
            self._newer(each)

    def open(self) -> dict[str, int]:
        """For each kind in `OPENS` the number of series whose newest news has this kind."""
        found = Counter(kind for _, kind in self._newest.values())
        return {kind: found[kind] for kind in OPENS}

    def _newer(self, news: IndexedNews) -> None:
        series = news.entity, news.metric
        time, _ = self._newest.get(series, (news.time - 1, ""))
        if news.time == time or (news.time > time and (news.closes or news.kind in self.stored)):
            self._newest[series] = news.time, "" if news.closes else news.kind


_RATE_SECONDS = 10.0
_LATELY_SECONDS = 300.0
"""How old a stored document may be to count for the present latency."""


def _sum(stats: Sequence[Stats]) -> StateCounts:
    """Adds up the state of all shards: each key and timer belongs to one shard, but a window is open in all of them."""

    def known(name: str) -> list[int]:
        return [value for each in stats if (value := getattr(each, name)) is not None]

    keys, opened, timers = known("keys"), known("open"), known("timers")
    return StateCounts(sum(keys) if keys else None, max(opened, default=None), sum(timers) if timers else None)


class _Tally:
    """The totals of one job, and its rate over the last ten seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.records_in = self.records_out = self.late = self.dead = self.state_bytes = 0
        self.watermark: int | None = None
        self.batch_ms = 0.0
        self.completed: int | None = None
        self.last_error: str | None = None
        self.held = StateCounts()
        self.busiest_share: float | None = None
        self.recent: deque[tuple[float, int, int]] = deque()

    def add(self, records_in: int, records_out: int, seconds: float) -> None:
        now = time.monotonic()
        self.records_in += records_in
        self.records_out += records_out
        self.batch_ms = seconds * 1000
        self.completed = now_ms()
        self.recent.append((now, records_in, records_out))

    def status(self, lag: int | None) -> JobStatus:
        now = time.monotonic()
        while self.recent and self.recent[0][0] < now - _RATE_SECONDS:
            self.recent.popleft()
        return JobStatus(
            name=self.name,
            records_in=self.records_in,
            records_out=self.records_out,
            rate_in=sum(n for _, n, _ in self.recent) / _RATE_SECONDS,
            rate_out=sum(n for _, _, n in self.recent) / _RATE_SECONDS,
            late=self.late,
            dead_lettered=self.dead,
            lag=lag,
            watermark=self.watermark,
            state_bytes=self.state_bytes,
            keys=self.held.keys,
            open_windows=self.held.open,
            timers=self.held.timers,
            busiest_share=self.busiest_share,
            batch_ms=self.batch_ms,
            completed=self.completed,
            last_error=self.last_error,
        )


class StatusCollector:
    """Collects the reports of all jobs of a driver. It may be used from several threads.

    Args:
        jobs: Names of the jobs, in the order in which data flow through them.
        live_from: Instant (epoch milliseconds) at which live data begin. Windows that end before it are history and do
            not count for the latency.
        delay_ms: Bound of out-of-orderness, milliseconds: each window waits so long for late records, by design. It is
            a part of the latency, and is told beside it.
        of_news: True if the latency is that of news alone: with ``detector.emit = context`` the ordinary windows before
            an onset are written when the incident begins, minutes after their end.
        clock: Seconds that only grow, for how long ago a document was stored.
    """

    def __init__(
        self,
        jobs: list[str],
        live_from: int,
        delay_ms: int,
        *,
        of_news: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lock = threading.Lock()
        self.tallies = {name: _Tally(name) for name in jobs}
        self.started, self.live_from, self.delay_ms = now_ms(), live_from, delay_ms
        self.of_news, self.clock = of_news, clock
        self.indexed = 0
        self.news = NewsCounts()
        self.latencies: deque[tuple[float, int]] = deque(maxlen=100_000)

    def batch(self, report: BatchReport) -> None:
        """Adds the report of a micro-batch of a job that runs on the engine's sharded operator."""
        with self.lock:
            tally = self.tallies[report.job]
            read, written = (sum(getattr(s, name) for s in report.stats) for name in ("records_in", "records_out"))
            tally.add(read, written, report.seconds)
            tally.late += sum(s.late for s in report.stats)
            tally.dead += sum(s.dead for s in report.stats)
            if report.stats:
                tally.held = _sum(report.stats)
                records = [s.records_in for s in report.stats]
                tally.busiest_share = max(records) / sum(records) if sum(records) else tally.busiest_share
                tally.state_bytes = sum(s.state_bytes for s in report.stats)
                watermark = min(s.watermark for s in report.stats)
                tally.watermark = watermark if watermark > NEVER else tally.watermark

    def failed(self, job: str, reason: str) -> None:
        """Records that a job failed and will restart."""
        with self.lock:
            self.tallies[job].last_error = reason

    def seed(self, documents: Sequence[dict[str, Any]]) -> None:
        """Adds the newest news from before the start, so that series that were open then count as open."""
        with self.lock:
            self.news.seed(IndexedNews(d["host.name"], d["metric"], d["kind"], d["@timestamp"]) for d in documents)

    def sink(self, report: SinkReport) -> None:
        """Adds the report of a micro-batch of the sink."""
        with self.lock:
            tally = self.tallies["sink"]
            tally.add(report.records_in, report.outcome.indexed, report.seconds)
            tally.dead += len(report.outcome.rejected)
            tally.last_error = report.missing or tally.last_error
            self.indexed += report.outcome.indexed
            self.news.take(report.outcome.news)
            at = report.outcome.searchable_at_ms
            if at is not None:
                times = (each.time for each in report.outcome.news) if self.of_news else report.outcome.times
                now = self.clock()
                self.latencies.extend((now, at - end) for end in times if end >= self.live_from)

    def archived(self, report: ArchiveReport) -> None:
        """Adds the report of a micro-batch of the archive."""
        with self.lock:
            tally = self.tallies[ARCHIVE]
            tally.add(report.messages, report.records, report.seconds)

    def caught_up(self, now: int, within_ms: int) -> bool:
        """True if the history has been processed: event time is near the present, and all verdicts are stored.

        Args:
            now: The present, epoch milliseconds.
            within_ms: How far the detector's watermark may be behind it, milliseconds.
        """
        with self.lock:
            detector, sink = self.tallies["detector"], self.tallies["sink"]
            logs = self.tallies.get("log_detector")
            verdicts = detector.records_out + (logs.records_out if logs else 0)
            recent = detector.watermark is not None and detector.watermark >= now - within_ms
            return recent and 0 < verdicts <= sink.records_in

    def latency_ms(self, lately: float = math.inf) -> dict[str, float | None]:
        """Latency of live windows, milliseconds, p50 and p99; ``None`` if there are none.

        The latency is the time from the end of the window until a search finds the window's document. The watermark's
        bound, ``delay_ms``, is a part of it.

        Args:
            lately: Only documents that were stored in the last so many seconds count.
        """
        since = self.clock() - lately
        with self.lock:
            values = np.array([latency for stored, latency in self.latencies if stored >= since])
        if not len(values):
            return {"p50": None, "p99": None}
        return {"p50": float(np.percentile(values, 50)), "p99": float(np.percentile(values, 99))}

    def status(
        self,
        lags: dict[str, int | None],
        newest: Sequence[dict[str, Any]],
        problems: Sequence[str] = (),
        progress: Progress | None = None,
        incidents: Sequence[dict[str, Any]] | None = None,
    ) -> PipelineStatus:
        """The present status of the whole pipeline.

        Args:
            lags: Number of messages that each job has not read yet; ``None`` if unknown.
            newest: The newest novelties, as documents.
            problems: What keeps the pipeline from its work, one sentence each.
            progress: How far a replay has come; ``None`` without a replay.
            incidents: See `PipelineStatus`.
        """
        median = self.latency_ms(_LATELY_SECONDS)["p50"]
        with self.lock:
            jobs = tuple(tally.status(lags.get(name)) for name, tally in self.tallies.items())
            return PipelineStatus(
                started=self.started,
                jobs=jobs,
                novelties=tuple(newest),
                latency_ms=median,
                waits_ms=self.delay_ms,
                indexed=self.indexed,
                stored=dict(self.news.stored),
                open=self.news.open(),
                problems=tuple(problems),
                progress=progress,
                incidents=None if incidents is None else tuple(incidents),
            )
