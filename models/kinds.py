"""What kind of news a value is, and where its incident stands: of regimes, and anomalies outside of their incidents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import Array, Flags, Ints, Rows
from models.config import DetectorConfig
from models.course import Course, by_unrest
from models.evidence.combine import score
from models.evidence.repeats import NEVER, Repeats, Unrest
from models.regimes.regimes import Decision
from models.verdicts import Kind

_STUCK = 3.5
"""Evidence of exact repeats, in nats, that keeps up an unrest."""


class Judged(NamedTuple):
    """What is known of n values; all of shape (n,).

    Args:
        weight: Weight of evidence.
        points: `record_score`.
        frozen: Evidence of exact repeats, in nats.
        before: The same of the value before.
        strange: Whether the value is an anomaly by itself, if no regime says otherwise.
        valid: Whether there is a value.
    """

    weight: Array
    points: Array
    frozen: Array
    before: Array
    strange: Flags
    valid: Flags


class Told(NamedTuple):
    """What is told of n values, as in `SeriesVerdicts`, and what is to be learned of their unrest."""

    kind: Ints
    since: Ints
    onset: Ints
    incident: Ints
    turned: Ints
    unrest: Unrest


@dataclass(frozen=True)
class Kinds:
    """Brings together what regimes say and what the unrest says; changes nothing.

    Args:
        config: The constants.
        repeats: The unrest.
    """

    config: DetectorConfig
    repeats: Repeats

    def tell(self, repeats: Rows, decision: Decision, judged: Judged, seen: Array, time: Ints, same: Ints) -> Told:
        """Kinds, and where incidents stand.

        Args:
            repeats: The columns of the unrest.
            decision: What regimes say.
            judged: What is known of the values.
            seen: Values learned so far, shape (n,).
            time: When, epoch milliseconds, shape (n,).
            same: Since when the value has been the same, where that is what is told; else -1; shape (n,).
        """
        told = judged.valid & (seen >= self.config.learning)
        unrest = self._unrest(repeats, decision, judged, told)
        accepted = unrest.accepted >= self.config.threshold
        kind = np.where(judged.strange, Kind.ANOMALY.code, Kind.NORMAL.code)
        kind = np.where(decision.kind >= 0, decision.kind, kind)
        kind = np.where(seen < self.config.learning, Kind.LEARNING.code, kind)
        outside = told & (accepted | ~(decision.open | decision.closed))
        kind, incident = by_unrest(self.config.threshold, unrest, kind, outside)
        strange = kind == Kind.ANOMALY.code
        goes_on = told & ~accepted & (decision.open | strange)
        over = told & ~accepted & decision.closed & ~strange
        incident = np.select([over, goes_on], [Course.CLOSED.code, Course.OPEN.code], incident)
        turned = np.where(told & ~accepted, decision.turned, -1)
        of_regime = ~accepted & (decision.open | decision.closed | (turned >= 0))
        unusual = np.where(of_regime, decision.since, repeats["onset"].astype(np.int64))
        since = np.where(same == NEVER, np.where(unusual == NEVER, time, unusual), same)
        since = np.where(incident == Course.NONE.code, NEVER, since)
        unusual = np.where(decision.since == NEVER, repeats["onset"].astype(np.int64), decision.since)
        unrest = unrest._replace(begun=same)
        return Told(kind, since, unusual, incident, turned, unrest)

    def _unrest(self, repeats: Rows, decision: Decision, judged: Judged, told: Flags) -> Unrest:
        """What becomes of anomalies outside of the incidents of regimes: they are over when all is quiet again."""
        runs = judged.before >= _STUCK
        busy = (judged.weight >= self.config.notable) | (judged.frozen >= _STUCK)
        loose = np.where(decision.inside | decision.explained, 0.0, judged.points)
        loudest = np.maximum(loose, score(judged.frozen, self.config.frozen_half))
        return self.repeats.unrest(repeats, busy, np.where(told, loudest, 0.0), decision.closed | (runs & ~busy))
