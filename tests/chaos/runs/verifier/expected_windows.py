"""Recomputes the windows of metrics and of logs from raw records, as docs/records.md defines their columns."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

WINDOW = ("entity", "metric", "window_start")
QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "informational", "debug", "unknown")
LOOKBACK_MS = 300_000
"""How far apart two samples of a counter may be for their difference to count, docs/engine.md."""


def without(records: pl.DataFrame, late: pl.DataFrame, same: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Takes the records that went to a late topic out of the raw ones, one for one.

    Args:
        records: The raw records.
        late: The records of the late topic.
        same: Columns by which a record is recognised; of several equal ones the last in the log counts as late.

    Returns:
        The records that belong to windows; and those of the late topic that are not among the raw ones, or too often.
    """
    numbered = records.with_columns(__n=pl.int_range(pl.len()).reverse().over(same))
    called = late.select(same).with_columns(__n=pl.int_range(pl.len()).over(same))
    keys = [*same, "__n"]
    kept = numbered.join(called, on=keys, how="anti", maintain_order="left").drop("__n")
    return kept, called.join(numbered, on=keys, how="anti").drop("__n")


def metric_windows(samples: pl.DataFrame, size: int) -> pl.DataFrame:
    """The statistics of each series in tumbling windows.

    Args:
        samples: Columns as `tests.chaos.runs.verifier.raw_records.SAMPLES`.
        size: Length of the windows, milliseconds.

    Returns:
        A row per window: identity, ``kind``, ``count``, ``mean``, ``std``, ``min``, ``max``, ``last``, ``rate``, and
        for each quantile the order statistics around it (``p50_low``, ``p50_high`` and so on).
    """
    ordered = samples.sort("time", "value").with_columns(window_start=pl.col("time") // size * size)
    series = ("entity", "metric")
    before, gap = pl.col("value").shift().over(series), pl.col("time").diff().over(series)
    change = pl.col("value") - before
    grew = (gap <= LOOKBACK_MS) & (change >= 0)
    counted = ordered.with_columns(increase=pl.when(grew).then(change), elapsed=pl.when(grew).then(gap))
    value = pl.col("value")
    elapsed = pl.col("elapsed").sum()
    rate = pl.when((pl.col("kind").last() == "counter") & (elapsed > 0)).then(pl.col("increase").sum() * 1000 / elapsed)
    low = {f"{name}_low": value.quantile(q, "lower") for name, q in QUANTILES.items()}
    high = {f"{name}_high": value.quantile(q, "higher") for name, q in QUANTILES.items()}
    return counted.group_by(WINDOW, maintain_order=True).agg(
        kind=pl.col("kind").last(),
        count=pl.len().cast(pl.Int64),
        mean=value.mean(),
        std=value.std().fill_null(0.0),
        min=value.min(),
        max=value.max(),
        last=value.last(),
        rate=rate,
        **low,
        **high,
    )


def severity_windows(lines: pl.DataFrame, size: int) -> pl.DataFrame:
    """The number of lines of each machine, window and severity: ``entity``, ``metric``, ``window_start``, ``count``."""
    names = {code: f"log.severity.{name}" for code, name in enumerate(SEVERITIES)}
    named = lines.with_columns(
        window_start=pl.col("time") // size * size,
        metric=pl.col("severity").replace_strict(names, return_dtype=pl.String),
    )
    return named.group_by(WINDOW, maintain_order=True).agg(count=pl.len().cast(pl.Int64))
