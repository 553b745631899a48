"""The rate of a counter: its increase over the time in which the increase was observed; exact for any order of arrival.

An increase needs two neighbouring samples, so the samples of open slices are kept as rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import polars as pl

from engine.aggregates.aggregate import TIME
from engine.spec.duration import DurationField

GROWN, APART = "__grown", "__apart"
INCREASE, ELAPSED = "rate.increase", "rate.elapsed"
"""Columns of the partials, beside the key: the increase in a slice, and the milliseconds in which it came about."""


@dataclass(frozen=True)
class Rate:
    """Increase of a counter per second; ``None`` without two neighbouring samples that tell one.

    Two neighbouring samples tell an increase if they are at most ``lookback`` apart and the later one is not lower. A
    lower value is a reset: the counter began anew at an unknown instant between the two, so neither the increase nor
    the time between them counts. (Prometheus' `increase` counts both, and gives too low a rate after a restart.)

    Args:
        column: The column with the value of the counter.
        only: Column and value that distinguish counters from other records, whose rate is ``None``.
        lookback: Largest time between the first sample of the window and the sample before it.
        time: The job's time column: event, ingestion or processing time. The job sets it.
    """

    column: str
    only: tuple[str, str] | None = None
    lookback: DurationField = DurationField("lookback", "5m")
    time: str = field(default=TIME, kw_only=True, repr=False)

    def timed(self, column: str) -> Self:
        """This aggregate for a job whose time is in another column."""
        return replace(self, time=column)

    @property
    def lookback_ms(self) -> int:
        """`lookback` in milliseconds."""
        return int(self.lookback)

    def counters(self, records: pl.DataFrame) -> pl.DataFrame:
        """The records that are samples of counters: those with a value."""
        has_value = pl.col(self.column).is_not_null()
        return records.filter(has_value & (pl.col(self.only[0]) == self.only[1]) if self.only else has_value)

    def steps(self, samples: pl.DataFrame, key: list[str]) -> pl.DataFrame:
        """Adds to each sample its increase since the sample before it (`GROWN`) and the time in between (`APART`).

        Args:
            samples: Rows with ``key``, the time and the column, in any order.
            key: The columns that identify a counter.

        Returns:
            The samples in order of key and time; both columns are 0 where no increase is known.
        """
        ordered = samples.sort(*key, self.time, self.column)
        value, time = pl.col(self.column), pl.col(self.time)
        same = pl.all_horizontal([pl.col(k).eq_missing(pl.col(k).shift(1)) for k in key])
        grew = same & (time - time.shift(1) <= self.lookback_ms) & (value >= value.shift(1))
        return ordered.with_columns(
            pl.when(grew).then(value - value.shift(1)).otherwise(0.0).alias(GROWN),
            pl.when(grew).then(time - time.shift(1)).otherwise(0).alias(APART),
        )
