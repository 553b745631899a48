"""What becomes of stored verdicts if evidence counts otherwise, or if more or less of it is needed for an alarm.

A score is weighed as the models weigh it, and compared with the bar from which they report it. What is reported for
another reason stays: a change of state, an absence, a value that is stuck, a jump that lasts, what a rule reports.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from models.evidence.score import worth
from models.numbers.arrays import Array
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED
from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.comparison.verdicts import SERIES
from pipelines.jobs.detectors.metrics.bars import bar_by_clock

_LOGS = "logs"
_SIX_HOURS = 21_600_000
"""For so long, milliseconds, the clock of a series is not known, see `models.series.alarm`."""


def clocks(verdicts: pl.DataFrame, usual: int) -> Array:
    """Usual milliseconds between two values of each verdict's series; 0 in its first six hours, shape (n,).

    Args:
        verdicts: The columns ``entity``, ``metric``, ``window_end``, ``values`` and ``watched``: how many values the
            series had, and for how long, where that is stored.
        usual: Milliseconds between two values of a series of which that is not stored.
    """
    counted = pl.col("values") > 0
    ordered = pl.col("window_end").filter(counted).arg_max()
    step = (pl.col("watched") / pl.col("values")).filter(counted).get(ordered, null_on_oob=True).over(SERIES)
    began = (pl.col("window_end") - pl.col("watched")).filter(counted).min().over(SERIES)
    settled = (pl.col("window_end") - began >= _SIX_HOURS).fill_null(value=True)
    found = verdicts.select(pl.when(settled).then(step.fill_null(usual)).otherwise(0.0))
    return found.to_series().cast(pl.Float64).to_numpy()


def bars(verdicts: pl.DataFrame, clocks: Array, settings: DetectorSettings, false_alarms: float | None = None) -> Array:
    """The record_score from which each verdict is an alarm, shape (n,).

    That of a machine as a whole and of a log is ``detector.threshold``.

    Args:
        verdicts: The column ``metric``.
        clocks: As from the function of this name.
        settings: The settings of the detector.
        false_alarms: In the place of that of the settings.
    """
    needed = bar_by_clock(settings, false_alarms)
    different, place = np.unique(clocks, return_inverse=True)
    found = np.array([needed(float(clock)) for clock in different], np.float64)[place]
    whole = verdicts["metric"].is_in([JOINED, _LOGS]).to_numpy()
    return np.where(whole, settings.threshold, found)


def rescored(verdicts: pl.DataFrame, before: Array, after: Array, factor: Array | float = 1.0) -> pl.DataFrame:
    """The verdicts with other kinds and scores.

    Args:
        verdicts: Columns of `SCHEMA`, and ``changed_by_rule``: true for those that a rule has muted or reported.
        before: The bar by which each was judged, shape (n,).
        after: The bar by which it is judged now, shape (n,).
        factor: What its evidence counts now, in proportion to before, shape (n,).
    """
    score = verdicts["record_score"].fill_null(0.0).to_numpy()
    now = worth(np.minimum(score, 100.0 - 1e-9), np.broadcast_to(factor, score.shape))
    by_rule = pl.col("changed_by_rule")
    known, weighed, old, new = (pl.Series(each) for each in (score, now, before, after))
    lost = pl.col("kind").is_in(["anomaly", "outlier"]) & (known >= old) & (weighed < new) & ~by_rule
    won = (pl.col("kind") == "normal") & (known < old) & (weighed >= new) & ~by_rule
    rows = verdicts.with_columns(lost=lost, won=won, weighed=weighed)
    alarm = pl.col("kind").is_in(ALARM_KINDS)
    onset = [*SERIES, "since"]
    stays = ((alarm & ~pl.col("lost")) | pl.col("won")).any().over(onset)
    gone = pl.col("since").is_not_null() & alarm.any().over(onset) & ~stays
    quiet = pl.col("lost") | (gone & (pl.col("kind") == "recovered"))
    return rows.with_columns(
        record_score=pl.when(~by_rule).then("weighed").otherwise("record_score"),
        kind=pl.when("won").then(pl.lit("anomaly")).when(quiet).then(pl.lit("normal")).otherwise("kind"),
        since=pl.when(gone).then(None).when("won").then(pl.coalesce("since", "window_start")).otherwise("since"),
        incident_state=pl.when(gone)
        .then(None)
        .when("won")
        .then(pl.coalesce("incident_state", pl.lit("open")))
        .otherwise("incident_state"),
    ).drop("lost", "won", "weighed")
