"""What forecasts of when a series is full are worth: what their intervals hold, how wide they are, what is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from models.filling.filling import Course, Filling
from models.numbers.arrays import Array, Ints

HOUR, DAY = 3_600_000.0, 86_400_000.0
WARN = DAY
_SLACK = 1.5
"""What is told is false if it is full neither by then nor within half as much time more; in steps, of an interval."""


class Bounded(NamedTuple):
    """A series that rises to a bound of 0.

    Attributes:
        kind: Of what kind it is, for the figures.
        time: Of each value, epoch milliseconds, shape (n,).
        room: What is left to the bound, until it is crossed, shape (n,).
        span: What there is between empty and full.
        full: When the bound is crossed, epoch milliseconds; infinite if never.
    """

    kind: str
    time: Ints
    room: Array
    span: float
    full: float


class Forecasts(NamedTuple):
    """The forecasts after some values of a series; all arrays have shape (n,).

    Attributes:
        at: When each was made, epoch milliseconds.
        earliest: Milliseconds until it is full; infinite: perhaps never.
        latest: The same.
        begins: True where it is told that it will be full, and was not before.
    """

    at: Array
    earliest: Array
    latest: Array
    begins: np.ndarray


def by_model(series: Bounded) -> Forecasts:
    """The forecasts of the model."""
    filling, n = Filling(), len(series.time)
    rows, within = np.zeros(n, np.int64), np.full(n, WARN, np.int64)
    made = filling.step(filling.new_state(1), rows, series.time, series.room, np.full(n, series.span), within)
    after = [np.where(made[name] >= 0, made[name] - series.time, np.inf) for name in ("earliest", "latest")]
    known = series.time - series.time[0] >= DAY
    return _before(
        series, Forecasts(series.time.astype(float), after[0], after[1], made["course"] == Course.BEGINS), known
    )


def by_line(series: Bounded, hours: float) -> Forecasts:
    """Those of a straight line through the last hours, by least squares, told as by ``predict_linear(...[h], 86400)``.

    Its interval is that of a regression with independent errors: Student's t of the slope.
    """
    time = series.time / HOUR
    first = np.searchsorted(time, time - hours)
    count = np.arange(len(time)) - first + 1.0
    origin, level = time - time[0], -series.room
    sums = [np.concatenate([[0.0], np.cumsum(each)]) for each in (origin, level, origin**2, origin * level, level**2)]
    t, x, tt, tx, xx = ((each[1:] - each[first]) / count for each in sums)
    spread = np.maximum(tt - t * t, 1e-12)
    slope = (tx - t * x) / spread
    end = x + slope * (origin - t)
    left = np.maximum(xx - x * x - slope**2 * spread, 0.0)
    error = np.sqrt(left / spread / np.maximum(count - 2, 1.0)) * 2.0
    earliest, latest = (
        np.where(each > 1e-12, np.maximum(-end, 0.0) / np.maximum(each, 1e-12), np.inf) * HOUR
        for each in (slope + error, slope - error)
    )
    warns = (end + slope * WARN / HOUR >= 0) & (time - time[0] >= min(hours, 24.0))
    begins = warns & ~np.concatenate([[False], warns[:-1]])
    return _before(series, Forecasts(series.time.astype(float), earliest, latest, begins), time - time[0] >= 24.0)


def _before(series: Bounded, made: Forecasts, known: np.ndarray) -> Forecasts:
    """Those before it is full, after a day."""
    chosen = known & (series.time < series.full)
    return Forecasts(*(column[chosen] for column in made))


@dataclass
class Worth:
    """What was counted of forecasts.

    Attributes:
        closed: Forecasts with a latest time, of which the truth is known.
        held: Those of them whose interval holds it.
        early: Those after which it was full before the earliest time.
        opened: Forecasts without a latest time, of series that are full later.
        opened_held: Those of them that it was not full before the earliest time.
        widths: Width of each interval that has a truth, as a share of the time that was left.
        tells: How often it was told that it is full within a day.
        false: How often that was false.
        series: Series; ``crossed``: those that are full at the end; ``told``: those of them of which it was told.
        leads: Hours from what was told to the crossing.
        months: Of the series, together.
    """

    closed: int = 0
    held: int = 0
    early: int = 0
    opened: int = 0
    opened_held: int = 0
    tells: int = 0
    false: int = 0
    series: int = 0
    crossed: int = 0
    told: int = 0
    months: float = 0.0
    widths: list[Array] = field(default_factory=list)
    leads: list[float] = field(default_factory=list)

    def add(self, series: Bounded, made: Forecasts) -> None:
        """Counts the forecasts of a series."""
        step = _SLACK * float(np.median(np.diff(series.time))) if len(series.time) > 1 else 0.0
        last, is_full = float(series.time[-1]), np.isfinite(series.full)
        left = series.full - made.at
        shown = np.isfinite(made.latest) & (is_full | (made.at + made.latest <= last))
        early = left < made.earliest - step
        late = left > made.latest + step
        self.closed += int(shown.sum())
        self.held += int((shown & ~early & ~late).sum())
        self.early += int((shown & early).sum())
        if is_full:
            wide = ~np.isfinite(made.latest)
            self.opened += int(wide.sum())
            self.opened_held += int((wide & ~early).sum())
            self.widths.append((made.latest - made.earliest)[shown] / left[shown])
        by = made.at + _SLACK * np.where(np.isfinite(made.latest), np.maximum(made.latest, WARN), WARN)
        sure = made.begins & (is_full | (by <= last))
        false = sure & (series.full > by)
        self.tells += int(sure.sum())
        self.false += int(false.sum())
        true = np.flatnonzero(sure & ~false)
        self.series += 1
        self.crossed += int(is_full)
        self.months += (last - float(series.time[0])) / DAY / 30
        if len(true) and is_full:
            self.told += 1
            self.leads.append(float(left[true[0]]) / HOUR)

    def row(self) -> list[float]:
        """The figures, in the order of `COLUMNS`."""
        widths = np.concatenate(self.widths) if self.widths else np.zeros(0)
        return [
            self.series,
            100 * self.held / self.closed if self.closed else np.nan,
            100 * self.early / self.closed if self.closed else np.nan,
            float(np.median(widths)) if len(widths) else np.nan,
            self.closed,
            100 * self.opened_held / self.opened if self.opened else np.nan,
            self.false / self.months if self.months else np.nan,
            self.told,
            self.crossed,
            float(np.median(self.leads)) if self.leads else np.nan,
        ]


COLUMNS = (
    "series", "held %", "before %", "width / left", "with a latest", "open, held %", "false a month", "told", "full",
    "hours ahead",
)  # fmt: skip


def worth(series: Sequence[Bounded], made: Sequence[Forecasts]) -> dict[str, Worth]:
    """What forecasts are worth: of each kind of series, and of ``all``."""
    figures: dict[str, Worth] = {}
    for one, forecasts in zip(series, made, strict=True):
        for name in (one.kind, "all"):
            figures.setdefault(name, Worth()).add(one, forecasts)
    return figures
