"""What is told of recorded series with labelled spans: spans found, false alarms a series and month, delay.

A span is *found* if an alarm falls into it, from its first row on; where rows are a minute or an hour apart, within its
first fifteen rows, as one that comes later is of no use. A *false alarm* is a run of alarms further than `NEAR` rows
from every span; runs less than `APART` rows apart are one. A month has thirty days.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from models.numbers.arrays import Array, Flags
from pipelines.evaluation.vus import segments

NEAR, APART = 12, 30
_MONTH_MS = 30 * 86_400_000
_LEVELS = 80
"""Thresholds that are tried of a score."""


@dataclass(frozen=True)
class Labelled:
    """A recorded series.

    Args:
        name: Its name.
        time: Epoch milliseconds, in order, shape (n,).
        value: NaN where it is missing, shape (n,).
        label: Whether something was wrong, shape (n,).
        soon: Rows within which a span must be found; ``None``: as long as it lasts.
    """

    name: str
    time: Array
    value: Array
    label: Flags
    soon: int | None = None

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """First row of each labelled span, and the row after its last.

        >>> Labelled("a", np.arange(5), np.zeros(5), np.array([0, 1, 1, 0, 1]) > 0).spans
        [(1, 3), (4, 5)]
        """
        return [(int(first), int(last) + 1) for first, last in segments(self.label)]

    @cached_property
    def near(self) -> Flags:
        """Whether a row lies in a span or at most `NEAR` rows beside it."""
        wide = np.convolve(self.label.astype(int), np.ones(2 * NEAR + 1, int))[NEAR : NEAR + len(self.label)]
        return np.asarray(wide > 0)

    @property
    def months(self) -> float:
        """How long it is."""
        step = float(np.median(np.diff(self.time))) if len(self.time) > 1 else 0.0
        return len(self.time) * step / _MONTH_MS


@dataclass(frozen=True)
class Told:
    """What came of alarms: ``found`` of ``spans``; false alarms a series and month; median delay in rows."""

    found: int
    spans: int
    false: float
    delay: float

    @property
    def share(self) -> float:
        """Share of the spans that were found."""
        return self.found / max(self.spans, 1)


def told(series: Sequence[Labelled], alarms: Sequence[Flags]) -> Told:
    """Compares alarms with labels.

    Args:
        series: The series.
        alarms: Of each series whether there is an alarm at each row.

    >>> hour = 3_600_000
    >>> series = Labelled("a", np.arange(720) * hour, np.zeros(720), np.isin(np.arange(720), (100, 101)), 15)
    >>> told([series], [np.isin(np.arange(720), (101, 200, 201, 300))])
    Told(found=1, spans=1, false=2.0, delay=1.0)
    """
    false, delays, spans = 0, [], 0
    for each, flags in zip(series, alarms, strict=True):
        wrong = np.flatnonzero(flags & ~each.near)
        false += 1 + int((np.diff(wrong) > APART).sum()) if len(wrong) else 0
        for first, end in each.spans:
            spans += 1
            last = end if each.soon is None else min(end, first + each.soon)
            hits = np.flatnonzero(flags[first:last])
            delays += [int(hits[0])] if len(hits) else []
    months = sum(each.months for each in series)
    return Told(len(delays), spans, false / months, float(np.median(delays)) if delays else float("nan"))


def at_most(series: Sequence[Labelled], scores: Sequence[Array], budgets: Iterable[float]) -> dict[float, Told | None]:
    """For each number of false alarms a series and month, what the best threshold, one for all series, would tell.

    Args:
        series: The series.
        scores: Of each series its scores.
        budgets: The numbers of false alarms.
    """
    best: dict[float, Told | None] = dict.fromkeys(budgets)
    every = np.concatenate([np.nan_to_num(score) for score in scores])
    for level in np.unique(np.quantile(every, 1 - np.logspace(-1.5, -5.5, _LEVELS))):
        if level <= 0:
            continue
        found = told(series, [np.nan_to_num(score) >= level for score in scores])
        for budget, so_far in best.items():
            if found.false <= budget and (so_far is None or found.share > so_far.share):
                best[budget] = found
    return best


def one_line(values: Array, day: int) -> Array:
    """One line of arithmetic: distance from the median of the 15 values before, over its 95 % quantile of a day.

    Args:
        values: The values, shape (n,); a missing one repeats the one before.
        day: Values of a day.

    >>> values = np.tile([1.0, 2.0], 100)
    >>> values[150] = 11.0
    >>> int(one_line(values, 100).argmax())
    150
    """
    given = pl.Series(values).fill_nan(None).fill_null(strategy="forward").fill_null(strategy="backward")
    middle = given.rolling_median(15, min_samples=1).shift(1).fill_null(strategy="backward")
    off = (given - middle).abs()
    usual = off.rolling_quantile(0.95, window_size=max(day, 50), min_samples=min(day, 50)).shift(1)
    score = (off / (usual + 1e-9)).fill_null(0.0).to_numpy()
    whole: Array = np.nan_to_num(score)
    return whole
