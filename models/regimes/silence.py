"""Silence: a window that was expected did not come. For series and for machines; no clock, instants are given."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.evidence.repeats import NEVER
from models.kernels import kernel, within
from models.numbers.arrays import Columns
from models.records import Record

NEVER_DUE = int(np.iinfo(np.int64).max)
"""The far future."""

_VOTES = 30.0
_TAUGHT = 4.0
"""What is missing counts as at most so many times what is announced, so that one outage does not hide the next."""


@dataclass(frozen=True)
class Silence:
    """The usual time between two windows, and how rare it is that windows are missing, and stay so.

    The usual time is the one that has the majority (Boyer and Moore): what reports at irregular times has none, and is
    never missed. A window is missing after one that came with chance q₀, after one that was missing with chance q₁, a
    two-state Markov chain with beta priors: k missing windows in a row are -ln q₀ - (k - 1) ln q₁ nats of evidence.

    Args:
        majority: Votes for the usual time, less those against it, from which on it is known.
        forget: Share of what was counted that is forgotten per window.
        bar: Evidence in nats at which a silence is announced.

    Sources: R. S. Boyer, J. S. Moore, MJRTY: a fast majority vote algorithm (1991); E. N. Gilbert, Capacity of a
    burst-noise channel, Bell System Technical Journal 39 (1960).

    >>> from models.records import constants, record_of
    >>> silence = Silence(majority=10.0, forget=1 / 5000, bar=10.0)
    >>> given, heard = constants(all=silence).all, record_of(silence.new_state(1))
    >>> for minute in range(100):
    ...     learn_silence(given, heard, minute * 60_000, False)
    >>> (due(given, heard) - 99 * 60_000) / 60_000  # minutes after the last window
    5.0
    """

    majority: float
    forget: float
    bar: float

    def new_state(self, n: int) -> Columns:
        """The columns for n subjects that were never heard of."""
        counts = {name: np.zeros(n, np.float32) for name in ("votes", "came", "runs", "missed")}
        times = {"last": np.full(n, NEVER, np.int64), "usual": np.zeros(n, np.int64)}
        return {**counts, **times, "told": np.zeros(n, np.bool_)}


@kernel
def _chances(heard: Record) -> tuple[float, float]:
    """How rare it is that a window is missing after one that came, and after one that was missing."""
    came, runs, missed = float(heard.came), float(heard.runs), float(heard.missed)
    return (0.5 + runs) / (50.5 + came + runs), within((1 + max(missed - runs, 0.0)) / (3 + missed), 1e-3, 0.999)


@kernel
def _more(silence: Silence, first: float, again: float) -> int:
    """How many windows after the first missing one must be missing, too, before a silence is announced."""
    return math.ceil(max(silence.bar + math.log(first), 0.0) / -math.log(again))


@kernel
def due(silence: Silence, heard: Record) -> int:
    """The end of the window with which a silence since the last window is announced; `NEVER_DUE`: never.

    Args:
        silence: The constants.
        heard: The columns of a series or machine.
    """
    if heard.votes < silence.majority or heard.usual <= 0 or heard.told:
        return NEVER_DUE
    first, again = _chances(heard)
    return heard.last + heard.usual * (1 + _more(silence, first, again))


@kernel
def nats_of_silence(silence: Silence, heard: Record) -> float:
    """Evidence of the silence at the window at which it is announced; see `due` for the arguments."""
    first, again = _chances(heard)
    return -math.log(first) - _more(silence, first, again) * math.log(again)


@kernel
def missing(heard: Record) -> int:
    """The end of the first window that did not come."""
    return heard.last + heard.usual


@kernel
def learn_silence(silence: Silence, heard: Record, time: int, excused: bool) -> None:
    """Counts a window that came.

    Args:
        silence: The constants.
        heard: The columns; changed.
        time: Its end, epoch milliseconds; not after the last one: nothing is counted.
        excused: Whether what is missing before it says nothing.
    """
    if time <= heard.last:
        return
    gap = time - heard.last if heard.last != NEVER else 0
    if gap > 0 and not excused:
        if heard.usual > 0 and heard.votes >= silence.majority:
            lost, keep = max(float(np.rint(gap / heard.usual)) - 1.0, 0.0), 1 - silence.forget
            first, again = _chances(heard)
            lost = min(lost, _TAUGHT * (1 + _more(silence, first, again)))
            heard.came = float(heard.came) * keep + 1.0
            heard.runs = float(heard.runs) * keep + (1.0 if lost > 0 else 0.0)
            heard.missed = float(heard.missed) * keep + lost
        alike = abs(gap - heard.usual) * 10 <= heard.usual
        left = min(heard.votes + 1.0, _VOTES) if alike else heard.votes - 1.0
        if left < 0:
            heard.usual, left = gap, 1.0
        heard.votes = left
    if heard.usual == 0:
        heard.usual = gap
    heard.last, heard.told = time, False
