"""Watermarks: how far event time has come, decided from the log alone.

Each source partition has a clock of its own; the watermark is the minimum over the partitions that are not idle, so a
partition that lags, after an outage say, loses nothing when it catches up. Config and logic are apart: the config is
what a job declares, the logic a table of partitions that lives in the operator's state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import Any

from engine.time import NEVER, duration_ms


@dataclass(frozen=True)
class BoundedOutOfOrderness:
    """A partition's watermark trails its greatest event time by ``bound``; or is what its writer vouched for.

    The columnar log carries its writer's watermark in each message ("in band", as in Flink); where there is one, it
    holds, and neither ``bound`` nor silence matters. Elsewhere silence is told by the partition's own log: a partition
    is idle, and left out of the minimum, once heartbeats have gone on in it for ``idle_after`` without a record. So a
    backlog that is read late is never taken for silence, and a replay decides the same.

    Args:
        bound: How far records of one partition may be out of order.
        idle_after: By the arrival times of records and heartbeats.
        expected: Partitions (topic and number) that are waited for until each has said something, if only a heartbeat:
            at a first start one must not run ahead of another that just was not read yet.
    """

    bound: str = "0s"
    idle_after: str = "10s"
    expected: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Marker:
    """What some consecutive messages of one source partition tell of its clock.

    Attributes:
        max_time: Greatest event time of the records; `NEVER` without records.
        vouched: The writer's watermark of the last message; ``None`` where the log carries none.
        first: Arrival time at Kafka of the first message, heartbeats included.
        last: That of the last one.
        spoke: That of the last one that is no heartbeat; `NEVER` without.
    """

    topic: str
    partition: int
    max_time: int
    vouched: int | None
    first: int
    last: int
    spoke: int


@dataclass
class Clock:
    """How far one source partition has come: of each field of `Marker` the greatest; until it spoke, its beginning."""

    max_time: int = NEVER
    vouched: int | None = None
    last: int = NEVER
    spoke: int = NEVER

    def take(self, marker: Marker) -> None:
        """Takes in what a marker tells."""
        self.max_time = max(self.max_time, marker.max_time)
        if marker.vouched is not None:
            self.vouched = marker.vouched if self.vouched is None else max(self.vouched, marker.vouched)
        self.last = max(self.last, marker.last)
        self.spoke = max(marker.first if self.spoke == NEVER else self.spoke, marker.spoke)

    def says(self, bound: int) -> int:
        """The partition's own watermark; `NEVER` if it has said nothing of event time."""
        if self.vouched is not None:
            return self.vouched
        return self.max_time - bound if self.max_time > NEVER else NEVER


@dataclass
class WatermarkTracker:
    """The logic: clocks a partition, combined into one watermark that never goes back.

    Attributes:
        silent: Whether no partition is awake, so that other inputs of the job need not wait for this one.

    >>> tracker = WatermarkTracker(BoundedOutOfOrderness("1s", idle_after="10s"))
    >>> tracker.advance([Marker("t", 0, 50_000, None, 0, 0, 0), Marker("t", 1, 20_000, None, 0, 0, 0)])
    19000
    >>> tracker.advance([Marker("t", 0, 60_000, None, 11_000, 11_000, 11_000)])
    19000
    >>> tracker.advance([Marker("t", 1, NEVER, None, 11_000, 11_000, NEVER)])
    59000
    """

    config: BoundedOutOfOrderness
    clocks: dict[tuple[str, int], Clock] = field(default_factory=dict)
    watermark: int = NEVER
    silent: bool = False

    def advance(self, markers: Iterable[Marker]) -> int:
        """Takes in what a micro-batch tells and returns the watermark after it."""
        for marker in sorted(markers, key=lambda m: (m.topic, m.partition, m.first, m.last)):
            self.clocks.setdefault((marker.topic, marker.partition), Clock()).take(marker)
        if not self.clocks or any(place not in self.clocks for place in self.config.expected):
            return self.watermark
        bound, idle = duration_ms(self.config.bound), duration_ms(self.config.idle_after)
        clocks = self.clocks.values()
        awake = [clock for clock in clocks if clock.vouched is not None or clock.last - clock.spoke < idle]
        self.silent = not awake
        silent = max(clock.max_time for clock in clocks)  # where all are silent, nothing is out of order any more
        self.watermark = max(self.watermark, min((clock.says(bound) for clock in awake), default=silent))
        return self.watermark

    @property
    def clock(self) -> int:
        """Processing time: the greatest arrival time seen, heartbeats included; `NEVER` ahead of the first message."""
        return max((clock.last for clock in self.clocks.values()), default=NEVER)

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values."""
        rows = [[topic, p, *astuple(clock)] for (topic, p), clock in sorted(self.clocks.items())]
        return {"watermark": self.watermark, "clocks": rows, "silent": self.silent}

    @classmethod
    def restore(cls, config: BoundedOutOfOrderness, snapshot: dict[str, Any]) -> WatermarkTracker:
        """Inverse of `snapshot`."""
        clocks = {(topic, p): Clock(*rest) for topic, p, *rest in snapshot.get("clocks", [])}
        return cls(config, clocks, snapshot.get("watermark", NEVER), snapshot.get("silent", False))
