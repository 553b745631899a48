"""How surprising a mean of pieces of evidence is."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from models.kernels import kernel
from models.numbers.arrays import Array
from models.numbers.normal import beyond, log_beyond


def mean_surprise(mean: Array, pieces: Array | float) -> Array:
    """-ln of the chance that the mean of independent Exp(1) pieces is at least ``mean``.

    The mean of k such pieces has the distribution Gamma(k, 1/k), whose cube root is close to normal.

    Args:
        mean: At least 0, shape (n,).
        pieces: How many pieces k, at least 1.

    Source: E. B. Wilson, M. M. Hilferty, The distribution of chi-square, PNAS 17 (1931).

    >>> mean_surprise(np.array([1.0, 2.0, 3.0]), 10.0).round(2)  # exact: 0.78, 5.3, 11.86
    array([ 0.78,  5.29, 11.68])
    """
    spread = 1 / (9 * pieces)
    return -log_ndtr((1 - spread - np.cbrt(mean)) / np.sqrt(spread))


@kernel
def mean_surprise_of(mean: float, pieces: float) -> float:
    """`mean_surprise` of one mean, to the 0.0033 of `log_beyond`.

    >>> round(mean_surprise_of(1.0, 10.0), 2), round(mean_surprise_of(2.0, 10.0), 2)
    (0.78, 5.28)
    """
    spread = 1 / (9 * pieces)
    z = (np.cbrt(mean) - 1 + spread) / math.sqrt(spread)
    return -log_beyond(z * z) if z > 0 else -math.log(1 - beyond(z * z))
