"""Watermark strategies in plain Python: the watermark of one source partition, from its whole log so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import singledispatch

from engine.spec.duration import NEVER
from engine.spec.operator import Row
from engine.watermarks import (
    AscendingTimestamps,
    BoundedOutOfOrderness,
    LearnedLateness,
    Prompt,
    Punctuated,
    WatermarkStrategy,
)

_UNITS_OF_MOST, _BLOCKS = 256, 8


@dataclass
class PartitionLog:
    """The log of one source partition so far.

    Attributes:
        max_time: Greatest event time of its records; `NEVER` without any.
        watermark: Greatest watermark in its messages or records; ``None`` without any.
        last_arrival: Arrival time of the last message, heartbeats included.
        last_record: Arrival time of the last message that is no heartbeat; before the first such message, the
            arrival of the first heartbeat.
        times: For each record its event time, and the greatest event time up to and including it.
    """

    max_time: int = NEVER
    watermark: int | None = None
    last_arrival: int = NEVER
    last_record: int | None = None
    times: list[tuple[int, int]] = field(default_factory=list)

    def take(self, arrived: int, is_heartbeat: bool, time: int | None, watermark: int | None) -> None:
        """Adds one message; ``time`` is that of its record, if it has one."""
        self.last_arrival = max(self.last_arrival, arrived)
        if self.last_record is None or not is_heartbeat:
            self.last_record = max(arrived, arrived if self.last_record is None else self.last_record)
        if time is not None:
            self.max_time = max(self.max_time, time)
            self.times.append((time, self.max_time))
        if watermark is not None:
            self.watermark = max(watermark, watermark if self.watermark is None else self.watermark)


def given_watermark(strategy: WatermarkStrategy, record: Row | None, written: int | None) -> int | None:
    """The watermark that one message carries: that of its writer, or for `Punctuated` that of its record."""
    if not isinstance(strategy, Punctuated):
        return written
    if record is None:
        return None
    if strategy.where is not None and record[strategy.where[0]] != strategy.where[1]:
        return None
    watermark: int | None = record[strategy.column]
    return watermark


def is_idle(strategy: WatermarkStrategy, log: PartitionLog) -> bool:
    """Whether a partition is idle: it has had heartbeats but no record for ``idle_after``.

    A partition whose writer sends watermarks is never idle, nor is one under `Prompt`.
    """
    if isinstance(strategy, Prompt):
        return False
    if log.watermark is not None and not isinstance(strategy, Punctuated):
        return False
    assert log.last_record is not None
    return log.last_arrival - log.last_record >= int(strategy.idle_after)


@singledispatch
def partition_watermark(strategy: WatermarkStrategy, log: PartitionLog) -> int:
    """The watermark of a partition; ``partition_watermark.register(Mine, function)`` adds a user's own strategy."""
    raise TypeError(f"no reference of {type(strategy).__name__}: partition_watermark.register(...)")


@partition_watermark.register
def _(strategy: BoundedOutOfOrderness, log: PartitionLog) -> int:
    return _writers_or_behind(log, int(strategy.bound))


@partition_watermark.register
def _(strategy: AscendingTimestamps, log: PartitionLog) -> int:
    return _writers_or_behind(log, 0)


@partition_watermark.register
def _(strategy: Punctuated, log: PartitionLog) -> int:
    return NEVER if log.watermark is None else log.watermark


@partition_watermark.register
def _(strategy: Prompt, log: PartitionLog) -> int:
    return log.last_arrival - int(strategy.bound)


@partition_watermark.register
def _(strategy: LearnedLateness, log: PartitionLog) -> int:
    return _writers_or_behind(log, _learned_bound(strategy, log))


@singledispatch
def log_watermark(strategy: WatermarkStrategy, log: PartitionLog) -> int:
    """The watermark by which a record that comes next in a partition may be too late; `NEVER` if its log has none.

    It follows from the log message by message: without watermarks of the writer only where the bound is fixed.
    """
    return NEVER if log.watermark is None else log.watermark


@log_watermark.register
def _(strategy: BoundedOutOfOrderness, log: PartitionLog) -> int:
    return partition_watermark(strategy, log)


@log_watermark.register
def _(strategy: AscendingTimestamps, log: PartitionLog) -> int:
    return partition_watermark(strategy, log)


@log_watermark.register
def _(strategy: Prompt, log: PartitionLog) -> int:
    return NEVER


def _writers_or_behind(log: PartitionLog, bound: int) -> int:
    """The watermark of the writer if there is one, otherwise the greatest event time less a bound."""
    if log.watermark is not None:
        return log.watermark
    return NEVER if log.max_time == NEVER else log.max_time - bound


def _learned_bound(strategy: LearnedLateness, log: PartitionLog) -> int:
    """The percentile of the lateness of recent records, in whole units, between ``least`` and ``most``."""
    most, least = int(strategy.most), int(strategy.least)
    unit = max(1, most // _UNITS_OF_MOST)
    block_length = max(1, int(strategy.history) // _BLOCKS // unit)
    behind = [(greatest // unit, greatest // unit - time // unit) for time, greatest in log.times]
    last_block = max((newest // block_length for newest, _ in behind), default=0)
    remembered = sorted(
        min(late, _UNITS_OF_MOST) for newest, late in behind if newest // block_length >= last_block - _BLOCKS
    )
    if len(remembered) < max(1, strategy.enough):
        return most
    late = remembered[max(1, math.ceil(strategy.percentile * len(remembered))) - 1]
    return min(most, max(least, late * unit + (unit - 1 if late else 0)))
