"""The windows of machines of one role, and what is said of them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from models.numbers.arrays import Array, Flags, Ints
from models.records import record_type


class Outcome(IntEnum):
    """What a window says of a series beside its peers; `ALONE`: it has had too few of them for long."""

    BEGINS = 1
    GROWS = 2
    BACK = 3
    ACCEPTED = 4
    ALONE = 5


EVENT = record_type(
    [
        *((name, np.int64) for name in ("place", "outcome", "since", "peers", "early")),
        *((name, np.float64) for name in ("nats", "score", "theirs", "expected", "lower", "upper", "values")),
    ]
)
"""What is said of a window: its place among those judged, `Outcome`, onset, how many peers, whether it was unlike them
from its start; nats, record_score, the median of the peers' values, the value that its usual distance from it lets
expect, a band around that, and how many distances that was learned from."""


class Window(NamedTuple):
    """One of `Members`."""

    start: int
    end: int
    value: float
    clock: float


class Seen(NamedTuple):
    """A value beside those of its peers: its place among all, how many peers, their median, and the distance from it.

    The last three are on the scale of distances, whose unit is ``scale``; ``smooth`` is the mean distance of the last
    windows from the usual one in standard deviations, and ``edge`` what few of them exceed.
    """

    place: int
    peers: int
    median: float
    distance: float
    scale: float
    smooth: float
    edge: float


class Members(NamedTuple):
    """Windows of members of roles, ordered by end, then role; all arrays have shape (n,).

    Args:
        rows: Row of each series in the state.
        cell: Number of the end, role and metric of each, ascending.
        start: First instant of the window, epoch milliseconds.
        end: Its end.
        value: The value, finite.
        clock: Usual milliseconds between two values; 0: not known. It counts after six hours of compared windows.
        taught: Whether it may be learned from.
    """

    rows: Ints
    cell: Ints
    start: Ints
    end: Ints
    value: Array
    clock: Array
    taught: Flags
