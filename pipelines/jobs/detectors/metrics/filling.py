"""When series with a bound will be full: forecasts after each window, and the verdicts that tell of them.

A verdict says so of a series of its own, which is named after the metric, so that it has an incident of its own, and
what is unusual of the metric has another. There is one when it is told for the first time, when the forecast has
changed considerably, and when there is room again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from models.evidence.repeats import NEVER
from models.filling.filling import Course, Filling
from models.numbers.arrays import Array, Columns, Flags, Ints
from models.records import Table
from models.series.course import Course as Series
from models.verdicts import Kind
from pipelines.contracts.bounds import Bounds
from pipelines.contracts.records import Label
from pipelines.contracts.records.label import WEIGHED
from pipelines.contracts.records.novelty import UNTIL_FULL
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.verdict_frames import CHANNELS, SCHEMA, completed

_SCORE, _FULL = 75.0, 90.0
"""The scores of what will be full, and of what is."""

_TOLD = (Course.BEGINS, Course.CHANGES, Course.ENDS)


class Outlook(NamedTuple):
    """The forecasts after the windows of a frame; all arrays have shape (n,).

    Attributes:
        earliest: When the series is full at the earliest, epoch milliseconds; -1: it is not known.
        median: The same for the median.
        latest: The same at the latest, -1 also: perhaps never.
        slope: Units per hour; NaN: it is not known.
        told: True where a verdict tells of it.
    """

    earliest: Ints
    median: Ints
    latest: Ints
    slope: Array
    told: Flags

    @classmethod
    def nothing(cls, n: int) -> Outlook:
        """Of n windows of series without a bound."""
        never = np.full(n, -1, np.int64)
        return cls(never, never, never, np.full(n, np.nan), np.zeros(n, np.bool_))

    def part(self, rows: slice) -> Outlook:
        """Of some of the windows."""
        return Outlook(*(column[rows] for column in self))  # type: ignore[arg-type]


class FillWatch:
    """Forecasts when series are full, and tells of it.

    Args:
        settings: The detector's settings.
    """

    def __init__(self, settings: DetectorSettings) -> None:
        self.bounds, self.within, self.filling = Bounds(settings.bounds), settings.full_within_ms, Filling()

    def new_state(self, n: int) -> Columns:
        """The state columns of n series with a bound."""
        return self.filling.new_state(n) | {name: np.full(n, np.nan) for name in ("bound.empty", "bound.full")}

    def step(self, state: DetectionState, frame: pl.DataFrame, taught: Flags | None) -> tuple[Outlook, pl.DataFrame]:
        """Learns from windows, in their order.

        Args:
            state: The state; changed.
            frame: The windows: ``entity``, ``metric``, ``kind``, ``window_start``, ``window_end``, ``value``.
            taught: False for windows that must not be learned from.

        Returns:
            The forecasts, and the verdicts that tell of them, with the columns of `SCHEMA`.
        """
        outlook, verdicts = Outlook.nothing(frame.height), self._left(state, frame)
        names = frame["metric"].unique().sort()
        bounds = {name: bound for name in names.to_list() if (bound := self.bounds.of(name)) is not None}
        if not bounds:
            return outlook, verdicts
        metric = frame["metric"]
        rows = metric.is_in(list(bounds)).arg_true().to_numpy().astype(np.int64)
        part = frame[rows]
        number = part["metric"].replace_strict({name: n for n, name in enumerate(bounds)}, return_dtype=pl.Int64)
        of = number.to_numpy()
        empty, full = (np.array([getattr(b, name) for b in bounds.values()])[of] for name in ("empty", "full"))
        of_time = np.array([b.of_time for b in bounds.values()])[of]
        within = np.array([b.within or self.within for b in bounds.values()], np.int64)[of]
        time, value = part["window_end"].to_numpy(), part["value"].to_numpy()
        up = np.where(np.isnan(empty), full > 0, full > empty)
        room = np.where(of_time, value - time / 1000, np.where(up, full - value, value - full))
        room[~np.isfinite(value)] = np.nan
        if taught is not None:
            room[~taught[rows]] = np.nan
        keys = part.select("entity", "metric")
        series = state.filling.rows(keys)
        self._forget_other_bounds(state.filling.columns, series, empty, full)
        made = self.filling.step(state.filling.columns, series, time, room, np.abs(full - empty), within)
        outlook = _outlook(frame.height, rows, made, up | of_time)
        told = np.flatnonzero(np.isin(made["course"], _TOLD))
        return outlook, pl.concat([verdicts, _verdicts(part[told], made[told])]) if len(told) else verdicts

    def apply_label(self, state: DetectionState, label: Label) -> None:
        """Applies a label on when a metric is full.

        ``false_alarm`` and ``true``: that it will be full is told less, or more, time ahead; the others: it is known,
        and told again once room was made.
        """
        rows = state.filling.find([(label.entity, label.metric.removesuffix(UNTIL_FULL))])
        if label.verdict in WEIGHED:
            self.filling.learn_label(state.filling.columns, rows, np.full(len(rows), label.verdict == "true"))
        else:
            self.filling.accept(state.filling.columns, rows)
        state.filling.touch(rows)

    def _left(self, state: DetectionState, frame: pl.DataFrame) -> pl.DataFrame:
        """Ends what is told of series whose bound was another, or that had one, before settings were changed.

        Returns:
            The verdicts that say so, on the first window of each, with the columns of `SCHEMA`.
        """
        columns = state.filling.columns
        told = np.flatnonzero(columns["filling.since"][: len(state.filling)] != NEVER)
        names, others = state.filling.names_of(told), []
        for row, (entity, metric) in zip(told.tolist(), names, strict=True):
            bound = self.bounds.of(metric)
            was = [float(columns[f"bound.{name}"][row]) for name in ("empty", "full")]
            if bound is None or not np.array_equal(was, [bound.empty, bound.full], equal_nan=True):
                others.append((entity, metric, int(columns["filling.since"][row]), row))
        if not others:
            return pl.DataFrame(schema=SCHEMA)
        left = pl.DataFrame(others, ["entity", "metric", "since", "row"], orient="row")
        first = frame.sort("window_end").unique(["entity", "metric"], keep="first", maintain_order=True)
        first = first.join(left, on=["entity", "metric"], maintain_order="left")
        rows = first["row"].to_numpy()
        for name, fresh in self.new_state(len(rows)).items():
            columns[name][rows] = fresh
        state.filling.touch(rows)
        numbers = {"record_score": 0.0, "state_score": 0.0, "probability": 1.0, "revision": 0}
        return completed(
            first.select(
                "entity",
                "window_start",
                "window_end",
                metric=pl.col("metric") + UNTIL_FULL,
                metric_kind="kind",
                kind=pl.lit(Kind.NORMAL.value),
                incident_state=pl.lit(Series.CLOSED.value),
                since=pl.col("since") - (pl.col("window_end") - pl.col("window_start")),
                evidence=pl.struct([pl.lit(0.0).alias(name) for name in CHANNELS]),
                **{name: pl.lit(value) for name, value in numbers.items()},
            )
        )

    def _forget_other_bounds(self, columns: Columns, series: Ints, empty: Array, full: Array) -> None:
        """What was learned of series whose bound was another, before settings changed, is forgotten."""
        before = columns["bound.empty"][series], columns["bound.full"][series]
        same = (before[1] == full) & ((before[0] == empty) | (np.isnan(before[0].astype(float)) & np.isnan(empty)))
        if same.all():
            return
        rows, first = np.unique(series[~same], return_index=True)
        for name, fresh in self.new_state(len(rows)).items():
            columns[name][rows] = fresh
        columns["bound.empty"][rows], columns["bound.full"][rows] = empty[~same][first], full[~same][first]


def _outlook(n: int, rows: Ints, made: Table, up: Flags) -> Outlook:
    times = []
    for name in ("earliest", "median", "latest"):
        column = np.full(n, -1, np.int64)
        column[rows] = made[name]
        times.append(column)
    slope, told = np.full(n, np.nan), np.zeros(n, np.bool_)
    slope[rows] = np.where(up, made["slope"], -made["slope"])
    told[rows] = np.isin(made["course"], _TOLD)
    return Outlook(times[0], times[1], times[2], slope, told)


def _verdicts(windows: pl.DataFrame, made: Table) -> pl.DataFrame:
    """The verdicts on windows with which something is told."""
    ends = pl.Series(made["course"] == Course.ENDS)
    times = {
        f"full_{name}": pl.when(~ends & (pl.Series(made[name]) >= 0)).then(pl.Series(made[name]))
        for name in ("earliest", "median", "latest")
    }
    score = np.where(made["course"] == Course.ENDS, 0.0, np.where(made["room"] <= 0, _FULL, _SCORE))
    known: dict[str, pl.Expr | pl.Series] = {
        "metric": pl.col("metric") + UNTIL_FULL,
        "metric_kind": pl.col("kind"),
        "kind": pl.when(ends).then(pl.lit("recovered")).otherwise(pl.lit("exhaustion")),
        "record_score": pl.Series(score),
        "state_score": pl.Series(score),
        "probability": pl.lit(0.025),
        "actual": pl.when(pl.col("value").is_finite()).then("value"),
        "since": pl.Series(made["since"]) - (pl.col("window_end") - pl.col("window_start")),
        "incident_state": pl.when(ends).then(pl.lit("closed")).otherwise(pl.lit("open")),
        "evidence": pl.struct([pl.lit(0.0).alias(name) for name in CHANNELS]),
        "revision": pl.lit(0, pl.Int64),
        **times,
    }
    return completed(windows.select("entity", "window_start", "window_end", **known))
