"""The challenger: a level of its own since the onset of an incident, against the incumbent that expected otherwise."""

from __future__ import annotations

import math
from typing import NamedTuple

from models.kernels import kernel

_DOF = 4.0
_PRIOR = 4.0
"""Values that the prior belief in the incumbent's spread is worth."""


class Challenger(NamedTuple):
    """Statistics of where values lie from what the incumbent expects, since the onset.

    Args:
        number: Values.
        mean: Their mean.
        squares: Their sum of squared deviations from it.
        latest: Exponentially weighted mean of them.
    """

    number: float
    mean: float
    squares: float
    latest: float


@kernel
def heavy(z: float) -> float:
    """Log density of a standard Student-t with 4 degrees of freedom, but for its constant.

    >>> round(heavy(2.0), 3)
    -1.733
    """
    return -0.5 * (_DOF + 1) * math.log1p(z * z / _DOF)


@kernel
def challenge(challenger: Challenger, off: float, scale: float) -> float:
    """Log density of the next value, as `heavy` for the incumbent: a Student-t about the mean so far.

    Args:
        challenger: What is known of it.
        off: Where the value lies from what the incumbent expects.
        scale: The incumbent's.

    >>> round(challenge(Challenger(4.0, 3.0, 4.0, 3.0), 3.0, 1.0), 3)  # s² = 8 / 8 · 5 / 4
    -0.112
    """
    spread = math.sqrt((_PRIOR * scale * scale + challenger.squares) / (_PRIOR + challenger.number))
    spread *= math.sqrt(1 + 1 / max(challenger.number, 0.5))
    return heavy((off - challenger.mean) / spread) - math.log(spread / scale)


@kernel
def learn_off(challenger: Challenger, off: float, pace: float) -> Challenger:
    """The statistics after one more value; ``pace``: its weight in the mean of the latest ones.

    >>> learn_off(learn_off(challenger_of(1.0), 3.0, 0.5), 2.0, 0.5)
    Challenger(number=3.0, mean=2.0, squares=2.0, latest=2.0)
    """
    count = challenger.number + 1
    delta = off - challenger.mean
    return Challenger(
        count,
        challenger.mean + delta / count,
        challenger.squares + delta * delta * (1 - 1 / count),
        challenger.latest + pace * (off - challenger.latest),
    )


@kernel
def challenger_of(off: float) -> Challenger:
    """The statistics of a single value."""
    return Challenger(1.0, off, 0.0, off)
