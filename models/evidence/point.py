"""Point evidence: how rare is this one value, for this series?"""

from __future__ import annotations

import math

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Array
from models.numbers.calibration import LEAST_TAIL_LOG, TailCalibration

_KNEE, _SLOPE = 20.0, 10.0


def compress(surprise: Array) -> Array:
    """Surprise in nats, from 20 on logarithmic: a value 1000 scales out is rarer than one 100 out, but not tenfold.

    >>> compress(np.array([5.0, 20.0, 1e6])).round(1)
    array([  5. ,  20. , 135.1])
    """
    return np.minimum(surprise, _KNEE) + _SLOPE * np.log1p(np.maximum(surprise - _KNEE, 0.0) / _SLOPE)


@kernel
def compressed(surprise: float) -> float:
    """`compress` of one surprise.

    >>> compressed(5.0), round(compressed(1e6), 1)
    (5.0, 135.1)
    """
    return surprise if surprise <= _KNEE else _KNEE + _SLOPE * math.log1p((surprise - _KNEE) / _SLOPE)


def nats_calibration(forget: float) -> TailCalibration:
    """Calibration of any surprise in nats: before any history, that of a right model is assumed, which is Exp(1)."""
    return TailCalibration(edge=LEAST_TAIL_LOG, scale=1.0, forget=forget)


def series_calibration(forget: float, tail: float, strength: float, early: float) -> TailCalibration:
    """The same for one metric, whose surprises while it is being learned are soon forgotten.

    >>> series_calibration(1 / 5000, 0.012, 3.0, 1.2).edge.__round__(3)
    4.423
    """
    edge = float(-np.log(tail))
    return TailCalibration(edge, 1.0, strength, forget, least=0.6, tail=tail, early=early)
