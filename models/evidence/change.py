"""Change evidence: how rare is the step from the value before, given where values are expected?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import SMALLEST, Array, Columns, Flags, Rows, clamp
from models.experts.level import SHAPE, vague
from models.families.normal_inverse_gamma import Prior
from models.families.student_t import StudentT

_REACH = 8.0
"""A step of more scales than this is learned as one of so many."""


class _Memo(NamedTuple):
    deviation: Array
    before: Array
    innovation: Array
    scale: Array
    seen: Array


@dataclass(frozen=True)
class Change:
    """A first-order autoregression of the deviations from what is typical; its innovations follow a Student-t.

    It is evidence of its own, not an expert: in the mixture it would make any lasting shift unsurprising at once.

    Args:
        forget: Share of the statistics forgotten a step.

    Source: M. West, J. Harrison, Bayesian Forecasting and Dynamic Models (1997), chapter 9.

    >>> change, rows = Change(1 / 8000), np.array([0])
    >>> state, one = change.new_state(1), np.ones(1)
    >>> for step, deviation in enumerate([0.0, 1.0, 0.8, 1.1, 0.9, 1.0, 1.2, 0.9]):
    ...     view = Rows(state, rows, "")
    ...     surprise, memo = change.surprise(view, deviation * one, one, step * one, 1e-6 * one)
    ...     change.learn(view, memo, one > 0)
    >>> change.surprise(view, 1.0 * one, one, 8 * one, 1e-6 * one)[0].round(1)
    array([0.2])
    >>> change.surprise(view, -4.0 * one, one, 8 * one, 1e-6 * one)[0].round(1)
    array([10.8])
    """

    forget: float

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        return {name: np.zeros(n) for name in ("before", "cross", "power", "count", "squares")}

    def surprise(self, state: Rows, deviation: Array, size: Array, seen: Array, floor: Array) -> tuple[Array, _Memo]:
        """-ln of the two-sided tail probability of the innovation; and what `learn` wants back.

        Args:
            state: The columns of this evidence.
            deviation: Of the value from what is typical, shape (n,).
            size: Magnitude of the values, shape (n,).
            seen: Values learned so far, shape (n,).
            floor: Smallest scale, shape (n,).
        """
        before, power, count = state["before"], state["power"], state["count"]
        phi = clamp(state["cross"] / np.maximum(power, SMALLEST), 0.0, 1.0)
        innovation = deviation - phi * before
        prior: Prior = vague(np.zeros_like(before), size, seen)
        shape = SHAPE + 0.5 * count
        rate = SHAPE * prior.variance + 0.5 * state["squares"]
        scale = np.maximum(np.sqrt(rate / shape * (1 + 1 / np.maximum(count, 0.5))), floor)
        below, above = StudentT(np.zeros_like(scale), scale, 2 * shape).log_tails(innovation)
        rarity = np.maximum(-np.log(2.0) - np.minimum(below, above), 0.0)
        return rarity, _Memo(deviation, before, innovation, scale, seen)

    def learn(self, state: Rows, memo: _Memo, valid: Flags) -> None:
        """Adds the step, brought within reach, where it is valid."""
        reach = _REACH * memo.scale
        deviation = clamp(memo.deviation, -reach - np.abs(memo.before), reach + np.abs(memo.before))
        innovation = clamp(memo.innovation, -reach, reach)
        keep = (1 - self.forget) * np.ones_like(deviation)
        linked = (memo.seen > 0).astype(np.float64)
        after = {
            "cross": keep * state["cross"] + linked * deviation * memo.before,
            "power": keep * state["power"] + linked * memo.before * memo.before,
            "count": keep * state["count"] + linked,
            "squares": keep * state["squares"] + linked * innovation * innovation,
            "before": deviation,
        }
        for name, column in after.items():
            state[name] = np.where(valid, column, state[name])
