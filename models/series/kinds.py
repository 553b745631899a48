"""What kind of news a value is, and where its incident stands: of regimes, and anomalies outside of their incidents."""

from __future__ import annotations

from typing import NamedTuple

from models.config import DetectorConfig
from models.evidence.repeats import NEVER, Repeats, Unrest, unrest
from models.evidence.score import is_alarm, scored
from models.kernels import kernel
from models.records import Record
from models.regimes.regimes import Decision
from models.series.course import Course, course_of
from models.verdicts import Kind

_STUCK = 3.5
"""Evidence of exact repeats, in nats, that keeps up an unrest."""

_NORMAL, _ANOMALY, _LEARNING = Kind.NORMAL.code, Kind.ANOMALY.code, Kind.LEARNING.code
_NONE, _OPEN, _CLOSED = Course.NONE.code, Course.OPEN.code, Course.CLOSED.code


class Appraisal(NamedTuple):
    """What is known of a value.

    Args:
        weight: Weight of evidence.
        points: `record_score`; 0 where it is expected at its time.
        bar: `record_score` from which a value is reported.
        frozen: Evidence of exact repeats, in nats.
        before: The same of the value before.
        strange: Whether the value is an anomaly by itself, if no regime says otherwise.
        valid: Whether there is a value.
    """

    weight: float
    points: float
    bar: float
    frozen: float
    before: float
    strange: bool
    valid: bool


class News(NamedTuple):
    """What is reported of a value, as in `SeriesVerdicts`, and what is to be learned of its unrest."""

    kind: int
    since: int
    onset: int
    incident: int
    turned: int
    unrest: Unrest


@kernel
def news_of(
    config: DetectorConfig,
    repeats: Repeats,
    state: Record,
    decision: Decision,
    appraisal: Appraisal,
    seen: float,
    time: int,
    same: int,
) -> News:
    """Brings together what regimes say and what the unrest says; changes nothing.

    Args:
        config: The constants.
        repeats: Those of the unrest.
        state: The columns of the unrest.
        decision: What regimes say.
        appraisal: What is known of the value.
        seen: Values learned so far.
        time: When, epoch milliseconds.
        same: Since when the value has been the same, where that is the news; else -1.
    """
    reported, learning = appraisal.valid and seen >= config.learning, seen < config.learning
    step = _unrest(config, repeats, state, decision, appraisal, reported)
    accepted = is_alarm(step.accepted, appraisal.bar)
    opened, closed = decision.inside and decision.loud, decision.loud and not decision.inside
    kind = _ANOMALY if appraisal.strange else _NORMAL
    if decision.kind >= 0:
        kind = decision.kind
    if learning:
        kind = _LEARNING
    kind, incident = course_of(appraisal.bar, step, kind, reported and (accepted or not (opened or closed)))
    strange = kind == _ANOMALY
    turned = -1
    if reported and not accepted:
        turned = decision.turned
        if closed and not strange:
            incident = _CLOSED
        elif opened or strange:
            incident = _OPEN
    of_regime = not accepted and (opened or closed or turned >= 0)
    unusual = decision.since if of_regime else state.onset
    since = same
    if same == NEVER:
        since = time if unusual == NEVER else unusual
    if incident == _NONE:
        since = NEVER
    onset = state.onset if decision.since == NEVER else decision.since
    return News(kind, since, onset, incident, turned, step)


@kernel
def _unrest(
    config: DetectorConfig, repeats: Repeats, state: Record, decision: Decision, appraisal: Appraisal, reported: bool
) -> Unrest:
    """What becomes of anomalies outside of the incidents of regimes: they are over when all is quiet again."""
    runs = appraisal.before >= _STUCK
    busy = appraisal.weight >= config.notable or appraisal.frozen >= _STUCK
    loose = 0.0 if decision.inside or decision.explained else appraisal.points
    loudest = max(loose, scored(appraisal.frozen, config.frozen_half))
    ends = (decision.loud and not decision.inside) or (runs and not busy)
    return unrest(repeats, state, busy, loudest if reported else 0.0, ends)
