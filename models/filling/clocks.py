"""Rises over eight clocks, from 18 minutes to 27 days: how high a series came in so much time, and was expected to.

Each clock has a straight line through the past, with exponential forgetting, and observes one rise after another: how
high the highest value within its time is. What it was expected to be, from lines with the memory of this clock, the
next shorter and the next longer one, is compared with what it was. So the errors of a slope,
noise, the crests of days, and deletions that come again and again are in the distribution of the next rise, whatever
the shape of the series. Clocks from a day on also know how far the highest value of the last day is exceeded.
"""

from __future__ import annotations

import math

import numpy as np

from models.evidence.repeats import NEVER
from models.kernels import kernel
from models.numbers.arrays import Columns
from models.records import Record

CLOCKS, EXPERTS, OF_LEVEL, OF_PEAK = 8, 5, 3, 4
"""Number of clocks; of experts of each; how many of these know the level; the first clock where the others are used."""

DAY, HOUR = 86_400_000.0, 3_600_000.0


def new_clocks(n: int) -> Columns:
    """The columns of the clocks of n series of which nothing was seen."""
    of_clock = ("weight", "time", "mean", "spread", "together", "highest", "peak")
    lines: Columns = {name: np.zeros((n, CLOCKS)) for name in of_clock}
    errors: Columns = {name: np.zeros((n, CLOCKS * EXPERTS), np.float32) for name in ("bias", "above", "below")}
    counts: Columns = {name: np.zeros((n, CLOCKS), np.float32) for name in ("count", "drops")}
    others: Columns = {"expected": np.zeros((n, CLOCKS * EXPERTS)), "begin": np.full((n, CLOCKS), NEVER, np.int64)}
    days: Columns = {"today": np.zeros(n), "yesterday": np.zeros(n), "day": np.full(n, NEVER, np.int64)}
    return lines | others | errors | counts | days


@kernel
def length(clock: int) -> float:
    """The time of a clock, milliseconds."""
    return 86_400_000.0 * 3.0 ** (clock - 4)


@kernel
def slope(own: Record, clock: int) -> float:
    """By how much the line of a clock rises in its time."""
    return own.together[clock] / own.spread[clock] if own.spread[clock] > 1e-12 else 0.0


@kernel
def rise(own: Record, clock: int, expert: int) -> float:
    """By how much a line is expected to rise in the time of a clock: by each expert a line of another memory."""
    line = clock + (expert - 1 if expert < OF_LEVEL else expert - OF_LEVEL)
    line = min(max(line, 0), CLOCKS - 1)
    up = slope(own, line) * 3.0 ** (clock - line)
    return up if expert < OF_LEVEL else max(up, 0.0)


@kernel
def level(own: Record, clock: int, expert: int) -> float:
    """From what an expert expects the rise: its line now, or the highest value of the last days."""
    if expert >= OF_LEVEL:
        return peak(own)
    line = min(max(clock + expert - 1, 0), CLOCKS - 1)
    return own.mean[line] - slope(own, line) * own.time[line]


@kernel
def peak(own: Record) -> float:
    """The highest value of this day and the day before."""
    return max(own.today, own.yesterday)


@kernel
def draw(own: Record, passed: float, value: float, drop: float) -> None:
    """Draws all lines on to a value.

    Where something was deleted, lines begin from there with the same slope, unless it is deleted again and again in the
    time of the clock: then that is a part of the slope.

    Args:
        own: The columns of the series; changed.
        passed: Milliseconds since its last value.
        value: The value.
        drop: By how much it is lower as something was deleted; 0: it was not.
    """
    for clock in range(CLOCKS):
        keep = math.exp(-passed / length(clock))
        drops = own.drops[clock] * math.sqrt(keep)
        if drop > 0:
            if drops < 1.0:
                own.mean[clock] -= drop
            drops += 1.0
        own.drops[clock] = drops
        weight = own.weight[clock] * keep + 1.0
        time = own.time[clock] - passed / length(clock)
        spread, together = own.spread[clock] * keep, own.together[clock] * keep
        after, above = -time, value - own.mean[clock]
        time += after / weight
        mean = own.mean[clock] + above / weight
        own.weight[clock], own.time[clock], own.mean[clock] = weight, time, mean
        own.spread[clock] = spread - after * time
        own.together[clock] = together + after * (value - mean)


@kernel
def keep_peak(own: Record, time: int, value: float, drop: float) -> None:
    """Keeps the highest values of this day and the day before; those before something was deleted count no more."""
    day = time // 86_400_000
    if drop > 0 and own.drops[OF_PEAK] < 1.0:
        own.yesterday = own.today = value
    if day != own.day:
        own.yesterday = own.today if own.day != NEVER and day == own.day + 1 else value
        own.today, own.day = value, day
    own.today = max(own.today, value)


@kernel
def observe(given: Record, own: Record, time: int, value: float, seen: float) -> bool:
    """Learns from rises whose time is over.

    Args:
        given: The constants, `FillingConfig`.
        own: The columns of the series; changed.
        time: Of the value, epoch milliseconds.
        value: The value.
        seen: Milliseconds since the first value.

    Returns:
        Whether a clock has to begin anew.
    """
    due = False
    for clock in range(CLOCKS):
        begin = own.begin[clock]
        if begin != NEVER:
            own.highest[clock] = max(own.highest[clock], value)
            lasted = (time - begin) / length(clock)
            if lasted >= 1.0:
                if lasted < 1.5:
                    _learn_rise(given, own, clock)
                own.begin[clock] = NEVER
        due = due or (own.begin[clock] == NEVER and seen >= given.begun * length(clock))
    return due


@kernel
def _learn_rise(given: Record, own: Record, clock: int) -> None:
    keep = 1.0 - given.forget
    count = own.count[clock] * keep + 1.0
    own.count[clock] = count
    for expert in range(EXPERTS):
        at = clock * EXPERTS + expert
        highest = own.highest[clock] if expert < OF_LEVEL else max(own.highest[clock], own.peak[clock])
        error = highest - own.expected[at]
        own.bias[at] = own.bias[at] * keep + error
        left = error - own.bias[at] / (count + given.prior)
        own.above[at] = own.above[at] * keep + (2.0 * left * left if left > 0 else 0.0)
        own.below[at] = own.below[at] * keep + (0.0 if left > 0 else 2.0 * left * left)


@kernel
def begin_again(given: Record, own: Record, time: int, value: float, seen: float) -> None:
    """Begins to observe the next rise of each clock whose last one is over; arguments as for `observe`."""
    for clock in range(CLOCKS):
        if own.begin[clock] == NEVER and seen >= given.begun * length(clock):
            own.begin[clock] = time
            own.highest[clock] = value
            own.peak[clock] = peak(own)
            for expert in range(EXPERTS):
                own.expected[clock * EXPERTS + expert] = level(own, clock, expert) + rise(own, clock, expert)
