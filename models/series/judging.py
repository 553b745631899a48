"""From a value of a series to its verdict: forecast, evidence, score, and what kind of news it is. Changes nothing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.evidence.change import Jump, jump
from models.evidence.departure import Departure, clock_of
from models.evidence.frozen import frozen_nats
from models.evidence.lingering import linger, rank
from models.evidence.point import compressed
from models.evidence.record import Range, range_so_far, record_evidence
from models.evidence.repeats import NEVER, damp
from models.evidence.score import combine_two, is_alarm, scored, weigh
from models.evidence.window import window_mean, window_surprise
from models.experts.base import Step
from models.experts.hour_of_day import predict_hour, visits_of
from models.experts.level import predict_level
from models.experts.log_level import predict_log_level, unit_so_far
from models.experts.wall_clock import is_weekend
from models.families.choice import Family
from models.families.suited import NAMES, Foreseen, foresee
from models.kernels import kernel, within
from models.numbers.arrays import LARGEST, SMALLEST, Array
from models.numbers.calibration import tail_evidence, tail_rarity
from models.records import Record, record_type
from models.regimes.axis import finest, place
from models.regimes.company import Company
from models.regimes.distance import away, state_score
from models.regimes.incident import CurrentValue
from models.regimes.reference import expect
from models.regimes.regimes import Decision, decide, is_same
from models.series.alarm import Ranked, counts, stuck_from, weigh_news
from models.series.birth import values_known
from models.series.course import Course
from models.series.explanation import CONTEXT, EXPERTS, shown, write_context, write_experts
from models.series.feedback import worth_of
from models.series.kinds import Appraisal, News, news_of
from models.series.mixture import Mixture, ends, middle, mixture_of, surprise
from models.series.past import Lived, lived_through
from models.series.peers import peers_log_prior, peers_prior
from models.verdicts import Kind

_COARSE = 1e-6
"""Differences below this share of the level mean nothing."""

_SPREAD_FROM = 2
"""Values from which on there is a band to be shown: fewer say nothing of how far values spread."""

EVIDENCE = ("point", "window", "record", "change", "frozen", "departure")
_FLOATS = ("record_score", "state_score", "state", "lent", "probability", "typical", "lower", "upper")
_INTS = ("kind", "since", "onset", "incident", "turned")
_GROUPS = {"evidence": EVIDENCE, "experts": (*EXPERTS, *NAMES), "expected": (*EXPERTS, *NAMES), "context": CONTEXT}
VERDICT = record_type(
    [
        *((name, np.float64) for name in _FLOATS),
        *((name, np.int64) for name in _INTS),
        *((name, np.float64, (len(names),)) for name, names in _GROUPS.items()),
    ]
)
"""A verdict as a record; the fields are those of `SeriesVerdicts`."""

_MIXTURE = Family.MIXTURE.value
_NORMAL, _LEARNING = Kind.NORMAL.code, Kind.LEARNING.code
_OPEN, _CLOSED = Course.OPEN.code, Course.CLOSED.code

OBSERVATION = record_type(
    [
        *((name, np.int64) for name in ("row", "machine", "time", "local", "kind", "family")),
        *((name, np.float64) for name in ("value", "samples")),
        *((name, np.bool_) for name in ("day_off", "taught")),
    ]
)
"""A value and what is known of it, as a record.

``row``: that of its series in the state; ``machine``: that of its machine, -1: not known; ``time``: end of the window,
epoch milliseconds; ``local``: the same on the wall clock, as if it were an epoch; ``kind``: code of `MetricKind`;
``family``: code of the `Family` that the user prescribes, or `NONE`; ``value``: NaN or infinite: missing; ``samples``:
those that the value is the mean of; ``day_off``: whether its hour counts as one of a weekend although it is none;
``taught``: whether the value may be learned from.
"""


class Evidence(NamedTuple):
    """What speaks for a value being news, and what is learned of that.

    Args:
        surprise: Of the value, compressed.
        point: Point evidence.
        mean_point: Its mean over the window.
        window: Surprise of that, compressed.
        step: The step from the value before.
        change: Surprise of that, compressed.
        weight: Weight of evidence.
        lingering: The surprise that lingers.
        departure: How far the value has left the median of the recent ones.
        recurs: Whether the window is one of those that may recur, or goes on with one that does.
    """

    surprise: float
    point: float
    mean_point: float
    window: float
    step: Jump
    change: float
    weight: float
    lingering: float
    departure: Departure
    recurs: bool


class Judgement(NamedTuple):
    """All that learning wants of the way to a verdict."""

    step: Step
    valid: bool
    lived: Range
    level: float
    mixture: Mixture
    band: Foreseen
    evidence: Evidence
    current: CurrentValue
    decision: Decision
    frozen: float
    past: Lived
    news: News
    begun: int


@kernel
def _step_of(config: Record, series: Record, observation: Record) -> tuple[Step, Range]:
    """What is known of a series before its value is judged, and the value."""
    seen, present = series.seen, series.level.mean
    if math.isfinite(observation.value):
        present = within(observation.value, -LARGEST, LARGEST)
    lived = range_so_far(series.record, present, seen)
    size = abs(series.level.mean) if seen > 0 else abs(present)
    resolution = max(_COARSE * size, SMALLEST)
    gap = float(max(observation.time - series.time, 0)) if seen > 0 else 0.0
    weekend = observation.day_off or is_weekend(observation.local)
    known = values_known(series.birth, seen, config.learning)
    return Step(present, seen, resolution, gap, observation.local, weekend, known), lived


@kernel
def _mixture(series: Record, step: Step) -> Mixture:
    peers = peers_prior(series.peers, step.seen)
    level = predict_level(series.level, step, peers)
    weights = (float(series.level.log_weight), float(series.log_level.log_weight), float(series.hour.log_weight))
    log_level = predict_log_level(series.log_level, step, peers, peers_log_prior(series.peers, step.seen))
    return mixture_of(level, log_level, predict_hour(series.hour, step, level), weights)


@kernel
def _band(constants: Record, series: Record, samples: float, step: Step, mixture: Mixture, lived: Range) -> Foreseen:
    """Surprise of the value and the band, by the family of the series."""
    if series.family.family != _MIXTURE:
        return foresee(series.family, step.value, samples, constants.edge)
    lower, upper = ends(mixture, constants.edge)
    if lived.low >= 0:
        lower = max(lower, 0.0)
    return Foreseen(surprise(mixture, step.value), lower, within(middle(mixture), lower, upper), upper)


_EQUAL = 1e-7
"""Values that differ by less than this share are the same: about the precision in which the last one is remembered."""


class Run(NamedTuple):
    """Evidence of exact repeats, in nats, with this value and before it; and whether it says now that it is stuck."""

    nats: float
    before: float
    stuck: bool


@kernel
def _run(series: Record, lived: Range, frozen: float, stuck: float) -> Run:
    """The evidence of exact repeats; none where the series was never anything else, which is not stuck.

    Means of equal samples may differ in their last bits, which is no variation.
    """
    varied = lived.high - lived.low > _EQUAL * max(abs(lived.low), abs(lived.high))
    nats, before = frozen if varied else 0.0, float(series.frozen.nats) if varied else 0.0
    return Run(nats, before, before < stuck <= nats)


@kernel
def judge(constants: Record, series: Record, company: Company, observation: Record, verdict: Record) -> Judgement:
    """Judges a value; changes nothing but the verdict.

    Args:
        constants: Those of the detector.
        series: The state of the series.
        company: What the other metrics of its machine say.
        observation: The value.
        verdict: A record of `VERDICT`; written.
    """
    config, valid = constants.config, math.isfinite(observation.value)
    step, lived = _step_of(config, series, observation)
    seen, present, mixture = step.seen, step.value, _mixture(series, step)
    band = _band(constants, series, observation.samples, step, mixture, lived)

    surprised = compressed(band.surprise)
    point = tail_evidence(constants.calibration, series.point, surprised)
    mean_point = window_mean(constants.window, float(series.window.mean), point)
    lasting = compressed(window_surprise(constants.window, mean_point))
    size = abs(series.level.mean) if seen > 0 else abs(present)
    leap = jump(series.change, present - band.typical, size, seen, step.resolution)
    changed = compressed(leap.surprise)
    trust = min(seen / config.learning, 1.0) if valid else 0.0
    by_point, by_window = point * trust, tail_evidence(constants.calibration, series.window, lasting) * trust
    by_record = record_evidence(config, lived, present, step.known, step.resolution) * trust
    by_change = tail_evidence(constants.calibration, series.change.tail, changed) * trust
    worth = worth_of(constants.feedback, series.feedback)
    weight = worth * weigh(
        by_point, config.weight_change * by_change, config.weight_window * by_window, config.weight_record * by_record
    )
    lingering = linger(
        constants.lingering, series.lingering.surprise, surprised + changed if valid else 0.0, step.known
    )
    by_rank = rank(constants.lingering, damp(constants.repeats, series.repeats, weight), worth * lingering, step.known)

    unit = unit_so_far(series.log_level, present)
    spot = place(present, unit)
    usual = expect(series.regime, spot, step, finest(step.resolution, present, unit))
    ranked = Ranked(by_rank, trust, worth, valid)
    weighed = weigh_news(constants, series, observation.local, step, lived.high - lived.low, usual, ranked)
    points = scored(weighed.weight, config.half) if valid else 0.0
    outside = (present < band.lower or present > band.upper) and not weighed.expected
    current = CurrentValue(
        spot,
        points if not weighed.expected else 0.0,
        weighed.alarm,
        counts(clock_of(series.departure)),
        seen,
        observation.time,
        valid,
        outside,
        place(mixture.parts[2].location, unit),
        visits_of(mixture.parts[2]),
    )
    decision = decide(constants.regimes, config, series.regime, current, company, usual)
    recurs = weighed.unusual or (weighed.expected and decision.inside)
    evidence = Evidence(
        surprised, point, mean_point, lasting, leap, changed, weight, lingering, weighed.departure, recurs
    )
    same = valid and seen > 0 and is_same(series.regime, current.place)
    frozen = frozen_nats(constants.frozen, series.frozen, same)
    run = _run(series, lived, frozen, stuck_from(config, weighed.alarm))
    past = lived_through(
        series.past, observation.time, series.time, present, band.lower, band.typical, band.upper, same
    )
    begun = past.same_since if run.stuck else NEVER
    strange = (valid and is_alarm(current.score, weighed.alarm) and not decision.explained) or run.stuck
    appraisal = Appraisal(weight, current.score, weighed.alarm, run.nats, run.before, strange, valid)
    news = news_of(config, constants.repeats, series.repeats, decision, appraisal, seen, observation.time, begun)

    _write_news(verdict, news, points)
    verdict.state, verdict.lent = _state(decision, news) if valid else 0.0, weighed.again if valid else 0.0
    verdict.state_score = state_score(constants.regimes, verdict.state)
    verdict.probability = math.exp(
        -combine_two(
            tail_rarity(constants.calibration, series.point, surprised) * trust,
            tail_rarity(constants.calibration, series.window, lasting) * trust,
        )
    )
    is_known = valid or seen > 0
    _write_band(verdict, band, is_known, seen >= _SPREAD_FROM)
    nats = (by_point, by_window, by_record, by_change, run.nats, weighed.departure.nats if valid else 0.0)
    _write_evidence(verdict.evidence, nats)
    write_experts(verdict, series.family.family, mixture, shown(band.typical, is_known) if is_known else 0.0)
    write_context(verdict, series, observation, step, past, current, decision, news.kind, unit)
    level = series.level.mean if seen > 0 else present
    return Judgement(step, valid, lived, level, mixture, band, evidence, current, decision, frozen, past, news, begun)


@kernel
def _write_news(verdict: Record, news: News, points: float) -> None:
    verdict.record_score, verdict.kind, verdict.since = points, news.kind, news.since
    verdict.onset, verdict.incident, verdict.turned = news.onset, news.incident, news.turned


@kernel
def _write_evidence(evidence: Array, nats: tuple[float, float, float, float, float, float]) -> None:
    for place_of in range(len(nats)):
        evidence[place_of] = nats[place_of]


@kernel
def _write_band(verdict: Record, band: Foreseen, is_known: bool, wide: bool) -> None:
    verdict.lower, verdict.upper = shown(band.lower, wide), shown(band.upper, wide)
    verdict.typical = shown(band.typical, is_known)


@kernel
def _state(decision: Decision, news: News) -> float:
    """How far the value lies from the last accepted normal, in nats; 0: no incident is open, reported or not."""
    is_open = decision.inside or news.incident == _OPEN
    if news.kind == _LEARNING or news.incident == _CLOSED or not is_open:
        return 0.0
    return away(decision.expected)
