"""Record evidence: a value beyond all that was seen, by more than a little.

Of n exchangeable values, the next is a new high or low with the chance 2 / (n + 1). If the tail is exponential the
range is about ln n of its scales, so that a record that exceeds the range R by e has the chance 2 / n · n^(-e / R).

Source: B. C. Arnold, N. Balakrishnan, H. N. Nagaraja, Records (1998), chapter 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.kernels import kernel
from models.numbers.arrays import Columns
from models.records import Record

_LN2 = math.log(2.0)


class Range(NamedTuple):
    """The running minimum and maximum; both draw in slowly, so that a forgotten outlier loses its say."""

    low: float
    high: float


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known."""
    return {"low": np.zeros(n), "high": np.zeros(n)}


@kernel
def range_so_far(record: Record, value: float, seen: float) -> Range:
    """The range so far; of a new series the value itself."""
    return Range(record.low, record.high) if seen > 0 else Range(value, value)


@kernel
def record_evidence(config: DetectorConfig, lived: Range, value: float, seen: float, resolution: float) -> float:
    """-ln of the chance of such a record, or the part of it that counts; 0 if it is none.

    >>> from models.records import constants
    >>> config = constants(all=DetectorConfig(record_tolerance=0.08, record_most=3.0)).all
    >>> lived = Range(0.0, 10.0)
    >>> round(record_evidence(config, lived, 10.4, 1000.0, 1e-6), 3)  # half of ln 500 + 0.04 ln 1000
    3.245
    >>> round(record_evidence(config, lived, 15.0, 1000.0, 1e-6), 3)  # ln 500 + 0.5 ln 1000
    9.668
    """
    excess = max(value - lived.high, lived.low - value) / max(lived.high - lived.low, resolution)
    if excess <= 0:
        return 0.0
    logs = math.log(max(seen, 2.0))
    size = logs - _LN2 + min(excess, config.record_most) * logs
    return max(size, 0.0) * min(excess / config.record_tolerance, 1.0)


@kernel
def learn_record(
    config: DetectorConfig, record: Record, lived: Range, value: float, level: float, resolution: float
) -> None:
    """Draws the range in a little towards the level, and stretches it to the value, to twice its width at the most.

    A range that has no width yet is stretched half way.
    """
    low = lived.low + config.record_leak * max(level - lived.low, 0.0)
    high = lived.high - config.record_leak * max(lived.high - level, 0.0)
    width = high - low
    down, up = max(low - value, 0.0), max(value - high, 0.0)
    if width <= resolution:
        record.low, record.high = low - 0.5 * down, high + 0.5 * up
    else:
        record.low, record.high = low - min(down, width), high + min(up, width)
