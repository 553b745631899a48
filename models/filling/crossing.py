"""The time of the first crossing of a bound, from the rises of all clocks: its median and its interval of 95 %.

The chance that the bound is crossed within the time of a clock is that of a rise beyond the room left. A rise is
distributed as a Student t with two scales, one for more and one for less than expected, mixed of the experts. Between
two clocks the rise is interpolated. The time at which that chance is 2.5, 50 and 97.5 % is what is searched for; it is
infinite if the chance does not come to be so large: then it may never be full.

Sources: A. C. Harvey, Forecasting, structural time series models and the Kalman filter (1989), for level and slope that
change; R. S. Chhikara, J. L. Folks, The inverse Gaussian distribution (1989), for first passages.
"""

from __future__ import annotations

import math

import numpy as np

from models.filling.clocks import CLOCKS, EXPERTS, OF_LEVEL, OF_PEAK, length, level, rise, slope
from models.kernels import kernel
from models.numbers.arrays import Array
from models.records import Record

_STEPS = 6
"""Instants of the search between two clocks."""

_EXACT = 1e-4
"""A line that rises errs by less than this share of its rise where time alone moves it, as a certificate's."""

_LEAST = 1e-4
"""A rise of the shortest clock has at least this error, as a share of the span."""


@kernel
def quantile(freedom: float) -> float:
    """The 97.5 % quantile of Student's t: Fisher and Cornish's expansion.

    >>> [round(quantile(freedom), 2) for freedom in (4.0, 10.0, 1e9)]
    [2.77, 2.23, 1.96]
    """
    z = 1.959963984540054
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


@kernel
def outlook(given: Record, own: Record, room: float, span: float, seen: float, rises: Array) -> None:
    """How far each clock expects the series to rise above its bound.

    Args:
        given: The constants, `FillingConfig`.
        own: The columns of the series.
        room: What is left to the bound; the value of the series is the negative of it.
        span: A scale of the series: what there is between empty and full.
        seen: Milliseconds since the first value.
        rises: Written: middle, scale above it, scale below it and degrees of freedom of each clock, shape (clocks, 4).
    """
    scales = np.zeros((3, EXPERTS))  # of the next shorter clock: bias, above, below
    middle, weight, change = np.zeros(EXPERTS), np.zeros(EXPERTS), given.change
    for clock in range(CLOCKS):
        count = float(own.count[clock])
        total, expected = 0.0, 0.0
        for expert in range(EXPERTS):
            at = clock * EXPERTS + expert
            up = rise(own, clock, expert)
            if clock == 0:
                bias, above = 0.0, up * up + (_LEAST * span) ** 2
                below = above
            else:
                bias = scales[0, expert]
                above = given.growth * scales[1, expert] ** 2
                below = given.growth * scales[2, expert] ** 2
            known = given.prior + count
            bias = (given.prior * bias + own.bias[at]) / known
            above = math.sqrt((given.prior * above + own.above[at]) / known)
            below = math.sqrt((given.prior * below + own.below[at]) / known)
            scales[0, expert], scales[1, expert], scales[2, expert] = bias, above, below
            middle[expert] = level(own, clock, expert) + up + bias
            used = expert < OF_LEVEL or clock >= OF_PEAK
            weight[expert] = (above + below + 1e-12 * span) ** -given.sharpness if used else 0.0
            total += weight[expert]
        for expert in range(EXPERTS):
            expected += weight[expert] / total * middle[expert]
        up, at = rise(own, clock, 1), clock * EXPERTS + 1
        if count >= 2 and up > 0 and own.above[at] + own.below[at] < count * (_EXACT * up) ** 2:
            change = 0.0
        unseen = up * length(clock) / (length(clock) + seen)
        above, below = (given.quickening * unseen) ** 2, (change * unseen) ** 2
        for expert in range(EXPERTS):
            share, apart = weight[expert] / total, middle[expert] - expected
            above += share * (scales[1, expert] ** 2 + (2 * apart * apart if apart > 0 else 0.0))
            below += share * (scales[2, expert] ** 2 + (0.0 if apart > 0 else 2 * apart * apart))
        rises[clock, 0], rises[clock, 1], rises[clock, 2] = expected, math.sqrt(above), math.sqrt(below)
        rises[clock, 3] = given.freedom + count


@kernel
def _at(rises: Array, own: Record, room: float, time: float) -> tuple[float, float, float]:
    """The quantiles 97.5, 50 and 2.5 % of the rise above the bound in a time, milliseconds."""
    place, last = math.log(time / length(0)) / math.log(3.0), CLOCKS - 1
    if place <= 0:
        share = time / length(0)
        middle, root = rises[0, 0] * share - room * (1 - share), math.sqrt(share)
        above, below, freedom = rises[0, 1] * root, rises[0, 2] * root, rises[0, 3]
    elif place >= last:
        times = time / length(last)
        middle = rises[last, 0] + slope(own, last) * (times - 1)
        above, below, freedom = rises[last, 1] * times**1.1, rises[last, 2] * times**1.1, rises[last, 3]
    else:
        low = int(place)
        part = (time - length(low)) / (length(low + 1) - length(low))
        middle = rises[low, 0] * (1 - part) + rises[low + 1, 0] * part
        part = place - low
        above = rises[low, 1] ** (1 - part) * rises[low + 1, 1] ** part
        below = rises[low, 2] ** (1 - part) * rises[low + 1, 2] ** part
        freedom = rises[low, 3] * (1 - part) + rises[low + 1, 3] * part
    wide = quantile(freedom)
    return middle + wide * above, middle, middle - wide * below


@kernel
def _passed(before: float, then: float, after: float, now: float) -> float:
    """When a line from a value below 0 to one that is not passes 0."""
    return before + (after - before) * (-then / (now - then)) if now > then else after


@kernel
def crossing(own: Record, room: float, rises: Array) -> tuple[float, float, float]:
    """When the bound is crossed: earliest, median and latest, milliseconds from now; infinite: perhaps never.

    Args:
        own: The columns of the series.
        room: What is left to the bound, more than 0.
        rises: As from `outlook`.
    """
    earliest = median = latest = math.inf
    before, high, middle, low = 0.0, -room, -room, -room
    for step in range(_STEPS * (CLOCKS + 4)):
        time = length(0) / 9 * 3.0 ** (step / _STEPS)
        top, center, bottom = _at(rises, own, room, time)
        if top >= 0 and earliest == math.inf:
            earliest = _passed(before, high, time, top)
        if center >= 0 and median == math.inf:
            median = _passed(before, middle, time, center)
        if bottom >= 0:
            latest = _passed(before, low, time, bottom)
            break
        before, high, middle, low = time, top, center, bottom
    return earliest, median, latest
