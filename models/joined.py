"""One verdict on an entity from the verdicts on its metrics at one time, and from the model of them all together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, log_sum_exp, prefixed
from models.config import DetectorConfig
from models.course import Course, by_unrest
from models.evidence.combine import score
from models.evidence.mean import mean_surprise
from models.evidence.point import compress, nats_calibration
from models.evidence.repeats import NEVER, Repeats
from models.feedback import Feedback
from models.verdicts import Kind, Verdicts

_WEIGHTS = {"metrics": 0.05, "strongest": 0.05, "together": 0.9}
"""What is believed beforehand of which channel shows that a machine is unusual."""

_CLIP = 12.0
"""Evidence of one metric counts at most this in the mean, in nats."""


@dataclass(frozen=True)
class JoinedVerdicts:
    """Verdicts on m entities, and what each row that went in contributed.

    Args:
        entities: Row of the state of each entity, ascending, shape (m,).
        verdicts: One an entity; typical, lower and upper are NaN.
        incident: Codes of `Course`: whether an incident that has been told of goes on, or ends here; shape (m,).
        shares: Of each row that went in, its share of its entity's verdict; they add up to 1; shape (n,).
        suggested: Of each row, what the entity's other metrics let expect where that is what makes the verdict, else
            NaN; shape (n,).
    """

    entities: Ints
    verdicts: Verdicts
    incident: Ints
    shares: Array
    suggested: Array


class Together(NamedTuple):
    """What the models of several metrics say of m entities.

    Args:
        evidence: In nats; 0 where there is no model, shape (m,).
        known: Whether there is one, shape (m,).
        shares: Of each row that went in, its share of its entity's evidence, shape (n,).
        expected: Of each row, what the entity's other metrics let expect; NaN where there is no model; shape (n,).
    """

    evidence: Array
    known: Flags
    shares: Array
    expected: Array


class Joined:
    """Mean evidence over the metrics, calibrated on the entity's own history, and the strongest one of them.

    Evidence channels: ``metrics``, the mean over the metrics of clipped evidence; ``strongest``, the largest of them
    less ln of the number of metrics (Bonferroni).

    Args:
        config: The constants, as of the detector.

    >>> joined = Joined(DetectorConfig())
    >>> state = joined.new_state(1)
    >>> quiet, loud, none = np.full(20, 0.5), np.full(20, 14.0), np.zeros(20, np.int64)
    >>> for minute in range(20):
    ...     verdict = joined.join(state, none, none + minute * 60_000, quiet, none == 0)
    >>> joined.join(state, none, none + 1_200_000, loud, none == 0).verdicts.record_score.round()
    array([64.])
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.config = config
        self.calibration = nats_calibration(config.calibration_forget)
        self.repeats = Repeats(0.75 * config.joined_half, config.joined_rest, config.damping, config.calm)
        self.feedback = Feedback()

    def new_state(self, n: int) -> Columns:
        """The columns for n entities of which nothing is known."""
        columns = prefixed("metrics.", self.calibration.new_state(n)) | prefixed("repeats.", self.repeats.new_state(n))
        columns |= {
            f"feedback.{name}": column for name, column in self.feedback.new_state(n).items() if name != "offset"
        }
        return columns | {"seen": np.zeros(n)}

    def told(self, state: Columns, entities: Ints, true: Flags) -> None:
        """Takes in that the last joined alarm of some entities was true, or false; changes those rows of the state."""
        self.feedback.told(Rows(state, entities, "feedback."), true)

    def accept(self, state: Columns, entities: Ints) -> None:
        """Ends the incidents of some entities, which their next verdict says; changes those rows of the state."""
        self.repeats.close(Rows(state, entities, "repeats."))

    def join(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        evidence: Array,
        judged: Flags,
        together: Together | None = None,
        onset: Ints | None = None,
    ) -> JoinedVerdicts:
        """Joins the verdicts of one time and learns how unusual they were together.

        Args:
            state: As from `new_state`; its rows of the entities named are changed.
            rows: The row of the entity of each verdict; the rows of one entity stand together in the same order each
                time (by metric), shape (n,).
            time: End of the window, epoch milliseconds, one an entity, shape (n,).
            evidence: Each metric's evidence in nats, at least 0, shape (n,).
            judged: Whether the metric had a value and is no longer being learned, shape (n,).
            together: What the models of several metrics say of these entities, ascending; ``None``: there are none.
            onset: Since when each metric has been unusual by itself; -1: it is not; ``None``: none is; shape (n,).
        """
        entities, first, place = np.unique(rows, return_index=True, return_inverse=True)
        m = len(entities)
        counted = np.where(judged, evidence, 0.0)
        metrics = np.bincount(place, weights=judged, minlength=m)
        mean = np.bincount(place, weights=np.minimum(counted, _CLIP), minlength=m) / np.maximum(metrics, 1.0)
        strongest = np.zeros(m)
        np.maximum.at(strongest, place, counted)
        strongest = np.maximum(strongest - np.log(np.maximum(metrics, 1.0)), 0.0)

        own, calibration = Rows(state, entities, ""), Rows(state, entities, "metrics.")
        repeats = Rows(state, entities, "repeats.")
        seen = own["seen"]
        average, memo = self.calibration.evidence(calibration, compress(mean_surprise(mean, np.maximum(metrics, 1.0))))
        trust = np.where(metrics > 0, np.minimum(seen / self.config.warm_up, 1.0), 0.0)
        channels = {"metrics": average * trust, "strongest": strongest * trust}
        if together is not None:
            channels["together"] = np.where(together.known, together.evidence, 0.0) * trust
        feedback = Rows(state, entities, "feedback.")
        both = _combine(channels) * self.feedback.worth(feedback)
        damped = self.repeats.damp(repeats, both)
        points = score(damped, self.config.joined_half)
        kind = np.where(points >= self.config.threshold, Kind.ANOMALY.code, Kind.NORMAL.code)
        kind = np.where(seen < self.config.learning, Kind.LEARNING.code, kind)
        times, valid = time[first], metrics > 0
        told = valid & (kind != Kind.LEARNING.code)
        busy, no = both >= self.repeats.notable, np.zeros(m, np.bool_)
        unrest = self.repeats.unrest(repeats, busy, np.where(told, points, 0.0), no)
        kind, incident = by_unrest(self.config.threshold, unrest, kind, told)
        since = np.where(incident == Course.NONE.code, NEVER, self.repeats.onset(repeats, times))
        new = (incident == Course.OPEN.code) & (repeats["worst"] < self.config.threshold)

        unknown = np.full(m, np.nan)
        verdicts = Verdicts(points, np.exp(-damped), unknown, unknown, unknown, kind, since, channels)
        self.calibration.learn(calibration, memo, valid & (seen >= self.config.warm_up))
        self.repeats.learn(repeats, both, times, valid, unrest)
        self.feedback.fade(feedback, valid)
        own["seen"] = seen + valid

        suggested = np.full(len(rows), np.nan)
        whole = np.bincount(place, weights=evidence, minlength=m)[place]
        equal = 1.0 / np.bincount(place, minlength=m)[place]
        shares = np.where(whole > 0, evidence / np.where(whole > 0, whole, 1.0), equal)
        if together is not None:
            by_model = together.evidence >= np.maximum(average, strongest)
            there = np.bincount(place, weights=together.shares, minlength=m) > 0
            shares = np.where((by_model & there)[place], together.shares, shares)
            suggested = np.where((by_model & there)[place], together.expected, np.nan)
        if onset is not None and new.any():  # it began when what carries it did
            carried = onset[_strongest(place, shares)]
            new &= carried != NEVER
            since[:] = np.where(new, carried, since)
            repeats["onset"] = np.where(new, carried, repeats["onset"].astype(np.int64))
        return JoinedVerdicts(entities, verdicts, incident, shares, suggested)


def _strongest(place: Ints, shares: Array) -> Ints:
    """The row of the largest share of each entity; ``place`` is ascending, shape (n,); of equal ones the first."""
    order = np.lexsort((-np.arange(len(place)), shares, place))
    last: Ints = order[np.flatnonzero(np.diff(place[order], append=-1))]
    return last


def _combine(channels: dict[str, Array]) -> Array:
    """-ln of the weighted harmonic mean of the probabilities [Wilson 2019]."""
    weights = np.array([_WEIGHTS[name] for name in channels])
    logs = np.log(weights / weights.sum())[:, None]
    joined: Array = np.maximum(log_sum_exp(np.array(list(channels.values())) + logs), 0.0)
    return joined
