"""How a replica begins beside what its workload was: most begin as their predecessors are, some need to warm up.

Where those before it began alike, a new replica goes on where they are, and is judged from its first value: a release
that is wrong from its start is news at once. Where they did not, as caches that fill up for an hour, it is learned like
any other new series.
"""

from __future__ import annotations

import numpy as np

from models.kernels import kernel, within
from models.numbers.arrays import SMALLEST, Array, Columns, Flags, Rows
from models.records import Record

FIRST = 8.0
"""Values of a replica that are its beginning."""

LEAST, MOST_APART, MOST_BIASED = 3.0, 0.25, 1.0
"""So many replicas must have begun after others before their beginnings say something; at most this share of them may
have begun otherwise, and all together by so many standard deviations of single values."""

_LARGEST = 1e38
"""What is kept in 32 bits is no larger."""

APART = 3.0
"""Standard deviations of single values from which on the mean of a beginning is otherwise; what is beyond counts so."""


def new_state(n: int) -> Columns:
    """The columns for n series: how many of the first values were met, and their mean.

    The number is -1 of what did not begin after others of its workload. ``worth``: how many values those of its
    predecessors are worth to a replica that goes on where they are; else 0.
    """
    small: Columns = {name: np.zeros(n, np.float32) for name in ("mean", "worth")}
    return small | {"count": np.full(n, -1.0, np.float32)}


def begin(birth: Rows) -> None:
    """Says that series begin after others of their workload."""
    birth["count"] = np.zeros(len(birth.rows))


@kernel
def learn_birth(birth: Record, value: float) -> None:
    """Adds a value, if it is one of the first of a series that began after others."""
    if 0 <= birth.count < FIRST:
        birth.count += 1.0
        birth.mean += (within(value, -_LARGEST, _LARGEST) - birth.mean) / birth.count


@kernel
def values_known(birth: Record, seen: float, learning: float) -> float:
    """How many values of its own a series has had, and what its predecessors' are worth, on which its bands rest.

    A replica that goes on counts as one after so many values as are learned from; these are none of its own.

    Args:
        birth: The columns.
        seen: Values learned so far, with those.
        learning: How many a series learns from before it is judged.
    """
    return seen if birth.worth == 0 else max(seen - learning, 0.0) + birth.worth


def has_begun(birth: Rows) -> Flags:
    """Which series say how replicas begin: those that have begun, after others of which something was known."""
    return np.asarray(birth["count"] >= FIRST)


def offset(birth: Rows, expected: Array, spread: Array) -> Array:
    """How far each series began from what was expected, in standard deviations of single values, clipped.

    Args:
        birth: The columns.
        expected: The mean with which it began, shape (n,).
        spread: Standard deviation of single values, shape (n,).
    """
    away = birth["mean"].astype(np.float64) - np.clip(expected, -_LARGEST, _LARGEST)
    return np.asarray(np.clip(away / np.maximum(spread, SMALLEST), -APART, APART))
