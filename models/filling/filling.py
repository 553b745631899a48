"""Forecasts of when series are full, learned value by value, and whether that is told. Compiled; no clock."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from models.evidence.repeats import NEVER
from models.filling.clocks import CLOCKS, HOUR, begin_again, draw, keep_peak, length, new_clocks, observe, slope
from models.filling.config import FillingConfig
from models.filling.crossing import crossing, outlook
from models.kernels import kernel
from models.numbers.arrays import Array, Columns, Flags, Ints, Rows, prefixed
from models.records import Layout, Record, Table, constants, record_type
from models.series.feedback import Feedback, fade, worth_of

EVERY = 300_000
"""A forecast is made again after so much event time, milliseconds."""

_AGAIN = 21_600_000
"""What is told is told again after so many milliseconds, so that its incident goes on."""

_DROP = 0.05
"""Something was deleted if a value is lower by more than this share of the span."""

_BEYOND, _NO_BOUND = 0.02, 604_800_000
"""A value beyond the bound by this share of the span shows that there is no bound, for so many milliseconds."""

_MOST = 1e18
"""More than any store has: agents that know no value send the largest number of 64 bits."""

_LATER = 0.05
"""That it will be later than said is told after this share of the time within which it is told that it will be full."""


class Course(IntEnum):
    """What is said of a series with a forecast."""

    NOTHING = 0
    BEGINS = 1
    CHANGES = 2
    GOES_ON = 3
    ENDS = 4


FORECAST = record_type(
    [
        *((name, np.int64) for name in ("earliest", "median", "latest", "since", "course")),
        *((name, np.float64) for name in ("slope", "room")),
    ]
)
"""The forecast after a value, as a record.

``earliest``, ``median``, ``latest``: when the bound is crossed, epoch milliseconds; -1: perhaps never, or not known;
``since``: end of the window with which it was told that the series will be full, also where that ends, -1: it is
not; ``course``: a `Course`;
``slope``: units per hour; ``room``: what is left to the bound.
"""


class Filling:
    """Learns the rises of series with a bound, and forecasts when they cross it.

    It keeps columns of its own, which begin with ``filling.``.

    Args:
        config: The constants.

    >>> filling, state = Filling(), Filling().new_state(1)
    >>> time = np.arange(3000) * 300_000
    >>> noise = np.sin(np.arange(3000) * 7.0)
    >>> room = 40.0 - time / 3_600_000 / 8 + 0.1 * noise  # full after 320 hours
    >>> day = np.full(3000, 86_400_000)
    >>> forecast = filling.step(state, np.zeros(3000, np.int64), time, room, np.full(3000, 100.0), day)[-1]
    >>> [round(forecast[name] / 3_600_000) for name in ("earliest", "median", "latest")]
    [287, 320, 332]
    """

    def __init__(self, config: FillingConfig | None = None) -> None:
        self.feedback = Feedback()
        self._constants = constants(filling=config or FillingConfig(), feedback=self.feedback)
        self._layout = Layout(self._columns(0))

    def new_state(self, n: int) -> Columns:
        """The columns for n series; they share the memory of one table of records."""
        return self._layout.joined(self._columns(n))

    def step(self, columns: Columns, rows: Ints, time: Ints, room: Array, span: Array, within: Ints) -> Table:
        """Learns from values, in their order.

        Args:
            columns: The state, among others; changed.
            rows: The row of each value's series; one may stand several times, shape (n,).
            time: Of the value, epoch milliseconds, shape (n,).
            room: What is left to the bound; NaN: there is no value, shape (n,).
            span: What there is between empty and full; NaN: it is not known, shape (n,).
            within: It is told if the series will be full within so many milliseconds, shape (n,).

        Returns:
            Records of `FORECAST`, shape (n,).
        """
        result = np.zeros(len(rows), FORECAST)
        with self._layout.opened(columns, np.ascontiguousarray(rows)) as (table, places):
            time, within = np.ascontiguousarray(time), np.ascontiguousarray(within)
            room, span = np.ascontiguousarray(room), np.ascontiguousarray(span)
            _step(self._constants, table, places, time, room, span, within, result)
        return result

    def learn_label(self, columns: Columns, rows: Ints, true: Flags) -> None:
        """Learns that what was told of some series was true, or false: that is told longer, or less long, ahead."""
        self.feedback.learn_label(Rows(columns, rows, "filling."), true)

    @staticmethod
    def accept(columns: Columns, rows: Ints) -> None:
        """Ends what is told of some series; nothing more is told of them until room was made."""
        columns["filling.accepted"][rows] = 1
        columns["filling.left"][rows] = -columns["filling.value"][rows].astype(np.float64)

    def _columns(self, n: int) -> Columns:
        said = ("since", "told", "middle", "until", "spoken")
        times = ("first", "last", "made", "beyond", "low", "earliest", "median", "latest", *said)
        instants: Columns = {name: np.full(n, NEVER, np.int64) for name in times}
        numbers: Columns = {name: np.zeros(n) for name in ("seen", "span", "value", "left")}
        labels: Columns = {name: np.zeros(n, np.float32) for name in ("true", "false", "accepted", "lasting")}
        return prefixed("filling.", new_clocks(n) | instants | numbers | labels | {"slope": np.full(n, np.nan)})


@kernel
def _instant(time: int, after: float) -> int:
    return time + int(after) if after < 1e15 else NEVER


@kernel
def _forecast(given: Record, own: Record, time: int, room: float, within: int, rises: Array) -> None:
    """Makes the forecast anew."""
    seen = float(time - own.first)
    own.made = time
    outlook(given, own, room, own.span, seen, rises)
    if seen < given.watched * HOUR or own.seen < given.values:
        own.earliest = own.median = own.latest = NEVER
        own.slope = math.nan
        return
    earliest, median, latest = crossing(own, room, rises)
    if latest > max(given.ahead * seen, within):
        latest = math.inf
    own.lasting = own.lasting + 1.0 if latest != math.inf else 0.0
    if own.lasting < given.lasting:  # perhaps a spike
        latest = math.inf
    if room <= 0:
        earliest = median = latest = 0.0
    own.earliest, own.median, own.latest = _instant(time, earliest), _instant(time, median), _instant(time, latest)
    clock = CLOCKS - 1
    while clock > 0 and length(clock) > max(min(median, seen), 1.0):
        clock -= 1
    own.slope = slope(own, clock) / (length(clock) / HOUR)


@kernel
def _course(own: Record, time: int, within: float) -> int:
    """What is said after a forecast, see `Course`; the state then holds that it was."""
    cleared = -own.value >= 2 * own.left + _DROP * own.span
    if own.accepted > 0:  # an operator knows of it
        own.accepted = 0.0 if cleared else own.accepted
        return 4 if own.since != NEVER else 0
    if own.since != NEVER and (cleared or own.median == NEVER or own.median - time > 2 * within):
        return 4
    known = own.latest != NEVER
    if own.since == NEVER:
        if not (known and own.latest - time <= within):
            return 0
        own.since, course = time, 1
    else:
        narrower = 2 * (own.latest - own.earliest) < own.until - max(own.told, own.spoken)
        nearer = 2 * (own.median - time) < own.middle - own.spoken
        later = own.value < 0 and own.median > own.until and time - own.spoken >= _LATER * within
        changed = narrower or nearer or later or own.median < own.told
        again = time - own.spoken >= _AGAIN or (known and time > own.spoken and changed)
        course = 2 if again else 3
    if course < 3:
        own.told, own.middle, own.until, own.spoken = own.earliest, own.median, own.latest, time
        own.left = -own.value
    return course


@kernel
def _learn(constants: Record, own: Record, time: int, room: float, span: float, within: int, rises: Array) -> int:
    """Learns from a value, and makes the forecast anew if it is time to; returns the code of a `Course`."""
    given = constants.filling
    if own.first == NEVER:
        if room <= 0:  # full from the beginning, as what is only read: that is no news
            return 0
        own.first, own.span = time, span if span > 0 else room
    if room < -_BEYOND * own.span or (own.beyond != NEVER and time - own.beyond < _NO_BOUND):
        if room < -_BEYOND * own.span:
            own.beyond = time
        own.earliest = own.median = own.latest = NEVER
        return 4 if own.since != NEVER else 0
    value, passed = -room, float(time - own.last) if own.last != NEVER else 0.0
    low = own.seen > 0 and own.value - value > _DROP * own.span
    if low and own.low == NEVER:  # it may be wrong: the next value says whether something was deleted
        own.low = time
        return 3 if own.since != NEVER else 0
    own.low = NEVER
    own.last = time
    own.seen += 1.0
    fade(constants.feedback, own)
    drop = own.value - value if low else 0.0
    own.value = value
    keep_peak(own, time, value, drop)
    draw(own, passed, value, drop)
    seen = float(time - own.first)
    due = observe(given, own, time, value, seen)
    if due:
        begin_again(given, own, time, value, seen)
    if own.made != NEVER and time - own.made < EVERY and room > 0:
        return 3 if own.since != NEVER else 0
    _forecast(given, own, time, room, within, rises)
    return _course(own, time, within * worth_of(constants.feedback, own))


@kernel
def _step(
    constants: Record, table: Table, rows: Ints, time: Ints, room: Array, span: Array, within: Ints, result: Table
) -> None:
    rises = np.zeros((CLOCKS, 4))
    for i in range(len(rows)):
        own, forecast = table[rows[i]].filling, result[i]
        if abs(room[i]) <= _MOST:
            forecast.course = _learn(constants, own, time[i], room[i], span[i], within[i], rises)
        else:
            forecast.course = 3 if own.since != NEVER else 0
        forecast.earliest, forecast.median, forecast.latest = own.earliest, own.median, own.latest
        forecast.since, forecast.slope, forecast.room = own.since, own.slope, room[i]
        if forecast.course == 4:
            own.since = NEVER
