"""Evidence that a sensor is stuck: the same value over and over, where values used not to repeat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Flags, Rows, clamp

_MOST = 1000.0
_SURE = 0.9999


@dataclass(frozen=True)
class Frozen:
    """Whether exact repeats are more than chance.

    A value repeats the one before with chance q₀ after a new value, q₁ after a repeat, a two-state Markov chain: k
    repeats in a row are -ln q₀ - (k - 1) ln q₁ nats. Both chances are learned, so that counts and what rests at night
    are not called stuck for long; a run of more than ``half`` nats teaches nothing.

    Args:
        half: Nats of a run that is told of at a threshold of 50; in general half · t / (100 - t).
        threshold: record_score from which an anomaly is announced.
        forget: Share of what is known of q₀ that is forgotten a value, at least.
        pace: Weight of the newest value in q₁.

    Source: E. N. Gilbert, Capacity of a burst-noise channel, Bell System Technical Journal 39 (1960).

    >>> frozen, row = Frozen(half=13.0, threshold=50.0), np.array([0])
    >>> state, told = frozen.new_state(1), []
    >>> for seen, same in enumerate([False] * 200 + [True] * 20):
    ...     view, same = Rows(state, row, ""), np.array([same])
    ...     nats = frozen.nats(view, same)
    ...     told.append(bool(frozen.tells(view, nats)[0]))
    ...     frozen.learn(view, same, np.array([float(seen)]), nats)
    >>> [place - 200 for place, flag in enumerate(told) if flag]
    [16]
    """

    half: float
    threshold: float
    forget: float = 1 / 500
    pace: float = 1 / 20

    @property
    def bar(self) -> float:
        """Nats from which a run is told of."""
        share = min(max(self.threshold, 1.0), 99.0) / 100
        return self.half * share / (1 - share)

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        chances: Columns = {name: np.full(n, 0.5, np.float32) for name in ("first", "again")}
        return chances | {"nats": np.zeros(n, np.float16)}

    def nats(self, state: Rows, same: Flags) -> Array:
        """Evidence of the run of repeats that the value ends; 0 where it is a new value.

        Args:
            state: The columns.
            same: Whether the value is the one before, shape (n,).
        """
        run = state["nats"].astype(np.float64)
        chance = clamp(np.where(run > 0, state["again"], state["first"]).astype(np.float64), 1e-6, _SURE)
        return np.where(same, np.minimum(run - np.log(chance), _MOST), 0.0)

    def tells(self, state: Rows, nats: Array) -> Flags:
        """Where a run is to be told of: once, shape (n,)."""
        told: Flags = (nats >= self.bar) & (state["nats"].astype(np.float64) < self.bar)
        return told

    def learn(self, state: Rows, same: Flags, seen: Array, nats: Array) -> None:
        """Adds one value each.

        Args:
            state: The columns.
            same: As of `nats`.
            seen: Values before it, shape (n,).
            nats: As from `nats`.
        """
        again, first, runs = state["again"], state["first"], state["nats"] > 0
        news = nats < self.half
        pace = np.maximum(self.forget, 1 / (2 + seen))
        state["first"] = np.where(runs, first, first + pace * (same - first))
        state["again"] = np.where(runs & news, again + self.pace * (same - again), again)
        state["nats"] = nats
