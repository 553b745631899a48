"""Restricts the verdicts of two versions to the event times that both have judged.

A version that is replayed from a later time, or that is still behind, has not judged what is missing there. So of each
series only the time between the later of both first windows and the earlier of both last ones is compared. A version
with `detector.emit = "context"` or `"novel"` does not write the verdicts on all windows: its time is that between its
first and its last verdict of any series, and a window in that time without a verdict was quiet.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipelines.evaluation.comparison.verdicts import SERIES
from pipelines.evaluation.stored import sparse

_STEP_MS = 10_000


@dataclass(frozen=True)
class CommonTimes:
    """The verdicts of two versions on the event times that both have judged.

    Attributes:
        verdicts: The verdicts of the first and of the second version.
        start: First instant that is compared, epoch milliseconds; ``None`` if nothing is.
        end: Last instant that is compared, exclusive.
        step: Time between two windows, milliseconds; the longer one, if the versions differ.
        series: Number of series that are compared.
        alone: For each version the number of series that only this version has judged at all.
        left_out: For each version the number of windows that are not compared.
        sparse: For each version whether verdicts on quiet windows are missing, see `pipelines.evaluation.stored`.
        compared: The series that are compared: ``entity``, ``metric``, and ``from_`` and ``to``, between which both
            have judged it, epoch milliseconds.
    """

    verdicts: tuple[pl.DataFrame, pl.DataFrame]
    start: int | None
    end: int | None
    step: int
    series: int
    alone: tuple[int, int]
    left_out: tuple[int, int]
    sparse: tuple[bool, bool]
    compared: pl.DataFrame


def common_times(
    first: pl.DataFrame,
    second: pl.DataFrame,
    start: int | None = None,
    end: int | None = None,
    emit: tuple[str, str] = ("all", "all"),
) -> CommonTimes:
    """Restricts verdicts to the times that both versions have judged.

    Args:
        first: Final verdicts of the first version, see `pipelines.evaluation.comparison.verdicts`.
        second: Those of the second one.
        start: No earlier window is compared, epoch milliseconds.
        end: No window that ends later is compared.
        emit: The setting ``detector.emit`` of both.
    """
    both = (first, second)
    missing = (sparse(first, emit[0]), sparse(second, emit[1]))
    listed = [frame.select(SERIES).unique() for frame in both]
    bounds = [_bounds(*pair) for pair in zip(both, missing, strict=True)]
    if all(missing):
        series = pl.concat(listed).unique()
    elif missing[0] or missing[1]:
        series = listed[1] if missing[0] else listed[0]
    else:
        series = listed[0].join(listed[1], on=SERIES)
    for version, bound in enumerate(bounds):
        on = [name for name in SERIES if name in bound.columns]
        named = bound.rename({"first": f"first{version}", "last": f"last{version}"})
        series = series.join(named, on=on) if on else series.join(named, how="cross")
    times = series.select(
        *SERIES,
        from_=pl.max_horizontal("first0", "first1", pl.lit(start, pl.Int64)),
        to=pl.min_horizontal("last0", "last1", pl.lit(end, pl.Int64)),
    ).filter(pl.col("from_") < pl.col("to"))
    kept = (_within(first, times), _within(second, times))
    return CommonTimes(
        verdicts=kept,
        start=times["from_"].min(),  # type: ignore[arg-type]
        end=times["to"].max(),  # type: ignore[arg-type]
        step=max(step_of(first, missing[0]), step_of(second, missing[1])),
        series=times.height,
        alone=(
            listed[0].join(listed[1], on=SERIES, how="anti").height,
            listed[1].join(listed[0], on=SERIES, how="anti").height,
        ),
        left_out=(first.height - kept[0].height, second.height - kept[1].height),
        sparse=missing,
        compared=times,
    )


def _bounds(verdicts: pl.DataFrame, sparse: bool) -> pl.DataFrame:
    """First and last instant that a version has judged, of each series or of all together."""
    ends = {"first": pl.col("window_start").min(), "last": pl.col("window_end").max()}
    return verdicts.select(**ends) if sparse else verdicts.group_by(SERIES).agg(**ends)


def _within(verdicts: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    joined = verdicts.join(times, on=SERIES, maintain_order="left")
    inside = (pl.col("window_start") >= pl.col("from_")) & (pl.col("window_end") <= pl.col("to"))
    return joined.filter(inside).select(verdicts.columns)


def step_of(verdicts: pl.DataFrame, sparse: bool) -> int:
    """Time between two windows of a series, milliseconds: the most frequent one; of news only, the shortest one."""
    gaps = verdicts.select(gap=pl.col("window_end").diff().over(SERIES)).drop_nulls().filter(pl.col("gap") > 0)["gap"]
    found = gaps.min() if sparse else gaps.mode().min()
    return int(found) if found is not None else _STEP_MS  # type: ignore[arg-type]
