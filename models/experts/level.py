"""The slow level: the value is around where it has been for thousands of steps."""

from __future__ import annotations

import numpy as np

from models.arrays import SMALLEST, Array, Columns, Rows
from models.experts.base import Expert, Lesson, Step
from models.families.base import Predictive
from models.families.normal_inverse_gamma import NormalInverseGamma, Prior
from models.families.student_t import StudentT

FADE = 0.25
"""Before anything is known, a value varies by about this share of itself; the belief fades with each value seen."""

SHAPE = 0.5
"""Half the observations that the prior variance is worth."""


def vague(mean: Array, typical_size: Array, seen: Array) -> Prior:
    """The prior of a level: nothing about the mean, and a spread in proportion to the size, soon outweighed.

    Args:
        mean: Centre, so that the prior pulls nowhere, shape (n,).
        typical_size: Magnitude of the values, shape (n,).
        seen: Values learned so far, shape (n,).
    """
    spread = np.maximum(FADE * typical_size / (1 + seen), SMALLEST)
    return Prior(mean, 0.0, SHAPE, spread * spread)


class Level(Expert):
    """Normal-inverse-gamma with slow forgetting, on the raw value.

    Args:
        forget: Share of the statistics forgotten a step.
        hurry: Share forgotten a step when the old level is over.

    >>> expert, rows = Level(1 / 6000, 0.02), np.array([0])
    >>> state = expert.new_state(1)
    >>> one, none = np.ones(1), np.zeros(1)
    >>> for value in (10.0, 12.0, 11.0):
    ...     view = Rows(state, rows, "")
    ...     step = Step(value * one, state["count"], rows, none, 1e-6 * one)
    ...     t, memo = expert.predict(view, step, None)
    ...     expert.learn(view, step, Lesson(step.value, one, none), memo)
    >>> state["mean"].round(3)
    array([11.])
    """

    name = "level"

    def __init__(self, forget: float, hurry: float) -> None:
        self.forget, self.hurry = forget, hurry

    def new_state(self, n: int) -> Columns:
        """See `Expert`."""
        return {"count": np.zeros(n), "mean": np.zeros(n), "squares": np.zeros(n)}

    def predict(self, state: Rows, step: Step, level: Predictive | None) -> tuple[StudentT, NormalInverseGamma]:
        """See `Expert`."""
        count = state["count"]
        mean = np.where(count > 0, state["mean"], step.value)
        known = NormalInverseGamma(count, mean, state["squares"])
        prior = vague(mean, np.abs(mean), step.seen)
        if step.peers:
            prior = step.peers.where(step.peers.variance > 0, prior)
        return known.predictive(prior, step.resolution), known

    def learn(self, state: Rows, step: Step, lesson: Lesson, memo: NormalInverseGamma) -> None:
        """See `Expert`."""
        after = memo.learn(lesson.value, lesson.weight, self.forget + self.hurry * lesson.haste)
        state["count"], state["mean"], state["squares"] = after.count, after.mean, after.squares

    def shift(self, state: Rows, offset: Array, few: float) -> None:
        """See `Expert`."""
        state["mean"] = state["mean"] + offset
        shorten(state, few)


def shorten(state: Rows, few: float) -> None:
    """Lets what is known count as few values at the most; the variance stays."""
    count = state["count"].astype(np.float64)  # the smallest divisor is 0 in 32 bits
    after = np.minimum(count, few)
    state["squares"] = state["squares"] * (after / np.maximum(count, SMALLEST))
    state["count"] = after
