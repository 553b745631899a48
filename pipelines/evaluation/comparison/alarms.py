"""Matches the alarms of two versions: which are the same, moved, changed in kind, new, or gone.

An *alarm* of a version is a time in which verdicts of one series are news that an operator should look at. Alarms of
both versions belong together if they lie in one incident of either version, or fewer than `CALM` windows apart: so an
alarm that begins some windows later is the same alarm, moved, and not one that is gone and one that is new.
"""

from __future__ import annotations

import polars as pl

from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.evaluation.comparison.verdicts import SERIES
from pipelines.evaluation.truth import CALM

OUTCOMES = ("new", "gone", "changed", "moved", "same")
"""What became of an alarm: only the second version has it, only the first, another kind, other windows, no change."""

PRECEDENCE = ("anomaly", "state_change", "new_normal", "absence", "exhaustion", "outlier")
"""An alarm has the last of these kinds that one of its verdicts has: the version's final word on it."""


def matched(first: pl.DataFrame, second: pl.DataFrame, step: int) -> pl.DataFrame:
    """The alarms of two versions, each once.

    Args:
        first: Verdicts of the first version, on the times that both have judged.
        second: Those of the second one.
        step: Time between two windows, milliseconds.

    Returns:
        A row for each alarm: ``entity``, ``metric``, ``start``, ``end`` (with the open incident, epoch milliseconds),
        ``outcome``; and for each version (0, 1) ``kind``, ``from``, ``to``, ``windows`` and ``score`` (the highest),
        which are null if it raised no alarm.
    """
    active = pl.concat([_active(first, 0), _active(second, 1)]).sort(*SERIES, "begin", "window_end")
    reach = pl.col("window_end").cum_max().shift(1).over(SERIES)
    begins = (pl.col("begin") - reach >= CALM * step).fill_null(True)
    runs = active.with_columns(run=begins.cum_sum().over(SERIES))
    keys = ["entity", "metric", "run"]
    alarms = runs.group_by(keys).agg(start=pl.col("window_start").min(), end=pl.col("window_end").max())
    for version in (0, 1):
        own = runs.filter(pl.col("news"), pl.col("version") == version)
        alarms = alarms.join(_summed(own, keys, version), on=keys, how="left")
    alarms = alarms.filter(pl.col("kind0").is_not_null() | pl.col("kind1").is_not_null())
    return alarms.with_columns(outcome=_outcome()).drop("run").sort("start", *SERIES)


def _active(verdicts: pl.DataFrame, version: int) -> pl.DataFrame:
    """The verdicts that are news, or lie in an open incident; and the end of each incident, as a time.

    Each verdict of an incident says since when it lasts (``begin``), so that an incident is one also where its quiet
    windows are not stored.
    """
    news, state = pl.col("kind").is_in(ALARM_KINDS), pl.col("incident_state").fill_null("")
    begin = pl.when(state != "").then(pl.min_horizontal("since", "window_start")).otherwise("window_start")
    ends = (state == "closed") & ~news & pl.col("since").is_not_null()
    chosen = verdicts.filter(news | (state == "open") | ends).with_columns(begin=begin, ends=ends)
    return chosen.select(
        *SERIES, "begin", pl.when("ends").then(None).otherwise("window_start").alias("window_start"),
        pl.when("ends").then("window_start").otherwise("window_end").alias("window_end"),
        "kind", "record_score", news=news, version=pl.lit(version),
    )  # fmt: skip


def _summed(own: pl.DataFrame, keys: list[str], version: int) -> pl.DataFrame:
    """The alarms of one version."""
    rank = pl.col("kind").replace_strict({kind: at for at, kind in enumerate(PRECEDENCE)}, return_dtype=pl.Int8)
    return own.group_by(keys).agg(
        pl.col("kind").sort_by(rank, maintain_order=True).last().alias(f"kind{version}"),
        pl.col("window_start").min().alias(f"from{version}"),
        pl.col("window_end").max().alias(f"to{version}"),
        pl.len().cast(pl.Int64).alias(f"windows{version}"),
        pl.col("record_score").max().alias(f"score{version}"),
    )


def _outcome() -> pl.Expr:
    unmoved = (pl.col("from0") == pl.col("from1")) & (pl.col("to0") == pl.col("to1"))
    return (
        pl.when(pl.col("kind0").is_null())
        .then(pl.lit("new"))
        .when(pl.col("kind1").is_null())
        .then(pl.lit("gone"))
        .when(pl.col("kind0") != pl.col("kind1"))
        .then(pl.lit("changed"))
        .when(~unmoved)
        .then(pl.lit("moved"))
        .otherwise(pl.lit("same"))
    )


def counts(alarms: pl.DataFrame, by: str) -> pl.DataFrame:
    """Numbers of alarms by kind, metric or machine, those with most differences first.

    Args:
        alarms: Alarms as `matched` returns them.
        by: ``kind``, ``metric`` or ``entity``. An alarm of two kinds counts for the one in the second version.

    Returns:
        The column ``by``; ``first`` and ``second``, the numbers of alarms of both versions; and one for each of
        `OUTCOMES`.
    """
    kinds = alarms.with_columns(kind=pl.coalesce("kind1", "kind0"))
    numbers = [(pl.col("outcome") == outcome).sum().cast(pl.Int64).alias(outcome) for outcome in OUTCOMES]
    first = (pl.col("outcome") != "new").sum().cast(pl.Int64).alias("first")
    second = (pl.col("outcome") != "gone").sum().cast(pl.Int64).alias("second")
    table = kinds.group_by(by).agg(first, second, *numbers)
    differing = pl.col("new") + pl.col("gone") + pl.col("changed")
    return table.sort(differing, pl.col("first") + pl.col("second"), pl.col(by), descending=[True, True, False])
