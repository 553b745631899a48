"""Lingering surprise: what ranks the values of a series where no evidence is strong enough to compare series by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Columns


@dataclass(frozen=True)
class Lingering:
    """The latest surprises of a series, as they are, with a short memory.

    Evidence is calibrated, so that one threshold serves all series; but a calibration changes with what it has seen,
    and equal surprises of one series rank lower later on. So evidence ranks from ``notable`` on; below it the surprise
    itself does, which fades by a tenth a step: what goes on after an onset, or is near it, ranks above what is not.

    Args:
        notable: Evidence up to which surprise ranks, and below which its rank stays. While a series is new, evidence
            must be stronger, see ``new``, to rank by itself: its calibrations and its range say little yet.
        keep: Share of the surprise that is left a step later.
        knee: Surprise, in nats, that ranks half way up.
        settled: Values until surprise counts in full: of little that is known, much surprises.
        grown: Values until a series is no longer new.
        new: So much more evidence, in proportion, must speak of a series of which nothing is known.
    """

    notable: float
    keep: float
    knee: float
    settled: float
    grown: float
    new: float

    def new_state(self, n: int) -> Columns:
        """The column for n series of which nothing is known."""
        return {"surprise": np.zeros(n, np.float32)}


@kernel
def linger(config: Lingering, before: float, fresh: float, seen: float) -> float:
    """The surprise that lingers: the fresh one, or what is left of one before.

    Args:
        config: The constants.
        before: What lingered so far, in nats.
        fresh: Surprise of the value, in nats.
        seen: Values learned so far.
    """
    return max(config.keep * before, fresh * min(seen / config.settled, 1.0))


@kernel
def rank(config: Lingering, evidence: float, surprise: float, seen: float) -> float:
    """The evidence where it is notable; elsewhere a place below ``notable``, by the surprise that lingers.

    Args:
        config: The constants.
        evidence: Weight of evidence, at least 0.
        surprise: As from `linger`.
        seen: Values learned so far.

    >>> from models.records import constants
    >>> config = constants(all=Lingering(8.0, keep=0.9, knee=20.0, settled=50.0, grown=200.0, new=2.0)).all
    >>> rank(config, 20.0, 0.0, 500.0), rank(config, 8.0, 60.0, 500.0), round(rank(config, 20.0, 5.0, 40.0), 1)
    (20.0, 6.0, 1.6)
    """
    least = config.notable * (1 + config.new * max(1 - seen / config.grown, 0.0))
    return evidence if evidence > least else config.notable * (surprise / (surprise + config.knee))
