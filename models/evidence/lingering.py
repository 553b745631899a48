"""Lingering surprise: what ranks the values of a series where no evidence is strong enough to compare series by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Flags, Rows

_NEW = 2.0
"""So much more evidence, in proportion, must speak of a series of which nothing is known."""


@dataclass(frozen=True)
class Lingering:
    """The latest surprises of a series, as they are, with a short memory.

    Evidence is calibrated, so that one threshold serves all series; but a calibration changes with what it has seen,
    and equal surprises of one series rank lower later on. So evidence ranks from ``notable`` on; below it the surprise
    itself does, which fades by a tenth a step: what goes on after an onset, or is near it, ranks above what is not.

    Args:
        notable: Evidence up to which surprise ranks, and below which its rank stays. While a series is new, evidence
            must be up to three times as strong to rank by itself: its calibrations and its range say little yet.
        keep: Share of the surprise that is left a step later.
        knee: Surprise, in nats, that ranks half way up.
        settled: Values until surprise counts in full: of little that is known, much surprises.
        grown: Values until a series is no longer new.

    >>> lingering = Lingering(notable=8.0)
    >>> lingering.rank(np.array([20.0, 8.0, 20.0]), np.array([0.0, 60.0, 5.0]), np.array([500.0, 500.0, 40.0]))
    array([20. ,  6. ,  1.6])
    """

    notable: float
    keep: float = 0.9
    knee: float = 20.0
    settled: float = 50.0
    grown: float = 200.0

    def new_state(self, n: int) -> Columns:
        """The column for n series of which nothing is known."""
        return {"surprise": np.zeros(n, np.float32)}

    def surprise(self, state: Rows, fresh: Array, seen: Array) -> Array:
        """The surprise that lingers: the fresh one, or what is left of one before.

        Args:
            state: The column of this component.
            fresh: Surprise of the value, in nats, shape (n,).
            seen: Values learned so far, shape (n,).
        """
        left: Array = self.keep * state["surprise"].astype(np.float64)
        return np.maximum(left, fresh * np.minimum(seen / self.settled, 1.0))

    def rank(self, evidence: Array, surprise: Array, seen: Array) -> Array:
        """The evidence where it is notable; elsewhere a place below ``notable``, by the surprise that lingers.

        Args:
            evidence: Weight of evidence, at least 0, shape (n,).
            surprise: As from `surprise`.
            seen: Values learned so far, shape (n,).
        """
        least = self.notable * (1 + _NEW * np.maximum(1 - seen / self.grown, 0.0))
        return np.where(evidence > least, evidence, self.notable * (surprise / (surprise + self.knee)))

    def learn(self, state: Rows, surprise: Array, valid: Flags) -> None:
        """Remembers what `surprise` returned, where the value was valid."""
        state["surprise"] = np.where(valid, surprise, state["surprise"])
