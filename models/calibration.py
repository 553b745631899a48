"""Calibration of a statistic against the series' own history of it: how rare is a value so high *here*?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Rows

TAIL = 0.02
"""Share of the history that lies above the adaptive quantile, if nothing else is asked for."""

LEAST_TAIL_LOG = float(-np.log(TAIL))


class _Memo(NamedTuple):
    statistic: Array
    edge: Array
    shape: Array
    rate: Array


@dataclass(frozen=True)
class TailCalibration:
    """An adaptive quantile and, above it, exponential excesses with a gamma prior on their rate: a Lomax tail.

    The quantile follows the history by stochastic approximation; of excesses that lie far out only a bounded part is
    learned, so that one outlier does not numb the series.

    Args:
        edge: The quantile before any history.
        scale: Mean excess before any history.
        strength: Excesses that the prior is worth.
        forget: Share of the history forgotten a step.
        least: The quantile never falls below this share of ``edge``.
        tail: Share of the history that lies above the adaptive quantile.
        early: Of a history of n steps at least the share ``early / n`` is forgotten a step: what surprised while the
            series was still being learned says little of it.
        most: An excess is learned as one of at most this many mean excesses: few large ones must not hide the next.

    Sources: H. Robbins, S. Monro, A stochastic approximation method (1951); peaks over a threshold as in A. Siffer et
    al., Anomaly detection in streams with extreme value theory, KDD 2017, with the conjugate tail in place of the
    fitted one; Lomax as the gamma mixture of exponentials: K. S. Lomax, JASA 49 (1954).

    >>> calibration = TailCalibration(edge=3.912, scale=1.0)
    >>> state = calibration.new_state(1)
    >>> view = Rows(state, np.array([0]), "")
    >>> calibration.evidence(view, np.array([3.912]))[0].round(3)  # the edge itself: -ln 0.02
    array([3.912])
    >>> calibration.evidence(view, np.array([10.0]))[0].round(3)  # + 5 ln(1 + 6.088 / 5)
    array([7.894])
    """

    edge: float
    scale: float
    strength: float = 5.0
    forget: float = 1 / 5000
    least: float = 0.5
    tail: float = TAIL
    early: float = 0.0
    most: float = 3.0

    @cached_property
    def _cut(self) -> float:
        """The mean of exponential excesses so cut, in their mean."""
        return 1 - math.exp(-self.most)

    def new_state(self, n: int) -> Columns:
        """The columns for n series without history."""
        return {
            "edge": np.full(n, self.edge),
            "shape": np.full(n, self.strength),
            "rate": np.full(n, self.strength * self.scale),
            "count": np.zeros(n),
        }

    def evidence(self, state: Rows, statistic: Array) -> tuple[Array, _Memo]:
        """-ln of the chance of a statistic at least so high, at least 0; and what `learn` wants back.

        Args:
            state: The columns of this calibration.
            statistic: At least 0, shape (n,).
        """
        edge, shape, rate = state["edge"], state["shape"], state["rate"]
        excess = np.maximum(statistic - edge, 0.0)
        inside = np.minimum(statistic / edge, 1.0) * -np.log(self.tail)
        return inside + shape * np.log1p(excess / rate), _Memo(statistic, edge, shape, rate)

    @cached_property
    def _spread(self) -> float:
        """Sampling variance of the mean excess learned, in its square, by faded excess: what fades counts in part."""
        cut = math.exp(-self.most)
        of_one = (1 - 2 * self.most * cut - cut * cut) / (1 - cut) ** 2
        return of_one * (1 + self.early) / (1 + 2 * self.early)

    def rarity(self, memo: _Memo) -> Array:
        """-ln of the chance of a statistic at least so high, as often as it says so; `evidence` is more careful.

        As a gamma mixture of exponentials whose rate is as uncertain as the mean excess learned really is: of faded
        observations the effective number is (Σ w)² / Σ w², more than the sum of weights that `evidence` counts, and an
        excess that is cut off varies less.

        Args:
            memo: As from `evidence`.

        Source: L. Kish, Survey Sampling (1965), 8.2.

        >>> calibration = TailCalibration(edge=3.912, scale=1.0)
        >>> view = Rows(calibration.new_state(1), np.array([0]), "")
        >>> view["shape"], view["rate"] = np.array([25.0]), np.array([25.0])  # after twenty excesses with the mean 1
        >>> evidence, memo = calibration.evidence(view, np.array([10.0]))
        >>> evidence.round(3), calibration.rarity(memo).round(3)
        (array([9.361]), array([9.583]))
        """
        mean_excess = memo.rate / memo.shape
        learned = np.maximum(memo.shape - self.strength, 1e-9)
        known = memo.shape * memo.shape / (self._spread * learned)
        inside = np.minimum(memo.statistic / memo.edge, 1.0) * -np.log(self.tail)
        excess = np.maximum(memo.statistic - memo.edge, 0.0)
        rarity: Array = inside + known * np.log1p(excess / (mean_excess * known))
        return rarity

    def learn(self, state: Rows, memo: _Memo, valid: Flags) -> None:
        """Adds the statistic to the history where it is valid."""
        count = state["count"] + 1
        mean_excess = memo.rate / memo.shape
        above = memo.statistic > memo.edge
        pace = np.maximum(self.forget, 1 / (100 + count)) * mean_excess / self.tail
        edge = np.maximum(memo.edge + pace * (above - self.tail), self.least * self.edge)
        excess = np.minimum(memo.statistic - memo.edge, self.most * mean_excess) / self._cut
        forget = np.maximum(self.forget, self.early / (50 + count))
        keep, prior = 1 - forget, forget * self.strength
        shape = keep * memo.shape + prior + above
        rate = keep * memo.rate + prior * self.scale + np.where(above, excess, 0.0)
        state["count"] = np.where(valid, count, count - 1)
        state["edge"] = np.where(valid, edge, memo.edge)
        state["shape"] = np.where(valid, shape, memo.shape)
        state["rate"] = np.where(valid, rate, memo.rate)
