"""One number from several channels, and its place on the scale from 0 to 100."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Array, log_sum_exp


def combine(channels: Sequence[Array]) -> Array:
    """-ln of the harmonic mean of the channels' probabilities: valid however the channels depend on one another.

    Args:
        channels: Evidence of each, -ln p ≥ 0, shape (n,).

    Source: D. J. Wilson, The harmonic mean p-value for combining dependent tests, PNAS 116 (2019).

    >>> combine([np.array([12.0]), np.array([0.0]), np.array([3.0])]).round(2)
    array([10.9])
    """
    result: Array = np.maximum(log_sum_exp(np.array(channels)) - np.log(float(len(channels))), 0.0)
    return result


@kernel
def combine_two(one: float, other: float) -> float:
    """`combine` of two channels.

    >>> round(combine_two(12.0, 0.0), 4)  # 12 - ln 2
    11.3069
    """
    top = max(one, other)
    return max(top + math.log(math.exp(one - top) + math.exp(other - top)) - math.log(2.0), 0.0)


@kernel
def weigh(point: float, change: float, window: float, record: float) -> float:
    """Weight of evidence: the stronger one of point and change, which tell of the same value, and what comes on top.

    It ranks, and is no probability, for which see `combine`: channels that agree count more here than the strongest.

    Args:
        point: Each channel in nats, times what a nat of it counts.
        change: See ``point``.
        window: See ``point``.
        record: See ``point``.

    Source: I. J. Good, Probability and the weighing of evidence (1950).

    >>> weigh(5.0, 3.0, 2.0, 0.0)
    7.0
    """
    return max(point, change) + window + record


@kernel
def scored(evidence: float, half: float) -> float:
    """`score` of one piece of evidence.

    >>> scored(8.0, 8.0)
    50.0
    """
    return 100.0 * (evidence / (evidence + half))


@kernel
def is_alarm(score: float, bar: float) -> bool:
    """Whether a `record_score` of a value, an incident or a machine is reported: it is if it reaches the bar.

    The bar of a value follows its clock and the false alarms that are wanted: `models.series.alarm.bar`. That of a
    machine, of its unrest too, is ``detector.threshold``.

    >>> is_alarm(50.0, 50.0), is_alarm(49.9, 50.0), is_alarm(math.nan, 50.0)
    (True, False, False)
    """
    return score >= bar


def score(evidence: Array, half: float) -> Array:
    """Evidence on the scale of `record_score`: 0 at none, 50 at ``half`` nats, 100 never quite.

    >>> score(np.array([0.0, 8.0, 72.0]), 8.0)
    array([ 0., 50., 90.])
    """
    return 100.0 * (evidence / (evidence + half))


def worth(points: Array, factor: Array) -> Array:
    """A `score` whose evidence counts so many times.

    >>> worth(np.array([0.0, 50.0, 90.0]), np.array([0.5, 0.5, 2.0])).round(1)
    array([ 0. , 33.3, 94.7])
    """
    weighed = factor * points
    return 100.0 * weighed / (weighed + 100.0 - points)
