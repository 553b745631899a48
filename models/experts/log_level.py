"""The slow level on a logarithm-like axis: values vary in proportion to their size, or have a long upper tail."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import SMALLEST, Array, Columns, Rows, clamp
from models.experts.base import Expert, Lesson, Step
from models.experts.level import shorten, vague
from models.families.base import Predictive
from models.families.log_like import LogLike
from models.families.normal_inverse_gamma import NormalInverseGamma, Prior


class _Memo(NamedTuple):
    known: NormalInverseGamma
    unit: Array


def unit_of(value: Array) -> Array:
    """An eighth of the magnitude of a value, as a power of two; 0 for (next to) nothing.

    >>> unit_of(np.array([100.0, -0.5, 0.0]))
    array([16.   ,  0.125,  0.   ])
    """
    _, exponent = np.frexp(value)
    return np.where(np.abs(value) < SMALLEST, 0.0, np.ldexp(1.0, exponent - 3))


class LogLevel(Expert):
    """Normal-inverse-gamma with slow forgetting, on asinh(value / unit).

    The unit is an eighth of the first value that is not 0, so that it makes no difference whether a latency is in
    seconds or in milliseconds.

    Args:
        forget: Share of the statistics forgotten a step.
        hurry: Share forgotten a step when the old level is over.
    """

    name = "log_level"

    def __init__(self, forget: float, hurry: float) -> None:
        self.forget, self.hurry = forget, hurry

    def new_state(self, n: int) -> Columns:
        """See `Expert`."""
        return {"count": np.zeros(n), "mean": np.zeros(n), "squares": np.zeros(n), "unit": np.zeros(n)}

    def predict(self, state: Rows, step: Step, level: Predictive | None) -> tuple[LogLike, _Memo]:
        """See `Expert`."""
        unit = state["unit"]
        unit = np.where(unit > 0, unit, unit_of(step.value))
        safe = np.where(unit > 0, unit, 1.0)
        count = state["count"]
        mean = np.where(count > 0, state["mean"], np.arcsinh(step.value / safe))
        known = NormalInverseGamma(count, mean, state["squares"])
        floor = step.resolution / (safe * np.cosh(np.minimum(np.abs(mean), 300.0)))
        prior = vague(mean, np.minimum(np.abs(mean), 1.0), step.seen)
        if step.peers:
            prior = _on_axis(step.peers, safe).where(step.peers.variance > 0, prior)
        inner = known.predictive(prior, np.maximum(floor, 1e-9))
        return LogLike(inner, safe), _Memo(known, unit)

    def learn(self, state: Rows, step: Step, lesson: Lesson, memo: _Memo) -> None:
        """See `Expert`."""
        value = np.arcsinh(lesson.value / np.where(memo.unit > 0, memo.unit, 1.0))
        after = memo.known.learn(value, lesson.weight, self.forget + self.hurry * lesson.haste)
        state["count"], state["mean"], state["squares"] = after.count, after.mean, after.squares
        state["unit"] = memo.unit

    def shift(self, state: Rows, offset: Array, few: float) -> None:
        """See `Expert`."""
        unit = np.where(state["unit"] > 0, state["unit"], 1.0)
        state["mean"] = np.arcsinh(np.sinh(clamp(state["mean"], -300.0, 300.0)) + offset / unit)
        shorten(state, few)


def _on_axis(prior: Prior, unit: Array) -> Prior:
    """A prior of the raw level on the logarithm-like axis; its variances by the slope at its mean."""
    slope = 1 / np.hypot(prior.mean, unit)
    return Prior(np.arcsinh(prior.mean / unit), prior.strength, prior.shape, prior.variance * slope * slope)
