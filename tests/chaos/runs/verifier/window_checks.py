"""Compares the windows that a pipeline wrote with those that were recomputed from the raw records."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tests.chaos.runs.verifier.expected_windows import QUANTILES, WINDOW, metric_windows, severity_windows, without
from tests.chaos.runs.verifier.finding import Tally

TOLERANCE = 1e-9
QUANTILE_ERROR = 0.02
"""How far a quantile may be from the order statistics around it, docs/records.md."""

METRIC_TYPES = {
    **{"entity": pl.String, "metric": pl.String, "kind": pl.String, "window_start": pl.Int64, "count": pl.Int64},
    **dict.fromkeys(("mean", "std", "min", "max", "last", *QUANTILES, "rate"), pl.Float64),
    "revision": pl.Int64,
}
LOG_TYPES = {
    **{"entity": pl.String, "metric": pl.String, "window_start": pl.Int64, "count": pl.Int64, "revision": pl.Int64}
}
SAMPLE = ("entity", "metric", "time", "value")
LINE = ("entity", "program", "time", "message")


def final(rows: pl.DataFrame, identity: Sequence[str]) -> pl.DataFrame:
    """The last row of each identity, docs/records.md: the one with the most records, then with the highest revision."""
    return rows.sort("count", "revision").unique(identity, keep="last", maintain_order=True)


def revisions(tally: Tally, where: str, rows: pl.DataFrame, identity: Sequence[str]) -> None:
    """Finds records that were written twice: the same identity and revision."""
    counts = rows.group_by(*identity, "revision").len().filter(pl.col("len") > 1)
    tally.add("doubled", where, counts.sort(identity).iter_rows())


def late_enough(
    tally: Tally, where: str, raw: pl.DataFrame, late: pl.DataFrame, same: Sequence[str], reach: int
) -> None:
    """Finds records that were called late although no watermark that the log allows was past their window.

    A watermark is never ahead of the greatest event time that came before in the record's own partition.

    Args:
        tally: Takes the findings.
        where: The late topic.
        raw: All good raw records, with partition and offset.
        late: The records of the late topic.
        same: Columns by which a record is recognised.
        reach: How far a record must be behind at least to be late, milliseconds.
    """
    ahead = pl.col("time").cum_max().over("partition")
    placed = raw.sort("partition", "offset").with_columns(behind=ahead - pl.col("time"))
    farthest = placed.group_by(same).agg(pl.col("behind").max())
    hasty = late.join(farthest, on=list(same), how="inner").filter(pl.col("behind") < reach)
    tally.add("different", f"{where}: not late by the log", hasty.select(*same, "behind").iter_rows())


def check_metrics(
    tally: Tally, raw: pl.DataFrame, features: pl.DataFrame, late: pl.DataFrame, size: int, until: int, reach: int
) -> pl.DataFrame:
    """Compares the topics `features` and `features.late` with the raw samples.

    Args:
        tally: Takes the findings.
        raw: The good samples, columns as `tests.chaos.runs.verifier.raw_records.SAMPLES`.
        features: The rows of `features`, columns as `METRIC_TYPES`.
        late: The rows of `features.late`, columns `SAMPLE`.
        size: Length of the windows, milliseconds.
        until: Only windows that end by then are compared, epoch milliseconds; later ones may still be open.
        reach: See `late_enough`.

    Returns:
        The windows that there must be, by identity.
    """
    kept, foreign = without(raw, late, SAMPLE)
    tally.add("doubled", "features.late", foreign.iter_rows())
    late_enough(tally, "features.late", raw, late, SAMPLE, reach)
    expected = metric_windows(kept, size).filter(pl.col("window_start") + size <= until)
    got = features.filter(pl.col("window_start") + size <= until)
    revisions(tally, "features", got, WINDOW)
    newest = final(got, WINDOW)
    _keys(tally, "features", expected, newest)
    both = expected.join(newest, on=WINDOW, suffix="_got")
    exact = ["kind", "count", "min", "max", "last"]
    differs = [pl.col(name).ne_missing(pl.col(f"{name}_got")) for name in exact]
    differs += [~_close(name) for name in ("mean", "std", "rate")]
    differs += [~_within(name) for name in QUANTILES]
    wrong = both.filter(pl.any_horizontal(differs))
    shown = wrong.select(*WINDOW, "count", "count_got", "mean", "mean_got", "rate", "rate_got", "last", "last_got")
    tally.add("different", "features", shown.iter_rows(named=True))
    tally.compared["windows of metrics"] = expected.height
    tally.compared["late samples"] = late.height
    return expected.select(WINDOW)


def check_logs(
    tally: Tally, raw: pl.DataFrame, features: pl.DataFrame, late: pl.DataFrame, size: int, until: int, reach: int
) -> pl.DataFrame:
    """Compares `features.logs` and `logs.late` with the raw lines; arguments and result as of `check_metrics`."""
    kept, foreign = without(raw, late, LINE)
    tally.add("doubled", "logs.late", foreign.iter_rows())
    late_enough(tally, "logs.late", raw, late, LINE, reach)
    expected = severity_windows(kept, size).filter(pl.col("window_start") + size <= until)
    got = features.filter(pl.col("window_start") + size <= until)
    revisions(tally, "features.logs", got, WINDOW)
    severities = got.filter(pl.col("metric").str.starts_with("log.severity."))
    _keys(tally, "features.logs", expected, severities)
    both = expected.join(severities, on=WINDOW, suffix="_got")
    tally.add("different", "features.logs", both.filter(pl.col("count") != pl.col("count_got")).iter_rows())
    windows = ("entity", "window_start")
    templates = (
        got.filter(pl.col("metric").str.starts_with("log.template.")).group_by(windows).agg(pl.col("count").sum())
    )
    totals = (
        expected.group_by(windows).agg(pl.col("count").sum()).join(templates, on=windows, how="left", suffix="_got")
    )
    unlike = totals.filter(pl.col("count").ne_missing(pl.col("count_got")))
    tally.add("different", "features.logs by template", unlike.iter_rows())
    tally.compared["windows of logs"] = totals.height
    tally.compared["late lines"] = late.height
    return totals.select(windows)


def _keys(tally: Tally, where: str, expected: pl.DataFrame, got: pl.DataFrame) -> None:
    lost = expected.join(got, on=WINDOW, how="anti").sort(WINDOW)
    tally.add("lost", where, lost.select(WINDOW).iter_rows())
    unfounded = got.join(expected, on=WINDOW, how="anti").sort(WINDOW)
    tally.add("different", f"{where}: no record is in it", unfounded.select(WINDOW).iter_rows())


def _close(name: str) -> pl.Expr:
    want, got = pl.col(name), pl.col(f"{name}_got")
    near = (want - got).abs() <= TOLERANCE * pl.max_horizontal(want.abs(), got.abs(), pl.lit(1.0))
    return pl.when(want.is_null() | got.is_null()).then(want.is_null() & got.is_null()).otherwise(near)


def _within(name: str) -> pl.Expr:
    low, high, got = pl.col(f"{name}_low"), pl.col(f"{name}_high"), pl.col(name)
    slack = QUANTILE_ERROR * pl.max_horizontal(low.abs(), high.abs()) + 1e-9
    return got.is_between(low - slack, high + slack).fill_null(False)
