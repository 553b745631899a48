"""One verdict on an entity from the verdicts on its metrics at one time, and from the model of them all together.

Compiled; the formulas are those of one entity at one window, and run over any number of windows of any number of
entities, in the order in which they are given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.evidence.mean import mean_surprise_of
from models.evidence.point import compressed, nats_calibration, series_calibration
from models.evidence.repeats import NEVER, Repeats, conclude, damp, learn_repeats, unrest
from models.evidence.score import is_alarm, scored
from models.kernels import kernel
from models.machine.joined_again import joined_again, learn_joined_again
from models.machine.joined_again import new_state as new_again
from models.numbers.arrays import Array, Columns, Flags, Ints, Rows, prefixed
from models.numbers.calibration import learn_tail, tail_evidence, tail_rarity
from models.records import Layout, Record, Table, constants, record_type
from models.regimes.config import RegimesConfig
from models.series.course import Course, course_of
from models.series.feedback import Feedback, fade, worth_of
from models.verdicts import Kind, Verdicts, without_band

_BY_METRICS, _BY_STRONGEST, _BY_MODEL = math.log(0.05), math.log(0.05), math.log(0.9)
"""What is believed beforehand of which channel shows that a machine is unusual, as logarithms."""

_BY_EITHER = math.log(0.5)
"""The same of the first two where no model of all metrics is asked."""

_CLIP = 12.0
"""Evidence of one metric counts at most this in the mean, in nats."""

_NORMAL, _ANOMALY, _LEARNING = Kind.NORMAL.code, Kind.ANOMALY.code, Kind.LEARNING.code
_NONE, _OPEN = Course.NONE.code, Course.OPEN.code

_FLOATS = ("record_score", "state_score", "probability", "metrics", "strongest", "together", "seen")
_WHOLE = ("kind", "since", "incident")
VERDICT = record_type([*((name, np.float64) for name in _FLOATS), *((name, np.int64) for name in _WHOLE)])
"""A verdict on an entity as a record; the fields are those of `Verdicts` and its evidence, and of `JoinedVerdicts`."""


class Windows(NamedTuple):
    """m windows of entities, in the order in which they are judged, and where their n metrics stand.

    Args:
        entity: Row of the state of the entity of each, shape (m,). An entity may have several windows.
        time: When, epoch milliseconds, shape (m,).
        first: Number of its first metric, the metrics of a window being adjacent; and n at the end; shape (m + 1,).
    """

    entity: Ints
    time: Ints
    first: Ints

    @property
    def place(self) -> Ints:
        """Of each metric, the number of its window, shape (n,)."""
        return np.repeat(np.arange(len(self.entity)), np.diff(self.first))


class Together(NamedTuple):
    """What the models of several metrics say of m windows of entities.

    Args:
        evidence: In nats, shape (m,).
        shares: Of each metric, its share of the evidence of its window, shape (n,).
        expected: Of each metric, what the other metrics let expect; NaN where the model leaves it out; shape (n,).
    """

    evidence: Array
    shares: Array
    expected: Array


@dataclass(frozen=True)
class JoinedVerdicts:
    """Verdicts on m windows of entities, and what each of their n metrics contributed.

    Args:
        verdicts: One a window; typical, lower and upper are NaN.
        incident: Codes of `Course`: whether an incident that has been reported goes on, or ends here; shape (m,).
        seen: Windows of the entity that were judged so far, this one among them, shape (m,).
        shares: Of each metric, its share of the verdict; they add up to 1; shape (n,).
        suggested: Of each metric, what the entity's other metrics let expect where that is what makes the verdict, else
            NaN; shape (n,).
        state_score: How far the window lies from the last accepted normal, 0 to 100; 0 while neither the entity nor one
            of its metrics has an open incident; shape (m,).
    """

    verdicts: Verdicts
    incident: Ints
    seen: Array
    shares: Array
    suggested: Array
    state_score: Array


class Joined:
    """Mean evidence over the metrics, calibrated on the entity's own history, and the strongest one of them.

    Evidence channels: ``metrics``, the mean over the metrics of clipped evidence; ``strongest``, the largest of them
    less ln of the number of metrics (Bonferroni); ``together``, what the model of all metrics says, where it is asked.
    What they say in all makes the score. How often the entity reaches so much is learned, too, and is the verdict's
    ``probability``: evidence grows for thousands of windows while the model of all metrics learns, so that twice the
    share of its history counts as tail, and its beginning is forgotten twice as fast as that of a metric.

    Args:
        config: The constants of the detector.
        regimes: The constants of what comes back.

    >>> joined = Joined(DetectorConfig())
    >>> state, minutes = joined.new_state(1), np.arange(21)
    >>> evidence = np.repeat([0.5, 14.0], [20 * 20, 20])  # twenty quiet minutes of twenty metrics, and a loud one
    >>> windows = Windows(0 * minutes, minutes * 60_000, np.arange(0, 21 * 20 + 1, 20))
    >>> joined.join(state, windows, evidence, evidence > 0).verdicts.record_score[-2:].round()
    array([ 0., 64.])
    """

    def __init__(self, config: DetectorConfig, regimes: RegimesConfig | None = None) -> None:
        self.config = config
        self.calibration = nats_calibration(config.forget)
        self.whole = series_calibration(
            config.forget, 2 * config.calibration_tail, config.calibration_strength, 2 * config.calibration_early
        )
        self.repeats = Repeats(0.75 * config.joined_half, config.joined_rest, config.damping, config.calm)
        self.feedback = Feedback()
        self._layout = Layout(self._columns(0))
        self._constants = constants(
            config=config,
            calibration=self.calibration,
            whole=self.whole,
            repeats=self.repeats,
            feedback=self.feedback,
            regimes=regimes or RegimesConfig(),
        )

    def new_state(self, n: int) -> Columns:
        """The columns for n entities of which nothing is known."""
        return self._layout.joined(self._columns(n))

    def _columns(self, n: int) -> Columns:
        columns = prefixed("metrics.", self.calibration.new_state(n)) | prefixed("repeats.", self.repeats.new_state(n))
        columns |= prefixed("whole.", self.whole.new_state(n)) | prefixed("again.", new_again(n))
        feedback = {name: column for name, column in self.feedback.new_state(n).items() if name != "offset"}
        return columns | prefixed("feedback.", feedback) | {"seen": np.zeros(n)}

    def learn_label(self, state: Columns, entities: Ints, true: Flags) -> None:
        """Learns that the last joined alarm of some entities was true, or false; changes those rows of the state."""
        self.feedback.learn_label(Rows(state, entities, "feedback."), true)

    def accept(self, state: Columns, entities: Ints) -> None:
        """Ends the incidents of some entities, which their next verdict says; changes those rows of the state."""
        self.repeats.close(Rows(state, entities, "repeats."))
        state["again.nats"][entities] = 0.0

    def join(
        self,
        state: Columns,
        windows: Windows,
        evidence: Array,
        judgeable: Flags,
        together: Together | None = None,
        onset: Ints | None = None,
        taught: Flags | None = None,
        away: Array | None = None,
        lent: Array | None = None,
    ) -> JoinedVerdicts:
        """Joins the verdicts of windows one after the other, and learns from each how unusual they were together.

        Args:
            state: As from `new_state`; its rows of the entities named are changed.
            windows: The windows, those of an entity in order of time; its metrics in the same order in all of them.
            evidence: Each metric's evidence in nats, at least 0, shape (n,).
            judgeable: Whether the metric had a value and is no longer being learned, shape (n,).
            together: What the models of several metrics say; ``None``: there are none.
            onset: Since when each metric has been unusual by itself; -1: it is not; ``None``: none is; shape (n,).
            taught: Whether a window may be learned from; ``None``: each may, shape (m,).
            away: How far each metric lies from its last accepted normal while an incident of it is open, in nats;
                ``None``: none is; shape (n,).
            lent: Evidence that each metric was lent since it is news again, in nats; ``None``: none was; shape (n,).
        """
        m, n = len(windows.entity), len(evidence)
        records, shares, suggested = np.zeros(m, VERDICT), np.empty(n), np.full(n, np.nan)
        asked = together is not None
        if together is None:
            together = Together(np.zeros(m), np.zeros(n), np.full(n, np.nan))
        onset = np.full(n, NEVER) if onset is None else onset
        taught = np.ones(m, np.bool_) if taught is None else taught
        away, lent = np.zeros(n) if away is None else away, np.zeros(n) if lent is None else lent
        inputs = Inputs(evidence, judgeable, onset, taught, away, lent)
        with self._layout.opened(state, windows.entity) as (table, rows):
            windows = windows._replace(entity=rows)
            run(self._constants, table, windows, inputs, asked, together, records, shares, suggested)
        channels = ("metrics", "strongest", "together") if asked else ("metrics", "strongest")
        verdicts = Verdicts(*without_band(records), {name: records[name] for name in channels})
        return JoinedVerdicts(verdicts, records["incident"], records["seen"], shares, suggested, records["state_score"])


class Inputs(NamedTuple):
    """The arguments of `Joined.join` that are arrays over n metrics, and ``taught`` over m windows."""

    evidence: Array
    judgeable: Any
    onset: Ints
    taught: Any
    away: Array
    lent: Array


@kernel
def run(
    constants: Record,
    table: Table,
    windows: Windows,
    inputs: Inputs,
    asked: bool,
    together: Together,
    verdicts: Table,
    shares: Array,
    suggested: Array,
) -> None:
    """Joins the verdicts of windows one after the other, as `Joined.join`.

    Args:
        constants: Those of the model.
        table: The state; its records of the entities are changed.
        windows: The windows.
        inputs: Those of their metrics.
        asked: Whether ``together`` counts.
        together: What the models of several metrics say.
        verdicts: Records of `VERDICT`, shape (m,); written.
        shares: Written, shape (n,).
        suggested: Written where the model of all metrics makes the verdict, shape (n,).
    """
    config = constants.config
    for i in range(len(windows.time)):
        entity, verdict, time = table[windows.entity[i]], verdicts[i], windows.time[i]
        first, end = windows.first[i], windows.first[i + 1]
        by_model = together.evidence[i] if asked else 0.0

        metrics, mean, most, whole, again = _of_metrics(inputs, first, end)
        pieces = max(metrics, 1.0)
        surprise = compressed(mean_surprise_of(mean / pieces, pieces))
        average = tail_evidence(constants.calibration, entity.metrics, surprise)
        strongest = max(most - math.log(pieces), 0.0)

        seen, valid = entity.seen, metrics > 0
        trust = min(seen / config.learning, 1.0) if valid else 0.0
        verdict.metrics, verdict.strongest, verdict.together = average * trust, strongest * trust, by_model * trust
        combined = _combined(verdict, asked)
        verdict.probability = math.exp(-tail_rarity(constants.whole, entity.whole, combined))
        worth, worst = worth_of(constants.feedback, entity.feedback), float(entity.repeats.worst)
        both = combined * worth
        lent = (
            trust
            * worth
            * joined_again(constants.regimes, config.joined_half, entity.again, worst, again, time, config.threshold)
        )
        ranked = max(damp(constants.repeats, entity.repeats, both), lent)
        verdict.record_score = scored(ranked, config.joined_half)
        loud = is_alarm(verdict.record_score, config.threshold)
        kind = _LEARNING if seen < config.learning else _ANOMALY if loud else _NORMAL
        # an incident may end in a window that a rule keeps quiet
        reported = (valid or not inputs.taught[i]) and kind != _LEARNING
        busy = max(both, lent) >= constants.repeats.notable
        course = unrest(constants.repeats, entity.repeats, busy, verdict.record_score if reported else 0.0, False)
        verdict.kind, verdict.incident = course_of(config.threshold, course, kind, reported)
        verdict.since, begun = NEVER, NEVER
        if verdict.incident != _NONE:
            verdict.since = time if entity.repeats.onset == NEVER else entity.repeats.onset
        away, is_open = _mean_away(inputs.away[first:end], inputs.judgeable[first:end]), verdict.incident == _OPEN
        # the stronger of what metrics say by themselves, and all of them together
        verdict.state_score = scored(max(both, away), config.joined_half) if reported and (is_open or away > 0) else 0.0

        _share(inputs.evidence[first:end], whole, shares[first:end])
        if asked and by_model >= max(average, strongest) and together.shares[first:end].sum() > 0:
            shares[first:end] = together.shares[first:end]
            suggested[first:end] = together.expected[first:end]
        if verdict.incident == _OPEN and not is_alarm(entity.repeats.worst, config.threshold):
            begun = inputs.onset[first + np.argmax(shares[first:end])]  # it began when what carries it did
            if begun != NEVER:
                verdict.since = begun

        verdict.seen = seen
        if valid and inputs.taught[i]:
            if seen >= config.learning:
                learn_tail(constants.calibration, entity.metrics, surprise)
                learn_tail(constants.whole, entity.whole, combined)
            learn_repeats(constants.repeats, entity.repeats, both, time, course, begun)
            learn_joined_again(config.joined_half, entity.again, config.forget, course, time)
            fade(constants.feedback, entity.feedback)
            entity.seen = verdict.seen = seen + 1
        elif not inputs.taught[i]:
            conclude(constants.repeats, entity.repeats, course)


@kernel
def _of_metrics(inputs: Inputs, first: int, end: int) -> tuple[float, float, float, float, bool]:
    """Sums up the metrics of a window.

    Returns:
        Number of the judgeable ones, the sum of their clipped evidence, the largest evidence of one of them, the sum of
        the evidence of all metrics, and whether a judgeable one is news again.
    """
    metrics, mean, most, whole, again = 0.0, 0.0, 0.0, 0.0, False
    for j in range(first, end):
        whole += inputs.evidence[j]
        if inputs.judgeable[j]:
            metrics += 1
            mean += min(inputs.evidence[j], _CLIP)
            most = max(most, inputs.evidence[j])
            again |= inputs.lent[j] > 0
    return metrics, mean, most, whole, again


@kernel
def _mean_away(away: Array, judgeable: Any) -> float:
    """How far the metrics lie from their last accepted normal, in nats: the mean, each clipped."""
    whole, metrics = 0.0, 0
    for j in range(len(away)):
        if judgeable[j]:
            metrics += 1
            whole += min(away[j], _CLIP)
    return whole / max(metrics, 1)


@kernel
def _combined(verdict: Record, asked: bool) -> float:
    """-ln of the weighted harmonic mean of the channels' probabilities [Wilson 2019]."""
    if not asked:
        return _harmonic(verdict.metrics + _BY_EITHER, verdict.strongest + _BY_EITHER, -math.inf)
    return _harmonic(verdict.metrics + _BY_METRICS, verdict.strongest + _BY_STRONGEST, verdict.together + _BY_MODEL)


@kernel
def _harmonic(one: float, other: float, third: float) -> float:
    top = max(one, other, third)
    return max(top + math.log(math.exp(one - top) + math.exp(other - top) + math.exp(third - top)), 0.0)


@kernel
def _share(evidence: Array, whole: float, shares: Array) -> None:
    """Of each metric its share of the evidence of all; equal shares where there is none."""
    for j in range(len(evidence)):
        shares[j] = evidence[j] / whole if whole > 0 else 1.0 / len(evidence)
