"""The slow level on a logarithm-like axis: values vary in proportion to their size, or have a long upper tail."""

from __future__ import annotations

import math

import numpy as np

from models.config import DetectorConfig
from models.experts.base import Lesson, Step
from models.experts.level import shorten, vague
from models.families.normal_inverse_gamma import Prior, Statistics, learn, predictive
from models.families.student_t import StudentT
from models.kernels import kernel
from models.numbers.arrays import SMALLEST, Array, Columns, Rows, clamp
from models.numbers.hyperbolic import asinh
from models.records import Record

_LARGEST_PLACE = 300.0
_BELOW = 1.0 + 1e-9
"""A value that little below a power of two has its unit: 1.0 and 0.9999999999999999 may be one mean, summed twice."""
_FINEST = 1e-9
"""Smallest scale on the axis."""


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known.

    The unit of the axis is an eighth of the first value that is not 0, so that it makes no difference whether a latency
    is in seconds or in milliseconds.
    """
    small: Columns = {name: np.zeros(n, np.float32) for name in ("count", "squares")}
    return small | {"mean": np.zeros(n), "unit": np.zeros(n)}


@kernel
def unit_of(value: float) -> float:
    """An eighth of the magnitude of a value, as a power of two; 0 for (next to) nothing.

    >>> unit_of(100.0), unit_of(-0.5), unit_of(0.0)
    (16.0, 0.125, 0.0)
    >>> unit_of(1.0) == unit_of(0.9999999999999999)
    True
    """
    return 0.0 if abs(value) < SMALLEST else math.ldexp(1.0, math.frexp(value * _BELOW)[1] - 3)


@kernel
def unit_so_far(log_level: Record, value: float) -> float:
    """The unit of the axis, or that which a first value gives; 0 while there was nothing but 0."""
    return log_level.unit if log_level.unit > 0 else unit_of(value)


@kernel
def _statistics(log_level: Record, value: float, unit: float) -> Statistics:
    mean = log_level.mean if log_level.count > 0 else asinh(value / unit)
    return Statistics(float(log_level.count), mean, float(log_level.squares))


@kernel
def _on_axis(prior: Prior, unit: float) -> Prior:
    """A prior of the raw level on the logarithm-like axis; its variances by the slope at its mean."""
    slope = 1 / math.hypot(prior.mean, unit)
    return Prior(asinh(prior.mean / unit), prior.strength, prior.shape, prior.variance * slope * slope)


@kernel
def predict_log_level(log_level: Record, step: Step, peers: Prior, on_axis: Prior) -> StudentT:
    """The view of the level on asinh(value / unit).

    Args:
        log_level: The columns of the level.
        step: The value, and what is known of it.
        peers: What the same metric of other machines lets expect.
        on_axis: What is known of it on this axis; variance 0: nothing.
    """
    unit = unit_so_far(log_level, step.value) or 1.0
    statistics = _statistics(log_level, step.value, unit)
    floor = step.resolution / (unit * math.cosh(min(abs(statistics.mean), _LARGEST_PLACE)))
    if on_axis.variance > 0:
        prior = on_axis
    elif peers.variance > 0:
        prior = _on_axis(peers, unit)
    else:
        prior = vague(statistics.mean, min(abs(statistics.mean), 1.0), step.seen)
    return predictive(statistics, prior, max(floor, _FINEST), unit)


@kernel
def learn_log_level(config: DetectorConfig, log_level: Record, value: float, lesson: Lesson) -> None:
    """Adds a value; see `learn_level` for the arguments."""
    own = unit_so_far(log_level, value)
    unit = own or 1.0
    after = learn(_statistics(log_level, value, unit), asinh(lesson.value / unit), lesson.weight, config.forget)
    log_level.count, log_level.mean, log_level.squares = after
    log_level.unit = own


def shift_log_level(state: Rows, offset: Array, few: float) -> None:
    """Moves all that was learned by an offset, shape (n,), and lets it count as few values."""
    unit = np.where(state["unit"] > 0, state["unit"], 1.0)
    state["mean"] = np.arcsinh(np.sinh(clamp(state["mean"], -_LARGEST_PLACE, _LARGEST_PLACE)) + offset / unit)
    shorten(state, few)
