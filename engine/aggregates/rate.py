"""The rate of a counter, resets taken out (as Prometheus' `increase`): exact whatever order the samples come in.

An increase lies between two samples, so the samples of open panes are kept as rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from engine.aggregates.base import TIME
from engine.time import duration_ms


@dataclass(frozen=True)
class Rate:
    """Increase a second of a counter; ``None`` without two samples at most ``lookback`` apart.

    Args:
        column: The counter's value.
        only: Column and value that tell counters from other records; the rate of others is ``None``.
        lookback: How far back the sample before the first one of the window may lie.
    """

    column: str
    only: tuple[str, str] | None = None
    lookback: str = "5m"

    @property
    def lookback_ms(self) -> int:
        """`lookback` in milliseconds."""
        return duration_ms(self.lookback)

    def counters(self, records: pl.DataFrame) -> pl.DataFrame:
        """The records that are samples of counters."""
        return records.filter(pl.col(self.only[0]) == self.only[1]) if self.only else records

    def steps(self, samples: pl.DataFrame, key: list[str]) -> pl.DataFrame:
        """Adds to each sample its ``increase`` since the sample before it and the ``elapsed`` milliseconds.

        Args:
            samples: ``key``, ``time`` and the column; in any order.
            key: The columns that name one counter.

        Returns:
            The samples in order of key and time; of those without a predecessor both are 0.
        """
        ordered = samples.sort(*key, TIME, self.column)
        value, time = pl.col(self.column), pl.col(TIME)
        same = pl.all_horizontal([pl.col(k) == pl.col(k).shift(1) for k in key]).fill_null(False)
        near = same & (time - time.shift(1) <= self.lookback_ms)
        growth = pl.when(value >= value.shift(1)).then(value - value.shift(1)).otherwise(value)
        return ordered.with_columns(
            increase=pl.when(near).then(growth).otherwise(0.0),
            elapsed=pl.when(near).then(time - time.shift(1)).otherwise(0),
        )

    def reference(self, records: Sequence[dict[str, object]], before: dict[str, object] | None) -> float | None:
        """The rate in plain Python; ``before`` is the last record ahead of the window, if any."""
        if self.only and records[0][self.only[0]] != self.only[1]:
            return None
        increase, elapsed, previous = 0.0, 0, before
        for record in records:
            value, time = float(record[self.column]), int(record[TIME])  # type: ignore[call-overload, arg-type]
            if previous is not None:
                was, at = float(previous[self.column]), int(previous[TIME])  # type: ignore[call-overload, arg-type]
                if time - at <= self.lookback_ms:
                    increase += value - was if value >= was else value
                    elapsed += time - at
            previous = record
        return increase * 1000 / elapsed if elapsed else None
