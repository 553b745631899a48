"""The challenger: a level of its own since the onset of an incident, against the incumbent that expected otherwise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Flags

_DOF = 4.0
_PRIOR = 4.0
"""Values that the prior belief in the incumbent's spread is worth."""


def heavy(z: Array) -> Array:
    """Log density of a standard Student-t with 4 degrees of freedom, but for its constant.

    >>> heavy(np.array([0.0, 2.0])).round(3)
    array([-0.   , -1.733])
    """
    result: Array = -0.5 * (_DOF + 1) * np.log1p(z * z / _DOF)
    return result


class Challenger(NamedTuple):
    """Statistics of where values lie from what the incumbent expects, since the onset; all of shape (n,).

    Args:
        number: Values.
        mean: Their mean.
        squares: Their sum of squared deviations from it.
        latest: Exponentially weighted mean of them.
    """

    number: Array
    mean: Array
    squares: Array
    latest: Array

    def log_density(self, off: Array, scale: Array) -> Array:
        """Of the next value, as of `heavy` for the incumbent: a Student-t about the mean so far.

        Args:
            off: Where the value lies from what the incumbent expects, shape (n,).
            scale: The incumbent's, shape (n,).

        >>> one = np.ones(1)
        >>> Challenger(4 * one, 3 * one, 4 * one, 3 * one).log_density(3 * one, one).round(3)  # s² = 8 / 8 · 5 / 4
        array([-0.112])
        """
        spread = self.spread(scale) * np.sqrt(1 + 1 / np.maximum(self.number, 0.5))
        return heavy((off - self.mean) / spread) - np.log(spread / scale)

    def spread(self, scale: Array) -> Array:
        """Standard deviation about the mean, shape (n,)."""
        result: Array = np.sqrt((_PRIOR * scale * scale + self.squares) / (_PRIOR + self.number))
        return result

    def learn(self, off: Array, pace: float, fresh: Flags) -> Challenger:
        """The statistics after one more value each; where ``fresh``, after this one only."""
        count = np.where(fresh, 0.0, self.number) + 1
        before = np.where(fresh, off, self.mean)
        delta = off - before
        latest = np.where(fresh, off, self.latest)
        return Challenger(
            count,
            before + delta / count,
            np.where(fresh, 0.0, self.squares) + delta * delta * (1 - 1 / count),
            latest + pace * (off - latest),
        )
