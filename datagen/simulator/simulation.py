"""Runs a simulation into a sink: history as fast as it goes, then live at the pace of the clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from datagen.groundtruth import GroundTruth
from datagen.simulator.config import SimulatorConfig, resolve
from datagen.simulator.site import Site, usual_chunk
from datagen.sinks import RecordSink
from datagen.wall_clock import Clock, WallClock
from pipelines.contracts.records import Placement

_TICK_MS = 200
"""Wall-clock milliseconds between two deliveries of the live part."""
_RECENT_MS = 60_000


@dataclass(frozen=True)
class Summary:
    """What was sent: numbers of samples and log lines, the ground truth of all that happened, and the topology."""

    records: int
    logs: int
    injected: tuple[GroundTruth, ...]
    placed: tuple[Placement, ...]


def simulate(
    config: SimulatorConfig,
    sink: RecordSink,
    stop: threading.Event | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int], None] | None = None,
    since: int | None = None,
) -> Summary:
    """Simulates until the end of the config or until ``stop`` is set; all that was sent is then flushed.

    The history (``config.backfill``) is sent as fast as the sink takes it. In the live part a record is sent when it
    arrives: at ``now + (arrival - end of the history) / speed``, where ``now`` is the moment of this call; or, if that
    was less than a minute ago, the end of the history itself: then event time is the time of day.

    Args:
        config: Its ``start`` may be ``None``: then the history ends now.
        sink: Where to.
        stop: Ends the run within a second.
        clock: The wall clock, if nothing else is given.
        progress: Is told, after each chunk, the records sent so far, and the instant (epoch ms) up to which all that
            arrives was sent.
        since: What an earlier run of the same simulation told ``progress`` last: this run goes on from there, as if the
            two were one. The incidents that started before must be those of the earlier run.

    Raises:
        NewnormalError: As `resolve`; or what the sink raises.
    """
    stop, clock = stop or threading.Event(), clock or WallClock()
    now = clock.now()
    config = resolve(config, now)
    assert config.start is not None
    since = config.start if since is None else max(since, config.start)
    return _Run(config, sink, stop, clock, now, since).run(progress or (lambda _records, _time: None))


class _Run:
    def __init__(
        self, config: SimulatorConfig, sink: RecordSink, stop: threading.Event, clock: Clock, now: int, since: int
    ) -> None:
        self._config, self._sink, self._stop, self._clock, self._now = config, sink, stop, clock, now
        self._since = since
        history = config.backfill // config.step * config.step
        self._live = (config.start or 0) + history
        if config.speed == 1 and self._live <= now < self._live + _RECENT_MS:
            self._now = self._live
        self._site = Site(config)
        self._records = self._logs = 0
        self._truths: list[GroundTruth] = []
        self._placed: list[Placement] = []
        self._reported = 0

    def run(self, progress: Callable[[int, int], None]) -> Summary:
        config, site = self._config, self._site
        history, total = config.backfill // config.step, config.steps
        largest, begin = usual_chunk(config), site.time
        if self._since > begin:
            self._skip(largest)
        else:
            self._place(site.topology.placed(begin))
        done = (site.time - begin) // config.step
        while not self._stop.is_set() and (total is None or done < total):
            live = done >= history
            size = self._live_chunk(largest) if live else min(largest, history - done)
            size = size if total is None else min(size, total - done)
            before = site.time
            telemetry, logs = site.advance(size)
            done += size
            self._truth(site.time)
            reached = site.time
            if live and config.speed:
                reached = self._pace(telemetry, logs, before)
            else:
                self._send(telemetry, logs)
            progress(self._records, reached)
        if not self._stop.is_set():
            self._send(*site.advance(0))
        self._sink.flush()
        return Summary(self._records, self._logs, tuple(self._truths), tuple(self._placed))

    def _skip(self, largest: int) -> None:
        """Goes on to where the earlier run was: what arrived until then was sent, what happened until then told."""
        begin, step = self._site.time, self._config.step
        left = (self._since - begin) // step
        while left and not self._stop.is_set():
            size = min(largest, left)
            self._site.advance(size)
            left -= size
        self._reported = len(self._site.schedule.until(begin - (begin - self._since) // step * step))

    def _live_chunk(self, largest: int) -> int:
        """Steps that last about a second of the wall clock, or one."""
        if not self._config.speed:
            return largest
        return min(largest, max(1, int(1000 * self._config.speed) // self._config.step))

    def _pace(self, telemetry: pl.DataFrame, logs: pl.DataFrame, before: int) -> int:
        """Sends what arrives between ``before`` and now in slices, each when its last record is due.

        Returns:
            The instant up to which all that arrives was sent, epoch ms.
        """
        config = self._config
        tick = max(1, round(_TICK_MS * config.speed))
        edges = np.append(np.arange(before + tick, self._site.time, tick), self._site.time)
        cuts = [np.searchsorted(frame["arrival"].to_numpy(), edges) for frame in (telemetry, logs)]
        first = (0, 0)
        for edge, *last in zip(edges.tolist(), *(cut.tolist() for cut in cuts), strict=True):
            self._clock.wait_until(self._now + round((edge - self._live) / config.speed), self._stop)
            if self._stop.is_set():
                return before
            self._send(telemetry[first[0] : last[0]], logs[first[1] : last[1]])
            first, before = (last[0], last[1]), edge
        return before

    def _send(self, telemetry: pl.DataFrame, logs: pl.DataFrame) -> None:
        telemetry, logs = (frame.filter(pl.col("arrival") >= self._since) for frame in (telemetry, logs))
        if telemetry.height:
            self._sink.telemetry(telemetry)
        if logs.height:
            self._sink.logs(logs)
        self._records += telemetry.height
        self._logs += logs.height

    def _truth(self, until: int) -> None:
        """Tells the sink of the incidents that started since the last time, and which VMs they moved."""
        incidents, topology = self._site.schedule.until(until), self._site.topology
        fresh, self._reported = incidents[self._reported :], len(incidents)
        rows = [row for incident in fresh for row in incident.rows(topology, self._config.metrics)]
        if rows:
            self._sink.truth(rows)
            self._truths += rows
        self._place([placement for incident in fresh for placement in incident.moves(topology)])

    def _place(self, placements: list[Placement]) -> None:
        if placements:
            self._sink.topology(placements)
            self._placed += placements
