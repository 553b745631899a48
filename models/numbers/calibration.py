"""Calibration of a statistic against the series' own history of it: how rare is a value so high *here*?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Array, Columns, Flags, Rows
from models.records import Record

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
        forget: Share of the history forgotten per step.
        least: The quantile never falls below this share of ``edge``.
        tail: Share of the history that lies above the adaptive quantile.
        early: Of a history of n steps at least the share ``early / n`` is forgotten per step: what surprised while the
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
    def nats(self) -> float:
        """-ln of the share above the adaptive quantile."""
        return -math.log(self.tail)

    @cached_property
    def kept(self) -> float:
        """The mean of exponential excesses that are cut at ``most``, in their mean."""
        return 1 - math.exp(-self.most)

    def new_state(self, n: int) -> Columns:
        """The columns for n series without history."""
        begin = {"edge": self.edge, "shape": self.strength, "rate": self.strength * self.scale, "count": 0.0}
        return {name: np.full(n, value, np.float32) for name, value in begin.items()}

    def evidence(self, state: Rows, statistic: Array) -> tuple[Array, _Memo]:
        """-ln of the chance of a statistic at least so high, at least 0; and what `learn` wants back.

        Args:
            state: The columns of this calibration.
            statistic: At least 0, shape (n,).
        """
        edge, shape, rate = (state[name].astype(np.float64) for name in ("edge", "shape", "rate"))
        excess = np.maximum(statistic - edge, 0.0)
        inside = np.minimum(statistic / edge, 1.0) * self.nats
        return inside + shape * np.log1p(excess / rate), _Memo(statistic, edge, shape, rate)

    @cached_property
    def spread(self) -> float:
        """Sampling variance of the mean excess learned, in its square, by faded excess: what fades counts in part."""
        cut = math.exp(-self.most)
        of_one = (1 - 2 * self.most * cut - cut * cut) / (1 - cut) ** 2
        return of_one * (1 + self.early) / (1 + 2 * self.early)

    def learn(self, state: Rows, memo: _Memo, valid: Flags) -> None:
        """Adds the statistic to the history where it is valid."""
        count = state["count"].astype(np.float64) + 1
        mean_excess = memo.rate / memo.shape
        above = memo.statistic > memo.edge
        pace = np.maximum(self.forget, 1 / (100 + count)) * mean_excess / self.tail
        edge = np.maximum(memo.edge + pace * (above - self.tail), self.least * self.edge)
        excess = np.minimum(memo.statistic - memo.edge, self.most * mean_excess) / self.kept
        forget = np.maximum(self.forget, self.early / (50 + count))
        keep, prior = 1 - forget, forget * self.strength
        shape = keep * memo.shape + prior + above
        rate = keep * memo.rate + prior * self.scale + np.where(above, excess, 0.0)
        state["count"] = np.where(valid, count, count - 1)
        state["edge"] = np.where(valid, edge, memo.edge)
        state["shape"] = np.where(valid, shape, memo.shape)
        state["rate"] = np.where(valid, rate, memo.rate)


@kernel
def tail_evidence(config: TailCalibration, tail: Record, statistic: float) -> float:
    """-ln of the chance of a statistic at least so high, at least 0; as `TailCalibration.evidence` of one series.

    Args:
        config: The constants.
        tail: The columns of this calibration.
        statistic: At least 0.
    """
    edge, shape, rate = float(tail.edge), float(tail.shape), float(tail.rate)
    if statistic <= edge:
        return statistic / edge * config.nats
    return config.nats + shape * math.log1p((statistic - edge) / rate)


@kernel
def tail_rarity(config: TailCalibration, tail: Record, statistic: float) -> float:
    """-ln of the chance of a statistic at least so high, as often as it says so; `tail_evidence` is more careful.

    As a gamma mixture of exponentials whose rate is as uncertain as the mean excess learned really is: of faded
    observations the effective number is (Σ w)² / Σ w², more than the sum of weights that `tail_evidence` counts, and
    an excess that is cut off varies less.

    Args:
        config: The constants.
        tail: The columns of this calibration.
        statistic: At least 0.

    Source: L. Kish, Survey Sampling (1965), 8.2.

    >>> from models.records import constants, record_of
    >>> config = TailCalibration(edge=3.912, scale=1.0)
    >>> given, tail = constants(all=config).all, record_of(config.new_state(1))
    >>> tail.shape, tail.rate = 25.0, 25.0  # after twenty excesses with the mean 1
    >>> round(tail_evidence(given, tail, 10.0), 3), round(tail_rarity(given, tail, 10.0), 3)
    (9.361, 9.583)
    """
    edge, shape, rate = float(tail.edge), float(tail.shape), float(tail.rate)
    if statistic <= edge:
        return statistic / edge * config.nats
    worth = shape * shape / (config.spread * max(shape - config.strength, 1e-9))
    return config.nats + worth * math.log1p((statistic - edge) / (rate / shape * worth))


@kernel
def learn_tail(config: TailCalibration, tail: Record, statistic: float) -> None:
    """Adds the statistic to the history, as `TailCalibration.learn` of one series."""
    edge, shape, rate, count = float(tail.edge), float(tail.shape), float(tail.rate), tail.count + 1.0
    mean_excess = rate / shape
    above = statistic > edge
    pace = max(config.forget, 1 / (100 + count)) * mean_excess / config.tail
    forget = max(config.forget, config.early / (50 + count))
    keep, prior = 1 - forget, forget * config.strength
    excess = min(statistic - edge, config.most * mean_excess) / config.kept
    tail.count = count
    tail.edge = max(edge + pace * ((1.0 if above else 0.0) - config.tail), config.least * config.edge)
    tail.shape = keep * shape + prior + (1.0 if above else 0.0)
    tail.rate = keep * rate + prior * config.scale + (excess if above else 0.0)
