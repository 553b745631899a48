"""Frozen: a value repeats itself exactly, longer than it ever used to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Rows, clamp

_MOVES = 50.0
"""A series that has changed less often than that is not known to move."""


@dataclass(frozen=True)
class Frozen:
    """How rare a run of equal values is: a repeat after a change has chance q₀, one after a repeat q₁.

    Both are learned from runs that have ended, with beta priors as of `models.regimes.silence.Silence`, so that
    constant and coarsely rounded series are used to it. A run that was told of is not learned, unless it lasts.

    Args:
        least: Evidence below this, in nats, is none.
        most: It grows no larger than this.
        lasts: Repeats after which a frozen value is the new normal.

    >>> frozen, rows = Frozen(20.0, 25.0, 300), np.array([0])
    >>> state, one = frozen.new_state(1), np.ones(1)
    >>> for value in [*np.random.default_rng(0).normal(0, 1, 300), *np.ones(15)]:
    ...     evidence = frozen.evidence(Rows(state, rows, ""), value * one)
    ...     frozen.learn(Rows(state, rows, ""), value * one)
    >>> evidence.round(1)
    array([20.8])
    """

    least: float
    most: float
    lasts: int

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        counts = {name: np.zeros(n, np.float32) for name in ("run", "moves", "runs", "repeats")}
        return {**counts, "last": np.zeros(n)}

    def evidence(self, state: Rows, value: Array) -> Array:
        """Nats for a run that goes on with this value; 0 below ``least``.

        Args:
            state: The columns.
            value: The value, shape (n,).
        """
        run, moves = state["run"].astype(np.float64), state["moves"].astype(np.float64)
        again = (value == state["last"]) & (run >= 3) & (moves >= _MOVES) & (run < self.lasts)
        result = np.zeros_like(value)
        at = np.flatnonzero(again)
        if len(at):
            some = Rows(state.state, state.rows[at], state.prefix)
            nats = self._nats(some, run[at] + 1)
            result[at] = np.where(nats >= self.least, np.minimum(nats, self.most), 0.0)
        return result

    def learn(self, state: Rows, value: Array) -> None:
        """Adds a value each."""
        run = state["run"]
        again = (value == state["last"]) & (state["moves"] + run > 0)
        ended = np.flatnonzero(~again & (run > 0))
        if len(ended):
            some = Rows(state.state, state.rows[ended], state.prefix)
            length = run[ended].astype(np.float64)
            usual = (self._nats(some, length) < self.least) | (some["moves"] < _MOVES) | (length >= self.lasts)
            some["runs"] = some["runs"] + usual
            some["repeats"] = some["repeats"] + np.where(usual, length, 0.0)
        state["run"] = np.where(again, run + 1, 0.0)
        state["moves"] = state["moves"] + ~again
        state["last"] = value

    def _nats(self, state: Rows, run: Array) -> Array:
        moves, runs, repeats = (state[name].astype(np.float64) for name in ("moves", "runs", "repeats"))
        first = (0.5 + runs) / (50.5 + moves)
        more = (1 + repeats - runs) / (3 + repeats)
        nats: Array = -np.log(clamp(first, 1e-4, 0.9)) - np.maximum(run - 1, 0.0) * np.log(more)
        return nats
