"""The hour of the day: the value is around where it was at this time on the working days, or weekends, before.

24 normal-inverse-gammas on a circle, with linear interpolation between the two nearest centres; two circles, one of
working days, one of Saturdays and Sundays. The prior of each hour is hierarchical: its mean is the level's, its
variance what is left of the variance, over all hours, once the hour is known. An hour not visited yet predicts what the
level predicts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.experts.base import Lesson, Step
from models.experts.level import shorten
from models.families.normal_inverse_gamma import Prior, Statistics, predictive
from models.families.student_t import StudentT
from models.kernels import kernel, within
from models.numbers.arrays import SMALLEST, Array, Columns, Rows
from models.records import Record

HOURS = 24
BINS = 2 * HOURS
REFERENCE_GAP = 300_000.0
"""The step length, in milliseconds, for which the forgetting a visit is stated."""

POOL_SHAPE = 2.0

_MOST = float(np.finfo(np.float32).max)
"""Squares and distances are kept in 32 bits; squares of deviations beyond 1e19 are taken for smaller than they are."""

_DAY, _HOUR = 86_400_000, 3_600_000.0


class Hours(NamedTuple):
    """The two hours whose middles are nearest to an instant.

    Args:
        first: The earlier one, 0 to 23.
        second: The later one.
        share: How near the later one is: 0 in the middle of the first, 1 in that of the second.
    """

    first: int
    second: int
    share: float


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known.

    The means of the hours are kept as distances from ``anchor``, the first value learned, so that 32 bits suffice for
    a level of 1e12 that moves by 1. What earlier versions kept are distances from 0.
    """
    bins: Columns = {name: np.zeros((n, BINS), np.float32) for name in ("count", "mean", "squares")}
    pool: Columns = {"pool_count": np.zeros(n, np.float32), "pool_squares": np.zeros(n)}
    return bins | {"anchor": np.zeros(n)} | pool


@kernel
def nearest_hours(local: int) -> Hours:
    """The hours nearest to an instant on the wall clock, in milliseconds as if they were an epoch.

    >>> nearest_hours(900_000)  # a quarter past midnight
    Hours(first=23, second=0, share=0.75)
    """
    place = (local % _DAY) / _HOUR - 0.5
    below = math.floor(place)
    return Hours(int(below) % HOURS, (int(below) + 1) % HOURS, place - below)


@kernel
def forgotten(config: DetectorConfig, gap: float) -> float:
    """Share of what is known of an hour that a visit of it forgets, by the milliseconds since the value before."""
    gap = gap if gap > 0 else REFERENCE_GAP
    return min(config.hour_forget * gap / REFERENCE_GAP, config.hour_forget_most)


@kernel
def _statistics(hour: Record, hours: Hours, circle: int, otherwise: float) -> Statistics:
    """What is known of the time of day; ``otherwise``: the mean if nothing is."""
    near, far = hours.first + circle, hours.second + circle
    weight_near, weight_far = (1 - hours.share) * hour.count[near], hours.share * hour.count[far]
    count = weight_near + weight_far
    tilt = weight_far / max(count, 1e-12)
    mean = hour.anchor + hour.mean[near] + tilt * (hour.mean[far] - hour.mean[near]) if count > 0 else otherwise
    return Statistics(count, mean, (1 - hours.share) * hour.squares[near] + hours.share * hour.squares[far])


@kernel
def predict_hour(hour: Record, step: Step, level: StudentT) -> StudentT:
    """The view of the hour of the day.

    Args:
        hour: The columns of this expert.
        step: The value, and what is known of it.
        level: What the level predicts.
    """
    statistics = _statistics(hour, nearest_hours(step.local), HOURS * step.weekend, level.location)
    broad = max(level.scale * level.scale, SMALLEST * SMALLEST)
    within_hours = (POOL_SHAPE * broad + 0.5 * hour.pool_squares) / (POOL_SHAPE + 0.5 * hour.pool_count)
    within_hours = max(within_hours, SMALLEST * SMALLEST)
    prior = Prior(level.location, within(within_hours / broad, 1e-3, 1.0), POOL_SHAPE, within_hours)
    return predictive(statistics, prior, step.resolution, 0.0)


@kernel
def visits_of(hour: StudentT) -> float:
    """How many values a view of the hour of the day was learned from, in effect."""
    return hour.dof - 2 * POOL_SHAPE


@kernel
def learn_hour(config: DetectorConfig, hour: Record, step: Step, lesson: Lesson, level: StudentT) -> None:
    """Adds a value to both hours by their shares; in proportion to the time between values, old ones are forgotten.

    Args:
        config: The constants.
        hour: The columns; changed.
        step: As for `predict_hour`.
        lesson: What is to be learned of it.
        level: As for `predict_hour`.
    """
    hours, circle = nearest_hours(step.local), HOURS * step.weekend
    statistics = _statistics(hour, hours, circle, level.location)
    forget, error = forgotten(config, step.gap), lesson.value - statistics.mean
    if not hour.count.any():
        hour.anchor = lesson.value
    _learn_bin(hour, hours.first + circle, 1 - hours.share, forget, lesson, error)
    _learn_bin(hour, hours.second + circle, hours.share, forget, lesson, error)
    counted = lesson.weight if statistics.observations > 0.5 else 0.0
    hour.pool_count = hour.pool_count * (1 - config.forget) + counted
    hour.pool_squares = hour.pool_squares * (1 - config.forget) + counted * (error * error)


@kernel
def _learn_bin(hour: Record, index: int, share: float, forget: float, lesson: Lesson, error: float) -> None:
    weight = lesson.weight * share
    faded = hour.count[index] * (1 - forget * share)
    count = faded + weight
    gain = weight / max(count, 1e-12)
    hour.count[index] = count
    away = hour.mean[index] + gain * (lesson.value - hour.anchor - hour.mean[index])
    hour.mean[index] = within(away, -_MOST, _MOST)
    squares = hour.squares[index] * (1 - forget * share) + faded * gain * (error * error)
    hour.squares[index] = min(squares, _MOST)


def shift_hour(state: Rows, offset: Array, few: float) -> None:
    """Moves all that was learned by an offset, shape (n,), and lets it count as few values."""
    state["anchor"] = state["anchor"] + offset
    shorten(state, few)
