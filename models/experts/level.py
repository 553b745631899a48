"""The slow level: the value is around where it has been for thousands of steps."""

from __future__ import annotations

import numpy as np

from models.config import DetectorConfig
from models.experts.base import Lesson, Step
from models.families.normal_inverse_gamma import Prior, Statistics, learn, predictive
from models.families.student_t import StudentT
from models.kernels import kernel
from models.numbers.arrays import SMALLEST, Array, Columns, Rows
from models.records import Record

FADE = 0.25
"""Before anything is known, a value varies by about this share of itself; the belief fades with each value seen."""

SHAPE = 0.5
"""Half the observations that the prior variance is worth."""


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known."""
    return {"count": np.zeros(n, np.float32), "mean": np.zeros(n), "squares": np.zeros(n)}


@kernel
def vague(mean: float, size: float, seen: float) -> Prior:
    """The prior of a level: nothing about the mean, and a spread in proportion to the size, soon outweighed.

    Args:
        mean: Centre, so that the prior pulls nowhere.
        size: Typical magnitude of the values.
        seen: Values learned so far.
    """
    spread = max(FADE * size / (1 + seen), SMALLEST)
    return Prior(mean, 0.0, SHAPE, spread * spread)


@kernel
def level_statistics(level: Record, value: float) -> Statistics:
    """What is known of a level; before anything is, the value lies at its centre."""
    return Statistics(float(level.count), level.mean if level.count > 0 else value, level.squares)


@kernel
def predict_level(level: Record, step: Step, peers: Prior) -> StudentT:
    """The level's view of the next value, by normal-inverse-gamma with slow forgetting.

    Args:
        level: The columns of the level.
        step: The value, and what is known of it.
        peers: What the same metric of other machines lets expect.
    """
    statistics = level_statistics(level, step.value)
    prior = peers if peers.variance > 0 else vague(statistics.mean, abs(statistics.mean), step.seen)
    return predictive(statistics, prior, step.resolution, 0.0)


@kernel
def learn_level(config: DetectorConfig, level: Record, value: float, lesson: Lesson) -> None:
    """Adds a value.

    Args:
        config: The constants.
        level: The columns; changed.
        value: The value as it was.
        lesson: What is to be learned of it.
    """
    after = learn(level_statistics(level, value), lesson.value, lesson.weight, config.forget)
    level.count, level.mean, level.squares = after


def shift_level(state: Rows, offset: Array, few: float) -> None:
    """Moves all that was learned by an offset, shape (n,), and lets it count as few values."""
    state["mean"] = state["mean"] + offset
    shorten(state, few)


def shorten(state: Rows, few: float) -> None:
    """Lets what is known count as few values at the most; the variance stays."""
    count = state["count"].astype(np.float64)  # the smallest divisor is 0 in 32 bits
    after = np.minimum(count, few)
    state["squares"] = state["squares"] * (after / np.maximum(count, SMALLEST))
    state["count"] = after
