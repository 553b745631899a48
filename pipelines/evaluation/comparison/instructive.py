"""Chooses the differences that tell most about two versions.

Differences weigh as much as the highest scores of both versions in that time lie apart, plus `STEP_UP` if an alarm is
new, gone or of another kind. Each further difference of a machine, of a metric, or of an outcome and kind that is
already shown weighs half: so the list shows different machines, metrics and kinds, not ten times the same.
"""

from __future__ import annotations

import polars as pl

from pipelines.evaluation.comparison.verdicts import SERIES

STEP_UP = 30.0
_SHOWN = 10


def instructive(alarms: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The most instructive differences, the most instructive first.

    Args:
        alarms: Alarms as `pipelines.evaluation.comparison.alarms.matched` returns them.
        first: Verdicts of the first version, on the times that both have judged.
        second: Those of the second one.

    Returns:
        Rows of ``alarms``, with the columns ``highest0`` and ``highest1``: the highest score of each version in that
        time, null if it has none.
    """
    differing = alarms.filter(pl.col("outcome") != "same").with_row_index("at")
    for version, verdicts in enumerate((first, second)):
        differing = differing.join(_highest(differing, verdicts, f"highest{version}"), on="at", how="left")
    apart = (pl.col("highest0").fill_null(0) - pl.col("highest1").fill_null(0)).abs()
    left = differing.with_columns(
        weight=apart + pl.when(pl.col("outcome") == "moved").then(1.0).otherwise(STEP_UP),
        kind=pl.coalesce("kind1", "kind0"),
    )
    chosen: list[pl.DataFrame] = []
    while left.height and len(chosen) < _SHOWN:
        best = left.sort("weight", "at", descending=[True, False]).head(1)
        chosen.append(best)
        (entity, metric, outcome, kind) = best.select("entity", "metric", "outcome", "kind").row(0)
        shared = (pl.col("entity") == entity).cast(pl.Int8) + (pl.col("metric") == metric).cast(pl.Int8)
        shared += ((pl.col("outcome") == outcome) & (pl.col("kind") == kind)).cast(pl.Int8)
        left = left.filter(pl.col("at") != best["at"][0]).with_columns(pl.col("weight") * 0.5**shared)
    return (pl.concat(chosen) if chosen else left).drop("at", "weight", "kind")


def _highest(alarms: pl.DataFrame, verdicts: pl.DataFrame, name: str) -> pl.DataFrame:
    """The highest score of verdicts within each alarm; alarms of one series do not overlap."""
    spans = alarms.select(*SERIES, "at", "end", begin="start").sort("begin")
    inside = (
        verdicts.select(*SERIES, "window_start", "window_end", "record_score")
        .sort("window_start")
        .join_asof(
            spans, left_on="window_start", right_on="begin", by=SERIES, strategy="backward", check_sortedness=False
        )
        .filter(pl.col("window_end") <= pl.col("end"))
    )
    return inside.group_by("at").agg(pl.col("record_score").max().alias(name))
