"""Watermarks that the records themselves carry."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from engine.spec.duration import NEVER, DurationField
from engine.watermarks.clock import PartitionClock, is_idle
from engine.watermarks.strategy import WatermarkStrategy


@dataclass(frozen=True)
class Punctuated(WatermarkStrategy):
    """Some records (punctuations) carry the watermark of their partition.

    The watermark of the job waits for a partition that has had no punctuation yet. Watermarks of the writers of a
    columnar log are ignored. A partition becomes idle as with `BoundedOutOfOrderness`.

    Args:
        column: Integer column with the watermark, epoch milliseconds; null: the record is no punctuation.
        where: Column and value that mark punctuations; ``None``: every record whose ``column`` is not null.
        idle_after: See `WatermarkStrategy`.
        expected: See `WatermarkStrategy`.

    Records of kind "end of minute" punctuate by their own event time:

    >>> minutes = Punctuated("time", where=("kind", "end of minute"))
    >>> records = pa.table({"time": [5, 60, 61], "kind": ["sample", "end of minute", "sample"]})
    >>> minutes.record_watermarks(records).to_pylist()
    [None, 60, None]
    """

    column: str
    where: tuple[str, object] | None = None
    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def lag(self, clock: PartitionClock) -> int:
        return 0

    def watermark(self, clock: PartitionClock) -> int:
        return NEVER if clock.writer_watermark is None else clock.writer_watermark

    def is_active(self, clock: PartitionClock) -> bool:
        return not is_idle(clock, self.idle_after)

    def record_watermarks(self, records: pa.Table) -> pa.ChunkedArray | None:
        watermarks = records.column(self.column).cast(pa.int64())
        if self.where is None:
            return watermarks
        column, value = self.where
        return pc.if_else(pc.equal(records.column(column), pa.scalar(value)), watermarks, None)
