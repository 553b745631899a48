"""Silence: a window that was expected did not come. For series and for machines; no clock, instants are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, clamp
from models.evidence.repeats import NEVER

NEVER_DUE = int(np.iinfo(np.int64).max)
"""The far future."""

_VOTES = 30.0


@dataclass(frozen=True)
class Silence:
    """The usual time between two windows, and how rare it is that windows are missing, and stay so.

    The usual time is the one that has the majority (Boyer and Moore): what reports at irregular times has none, and is
    never missed. A window is missing after one that came with chance q₀, after one that was missing with chance q₁, a
    two-state Markov chain with beta priors: k missing windows in a row are -ln q₀ - (k - 1) ln q₁ nats of evidence.

    Args:
        known: Votes for the usual time, less those against it, from which on it is known.
        forget: Share of what was counted that is forgotten a window.
        bar: Evidence in nats at which a silence is announced.

    Sources: R. S. Boyer, J. S. Moore, MJRTY: a fast majority vote algorithm (1991); E. N. Gilbert, Capacity of a
    burst-noise channel, Bell System Technical Journal 39 (1960).

    >>> silence, rows = Silence(known=10.0, forget=1 / 5000, bar=10.0), np.array([0])
    >>> state = silence.new_state(1)
    >>> for minute in range(100):
    ...     silence.learn(Rows(state, rows, ""), np.array([minute * 60_000]), np.array([False]))
    >>> (silence.due(Rows(state, rows, "")) - 99 * 60_000) / 60_000  # minutes after the last window
    array([5.])
    """

    known: float
    forget: float
    bar: float

    def new_state(self, n: int) -> Columns:
        """The columns for n subjects that were never heard of."""
        counts = {name: np.zeros(n, np.float32) for name in ("votes", "came", "runs", "missed")}
        times = {"last": np.full(n, NEVER, np.int64), "usual": np.zeros(n, np.int64)}
        return {**counts, **times, "told": np.zeros(n, np.bool_)}

    def due(self, state: Rows) -> Ints:
        """The end of the window with which a silence since the last window is announced; `NEVER_DUE`: never."""
        last, usual = state["last"].astype(np.int64), state["usual"].astype(np.int64)
        first, again = self._chances(state)
        more = np.ceil(np.maximum(self.bar + np.log(first), 0.0) / -np.log(again)).astype(np.int64)
        known = (state["votes"] >= self.known) & (usual > 0) & (state["told"] == 0)
        return np.where(known, last + usual * (1 + more), NEVER_DUE)

    def evidence(self, state: Rows) -> Array:
        """Nats for the silence at the window at which it is announced."""
        first, again = self._chances(state)
        more = np.ceil(np.maximum(self.bar + np.log(first), 0.0) / -np.log(again))
        result: Array = -np.log(first) - more * np.log(again)
        return result

    def missing(self, state: Rows) -> Ints:
        """The end of the first window that did not come."""
        return state["last"].astype(np.int64) + state["usual"].astype(np.int64)

    def learn(self, state: Rows, time: Ints, excused: Flags) -> None:
        """Counts a window that came.

        Args:
            state: The columns.
            time: Its end, epoch milliseconds; not after the last one: nothing is counted; shape (n,).
            excused: Whether what is missing before it says nothing, shape (n,).
        """
        last, usual, votes = state["last"].astype(np.int64), state["usual"].astype(np.int64), state["votes"]
        new = time > last
        gap = np.where(new & (last != NEVER), time - last, 0)
        alike = np.abs(gap - usual) * 10 <= usual
        voting = (gap > 0) & ~excused
        left = np.where(voting, np.where(alike, np.minimum(votes + 1, _VOTES), votes - 1), votes)
        turned = left < 0
        counted = voting & (usual > 0) & (votes >= self.known)
        lost = np.where(counted, np.maximum(np.rint(gap / np.maximum(usual, 1)) - 1, 0), 0.0)
        keep = np.where(counted, 1 - self.forget, 1.0)
        state["came"] = state["came"] * keep + counted
        state["runs"] = state["runs"] * keep + (lost > 0)
        state["missed"] = state["missed"] * keep + lost
        state["usual"] = np.where(turned | (usual == 0), gap, usual)
        state["votes"] = np.where(turned, 1.0, left)
        state["last"] = np.where(new, time, last)
        state["told"] = np.where(new, False, state["told"])

    def _chances(self, state: Rows) -> tuple[Array, Array]:
        came, runs, missed = (state[name].astype(np.float64) for name in ("came", "runs", "missed"))
        first = (0.5 + runs) / (50.5 + came + runs)
        again = (1 + np.maximum(missed - runs, 0.0)) / (3 + missed)
        return first, clamp(again, 1e-3, 0.999)
