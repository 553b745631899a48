"""Decides when the detector's belief about a series has changed, and collects what it then says on `detector.state`.

A belief is said again when one of these has changed since it was last said: the kind of verdict, the incident, the
regime; the typical value or a bound of the band by a quarter of the band's width; the score by 25. Otherwise it is said
once in an hour of event time. What was last said of a series is a part of its state, so that neither micro-batches nor
restarts decide what is said; of several beliefs of one micro-batch only the last is written.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from models.evidence.repeats import NEVER
from models.numbers.arrays import Array, Columns, Flags, Ints, Rows, prefixed
from models.series.course import Course
from models.verdicts import Kind

MOVED = 0.25
"""Share of the band's width by which the typical value or a bound must move."""

SCORE = 25.0
"""Points by which the score must change."""

EVERY = 3_600_000
"""A belief that has not changed is said again after this time, event time in milliseconds."""

_FINEST = 1e-6
"""Differences below this share of the typical value mean nothing."""

_TIMES = ("full_earliest", "full_median", "full_latest")

KINDS = pl.Series([kind.value for kind in Kind], dtype=pl.String)
COURSES = pl.Series([course.value or None for course in Course], dtype=pl.String)

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("entity", "metric"), pl.String),
    **dict.fromkeys(("window_start", "window_end"), pl.Int64),
    "kind": pl.String,
    **dict.fromkeys(("record_score", "actual", "typical", "lower", "upper"), pl.Float64),
    "since": pl.Int64,
    "incident_state": pl.String,
    "values": pl.Int64,
    "regime": pl.Int64,
    "regimes": pl.List(pl.Float64),
    **dict.fromkeys(_TIMES, pl.Int64),
    "full_rate": pl.Float64,
}
"""The columns of `SeriesState`."""

Number = TypeVar("Number", int, Ints)


class Belief(NamedTuple):
    """What is believed of n series after one window of each; all arrays have shape (n,) unless said otherwise.

    Attributes:
        start: First instant of the window, epoch milliseconds.
        end: End of the window, epoch milliseconds.
        kind: Codes of `Kind`.
        incident: Codes of `Course`.
        since: Onset of the incident, epoch milliseconds; -1: there is none.
        score: `record_score`.
        actual: The value; NaN or infinite: there is none.
        typical: The value expected; NaN: it is not known.
        lower: Lower bound of the band; NaN as above.
        upper: Upper bound of the band; NaN as above.
        values: Number of values that the model has learned from.
        regime: Number of the present regime.
        back: True if it must be said: the window ends an absence, or it is told when the series is full.
        full_earliest: When the series is full at the earliest, epoch milliseconds; -1: it is not known.
        full_median: The same for the median.
        full_latest: The same at the latest.
        full_rate: Units per hour; NaN: it is not known.
    """

    start: Ints
    end: Ints
    kind: Ints
    incident: Ints
    since: Ints
    score: Array
    actual: Array
    typical: Array
    lower: Array
    upper: Array
    values: Array
    regime: Ints
    back: Flags
    full_earliest: Ints
    full_median: Ints
    full_latest: Ints
    full_rate: Array

    def at(self, rows: Ints) -> Belief:
        """Some of the rows."""
        return Belief(*(column[rows] for column in self))  # type: ignore[arg-type]


def new_columns(n: int) -> Columns:
    """The state columns for n series of which nothing was said."""
    numbers = {name: np.full(n, np.nan) for name in ("typical", "lower", "upper", "score")}
    return prefixed("said.", {"at": np.full(n, NEVER, np.int64), "what": np.full(n, -1, np.int16), **numbers})


def code(kind: Number, incident: Number, regime: Number) -> Number:
    """The number that stands for what changes at once: the codes of `Kind` and `Course`, and the regime's number."""
    return kind + 8 * incident + 32 * regime


def changed(columns: Columns, rows: Ints, belief: Belief) -> Ints:
    """The rows of a belief that have changed since they were last said; the state then holds that they were said.

    Args:
        columns: The state, with the columns of `new_columns`.
        rows: The row of the state of each series, shape (n,).
        belief: What is believed of these series.
    """
    last = Rows(columns, rows, "said.")
    codes = code(belief.kind, belief.incident, belief.regime)
    news = belief.back | (codes != last["what"]) | (belief.end - last["at"] >= EVERY)
    lower, upper = last["lower"], last["upper"]
    least = MOVED * (upper - lower) + _FINEST * np.abs(belief.typical)
    for now, then in ((belief.typical, last["typical"]), (belief.lower, lower), (belief.upper, upper)):
        news |= ~(np.abs(now - then) <= least) & np.isfinite(now)
    news |= np.abs(belief.score - last["score"]) >= SCORE
    at = np.flatnonzero(news)
    if len(at):
        written = Rows(columns, rows[at], "said.")
        written["at"], written["what"] = belief.end[at], codes[at]
        for name in ("typical", "lower", "upper", "score"):
            written[name] = getattr(belief, name)[at]
    return at


class SeriesBeliefs(NamedTuple):
    """What is said of some series.

    Attributes:
        names: Machine and metric of each series.
        belief: What is believed of them.
        regimes: Level of each regime, NaN for those that are not known, shape (n, `SLOTS`).
    """

    names: list[tuple[str, str]]
    belief: Belief
    regimes: Array

    def at(self, row: int) -> SeriesBeliefs:
        """What is said of one of the series."""
        return SeriesBeliefs([self.names[row]], self.belief.at(np.array([row])), self.regimes[[row]])


def latest(verdicts: list[SeriesBeliefs], others: list[pl.DataFrame]) -> pl.DataFrame:
    """The last belief about each series, as records of `SeriesState`; a frame without rows if there are none.

    Args:
        verdicts: What is said, in order of time for each series.
        others: Further records; one without a kind says that the series was forgotten then, and deletes what was said.
    """
    frames = [*([_frame(verdicts)] if verdicts else []), *others]
    whole = pl.concat([pl.DataFrame(schema=SCHEMA), *frames], how="diagonal_relaxed")
    whole = whole.sort("window_end", maintain_order=True)
    last = whole.unique(("entity", "metric"), keep="last", maintain_order=True)
    return last.with_columns(window_end=pl.when(pl.col("kind").is_not_null()).then("window_end"))


def _frame(verdicts: list[SeriesBeliefs]) -> pl.DataFrame:
    belief = Belief(*(np.concatenate(column) for column in zip(*(beliefs.belief for beliefs in verdicts), strict=True)))
    regimes = np.concatenate([beliefs.regimes for beliefs in verdicts])
    numbers = {name: getattr(belief, name) for name in ("actual", "typical", "lower", "upper")}
    levels = [[level for level in row if level == level] for row in regimes.tolist()]  # noqa: PLR0124  without NaN
    frame = pl.DataFrame(
        {
            "entity": [entity for beliefs in verdicts for entity, _ in beliefs.names],
            "metric": [metric for beliefs in verdicts for _, metric in beliefs.names],
            "window_start": belief.start,
            "window_end": belief.end,
            "kind": KINDS.gather(belief.kind),
            "record_score": belief.score,
            **{name: np.where(np.isfinite(column), column, np.nan) for name, column in numbers.items()},
            "since": belief.since,
            "incident_state": COURSES.gather(belief.incident),
            "values": belief.values.astype(np.int64),
            "regime": belief.regime,
            "regimes": [row or None for row in levels],
            **{name: getattr(belief, name) for name in (*_TIMES, "full_rate")},
        },
        SCHEMA,
    )
    return frame.with_columns(
        *(pl.col(name).fill_nan(None) for name in numbers),
        *(pl.when(pl.col(name) >= 0).then(name).alias(name) for name in ("since", *_TIMES)),
        full_rate=pl.col("full_rate").fill_nan(None),
        regime=pl.when(pl.col("regimes").is_not_null()).then("regime"),
    )
