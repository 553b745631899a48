"""Watermarks: how far event time has come, decided from the log alone.

Each source partition has a clock of its own; the watermark is the minimum over the partitions that are not idle, so a
partition that lags, after an outage say, loses nothing when it catches up. Config and logic are apart: the config is
what a job declares, the logic a table of partitions that lives in the operator's state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.time import END_OF_TIME, NEVER, duration_ms


@dataclass(frozen=True)
class BoundedOutOfOrderness:
    """A partition's watermark trails its greatest event time by ``bound``; or is what its writer vouched for.

    The columnar log carries its writer's watermark in each message ("in band", as in Flink); where there is one, it
    holds, and ``bound`` does not matter.

    Args:
        bound: How far records of one partition may be out of order.
        idle_after: A partition from which nothing arrived for so long, by the log's own arrival times, is left out of
            the minimum.
        expected: Partitions (topic and number) that are waited for, `idle_after` long from the first message on: at a
            first start one partition must not run ahead of another that just was not read yet.
    """

    bound: str = "0s"
    idle_after: str = "10s"
    expected: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Marker:
    """What one micro-batch tells of one source partition.

    Attributes:
        max_time: Greatest event time of its records; `NEVER` without records.
        vouched: The writer's watermark of its last message; `NEVER` where the log carries none.
        arrived: Arrival time at Kafka of its last message.
    """

    topic: str
    partition: int
    max_time: int
    vouched: int
    arrived: int


@dataclass
class Clock:
    """How far one source partition has come; fields as in `Marker`, each the greatest seen."""

    max_time: int = NEVER
    vouched: int = NEVER
    arrived: int = NEVER

    @property
    def tells(self) -> bool:
        """Whether it has said anything of event time; a heartbeat has not."""
        return max(self.max_time, self.vouched) > NEVER


@dataclass
class WatermarkTracker:
    """The logic: clocks a partition, combined into one watermark that never goes back.

    >>> tracker = WatermarkTracker(BoundedOutOfOrderness("1s", idle_after="10s"))
    >>> tracker.advance([Marker("t", 0, 50_000, NEVER, 0), Marker("t", 1, 20_000, NEVER, 0)])
    19000
    >>> tracker.advance([Marker("t", 0, 60_000, NEVER, 11_000)])
    59000
    """

    config: BoundedOutOfOrderness
    clocks: dict[tuple[str, int], Clock] = field(default_factory=dict)
    watermark: int = NEVER
    first: int = END_OF_TIME

    def advance(self, markers: Iterable[Marker]) -> int:
        """Takes in what a micro-batch tells and returns the watermark after it."""
        for marker in markers:
            clock = self.clocks.setdefault((marker.topic, marker.partition), Clock())
            clock.max_time = max(clock.max_time, marker.max_time)
            clock.vouched = max(clock.vouched, marker.vouched)
            clock.arrived = max(clock.arrived, marker.arrived)
        told = {place: clock for place, clock in self.clocks.items() if clock.tells}
        if not told:
            return self.watermark
        bound, idle = duration_ms(self.config.bound), duration_ms(self.config.idle_after)
        newest = max(clock.arrived for clock in self.clocks.values())
        self.first = min(self.first, *(clock.arrived for clock in told.values()))
        if newest < self.first + idle and any(place not in told for place in self.config.expected):
            return self.watermark
        awake = [clock for clock in told.values() if clock.arrived >= newest - idle]
        if awake:
            reached = min(clock.vouched if clock.vouched > NEVER else clock.max_time - bound for clock in awake)
        else:  # all are silent: nothing is out of order any more
            reached = max(max(clock.vouched, clock.max_time) for clock in told.values())
        self.watermark = max(self.watermark, reached)
        return self.watermark

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values."""
        rows = [[topic, p, c.max_time, c.vouched, c.arrived] for (topic, p), c in sorted(self.clocks.items())]
        return {"watermark": self.watermark, "first": self.first, "clocks": rows}

    @classmethod
    def restore(cls, config: BoundedOutOfOrderness, snapshot: dict[str, Any]) -> WatermarkTracker:
        """Inverse of `snapshot`."""
        clocks = {(topic, p): Clock(*rest) for topic, p, *rest in snapshot.get("clocks", [])}
        return cls(config, clocks, snapshot.get("watermark", NEVER), snapshot.get("first", END_OF_TIME))
