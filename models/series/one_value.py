"""What is made of one value of one series: a verdict, and what is learned. Compiled; the detector runs it over many."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.evidence.change import Jump, jump, learn_jump
from models.evidence.combine import combine_two, is_alarm, scored, weigh
from models.evidence.departure import Departure, clock_of, learn_departure
from models.evidence.frozen import frozen_nats, learn_frozen
from models.evidence.lingering import linger, rank
from models.evidence.point import compressed
from models.evidence.record import Range, learn_record, range_so_far, record_evidence
from models.evidence.recurring import learn_recurring
from models.evidence.repeats import NEVER, conclude, damp, learn_repeats
from models.evidence.window import window_mean, window_surprise
from models.experts.base import Lesson, Step
from models.experts.days import learn_days
from models.experts.hour_of_day import learn_hour, predict_hour, visits_of
from models.experts.level import learn_level, predict_level
from models.experts.log_level import learn_log_level, predict_log_level, unit_so_far
from models.experts.wall_clock import is_weekend
from models.families.choice import Family
from models.families.suited import NAMES, Foreseen, foresee, learn_families
from models.kernels import kernel, within
from models.numbers.arrays import LARGEST, SMALLEST, Array
from models.numbers.calibration import learn_tail, tail_evidence, tail_rarity
from models.records import Record, Table, record_type
from models.regimes.again import learn_again
from models.regimes.axis import finest, place
from models.regimes.company import Company, begin, count, listen, nobody
from models.regimes.distance import away, state_score
from models.regimes.incident import Found
from models.regimes.kept import SLOTS
from models.regimes.levels import level_in
from models.regimes.reference import expect
from models.regimes.regimes import (
    Decision,
    conclude_regime,
    decide,
    is_same,
    learn_regime,
    left_before,
    open_since,
)
from models.series.alarm import Ranked, counts, stuck_from, weigh_news
from models.series.before_outage import keep, restore
from models.series.course import Course
from models.series.explanation import CONTEXT, EXPERTS, shown, write_context, write_experts
from models.series.feedback import learn_feedback, worth_of
from models.series.kinds import Judged, Told, tell
from models.series.mixture import Mixture, densities, ends, middle, mixture_of, reweigh, surprise
from models.series.past import Lived, learn_past, lived_through
from models.series.peers import peers_prior
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


GIVEN = record_type(
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

STANDING = record_type(
    [*((name, np.int64) for name in ("onset", "regime")), ("values", np.float64), ("levels", np.float64, (SLOTS,))]
)
"""How a series stands after a value, as a record; the fields are those of `Standing`."""


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
    found: Found
    decision: Decision
    frozen: float
    past: Lived
    told: Told
    begun: int


@kernel
def run(constants: Record, table: Table, machines: Table, given: Table, verdicts: Table, standings: Table) -> None:
    """Judges values one after the other, and learns from each before the next.

    Args:
        constants: Those of the detector.
        table: The state of series; changed where a value may be learned from.
        machines: The state of machines; changed likewise.
        given: Records of `GIVEN`, shape (n,).
        verdicts: Records of `VERDICT`, shape (n,); written.
        standings: Records of `STANDING`, shape (n,); written.
    """
    for i in range(len(given)):
        series, owner = table[given[i].row], given[i].machine
        learns = given[i].taught and math.isfinite(given[i].value)
        company = nobody()
        if owner >= 0:
            if learns:
                begin(machines[owner].company, given[i].time)
            company = _listen(constants, machines[owner].company, series.regime)
        judgement = judge(constants, series, company, given[i], verdicts[i])
        if learns:
            left = left_before(series.regime, judgement.decision, series.seen)
            learn(constants, series, given[i], judgement)
            if owner >= 0:
                _tell(machines[owner].company, series.regime, judgement.decision, left)
        elif judgement.valid:
            fade(constants, series, judgement)
        standings[i].onset, standings[i].values = open_since(series.regime), series.seen
        standings[i].regime = series.regime.active
        for slot in range(SLOTS):
            standings[i].levels[slot] = level_in(series.regime, series.log_level.unit, slot)


@kernel
def _listen(constants: Record, machine: Record, regime: Record) -> Company:
    return listen(machine, open_since(regime) if regime.abrupt else NEVER, constants.regimes.patience)


@kernel
def _tell(machine: Record, regime: Record, decision: Decision, left: float) -> None:
    inside = decision.inside and regime.abrupt
    count(machine, regime.counted, inside, decision.since, decision.switch, left)
    regime.counted = inside


@kernel
def _step_of(series: Record, given: Record) -> tuple[Step, Range]:
    """What is known of a series before its value is judged, and the value."""
    seen, present = series.seen, series.level.mean
    if math.isfinite(given.value):
        present = within(given.value, -LARGEST, LARGEST)
    lived = range_so_far(series.record, present, seen)
    size = abs(series.level.mean) if seen > 0 else abs(present)
    resolution = max(_COARSE * size, SMALLEST)
    gap = float(max(given.time - series.time, 0)) if seen > 0 else 0.0
    weekend = given.day_off or is_weekend(given.local)
    return Step(present, seen, resolution, gap, given.local, weekend), lived


@kernel
def _mixture(series: Record, step: Step) -> Mixture:
    peers = peers_prior(series.peers, step.seen)
    level = predict_level(series.level, step, peers)
    weights = (float(series.level.log_weight), float(series.log_level.log_weight), float(series.hour.log_weight))
    return mixture_of(
        level, predict_log_level(series.log_level, step, peers), predict_hour(series.hour, step, level), weights
    )


@kernel
def _band(constants: Record, series: Record, given: Record, step: Step, mixture: Mixture, lived: Range) -> Foreseen:
    """Surprise of the value and the band, by the family of the series."""
    if series.family.family != _MIXTURE:
        return foresee(series.family, step.value, given.samples, constants.edge)
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
def judge(constants: Record, series: Record, company: Company, given: Record, verdict: Record) -> Judgement:
    """Judges a value; changes nothing but the verdict.

    Args:
        constants: Those of the detector.
        series: The state of the series.
        company: What the other metrics of its machine say.
        given: The value.
        verdict: A record of `VERDICT`; written.
    """
    config, valid = constants.config, math.isfinite(given.value)
    step, lived = _step_of(series, given)
    seen, present, mixture = step.seen, step.value, _mixture(series, step)
    band = _band(constants, series, given, step, mixture, lived)

    surprised = compressed(band.surprise)
    point = tail_evidence(constants.calibration, series.point, surprised)
    mean_point = window_mean(constants.window, float(series.window.mean), point)
    lasting = compressed(window_surprise(constants.window, mean_point))
    size = abs(series.level.mean) if seen > 0 else abs(present)
    leap = jump(series.change, present - band.typical, size, seen, step.resolution)
    changed = compressed(leap.surprise)
    trust = min(seen / config.learning, 1.0) if valid else 0.0
    by_point, by_window = point * trust, tail_evidence(constants.calibration, series.window, lasting) * trust
    by_record = record_evidence(config, lived, present, seen, step.resolution) * trust
    by_change = tail_evidence(constants.calibration, series.change.tail, changed) * trust
    worth = worth_of(constants.feedback, series.feedback)
    weight = worth * weigh(
        by_point, config.weight_change * by_change, config.weight_window * by_window, config.weight_record * by_record
    )
    lingering = linger(constants.lingering, series.lingering.surprise, surprised + changed if valid else 0.0, seen)
    by_rank = rank(constants.lingering, damp(constants.repeats, series.repeats, weight), worth * lingering, seen)

    unit = unit_so_far(series.log_level, present)
    spot = place(present, unit)
    usual = expect(series.regime, spot, step, finest(step.resolution, present, unit))
    ranked = Ranked(by_rank, trust, worth, valid)
    weighed = weigh_news(constants, series, given.local, step, lived.high - lived.low, usual, ranked)
    points = scored(weighed.weight, config.half) if valid else 0.0
    outside = (present < band.lower or present > band.upper) and not weighed.expected
    found = Found(
        spot,
        points if not weighed.expected else 0.0,
        weighed.alarm,
        counts(clock_of(series.departure)),
        seen,
        given.time,
        valid,
        outside,
        place(mixture.parts[2].location, unit),
        visits_of(mixture.parts[2]),
    )
    decision = decide(constants.regimes, config, series.regime, found, company, usual)
    recurs = weighed.unusual or (weighed.expected and decision.inside)
    evidence = Evidence(
        surprised, point, mean_point, lasting, leap, changed, weight, lingering, weighed.departure, recurs
    )
    same = valid and seen > 0 and is_same(series.regime, found.place)
    frozen = frozen_nats(constants.frozen, series.frozen, same)
    run = _run(series, lived, frozen, stuck_from(config, weighed.alarm))
    past = lived_through(series.past, given.time, series.time, present, band.lower, band.typical, band.upper, same)
    begun = past.same_since if run.stuck else NEVER
    strange = (valid and is_alarm(found.score, weighed.alarm) and not decision.explained) or run.stuck
    judged = Judged(weight, found.score, weighed.alarm, run.nats, run.before, strange, valid)
    told = tell(config, constants.repeats, series.repeats, decision, judged, seen, given.time, begun)

    _write_told(verdict, told, points)
    verdict.state, verdict.lent = _state(decision, told) if valid else 0.0, weighed.again if valid else 0.0
    verdict.state_score = state_score(constants.regimes, verdict.state)
    verdict.probability = math.exp(
        -combine_two(
            tail_rarity(constants.calibration, series.point, surprised) * trust,
            tail_rarity(constants.calibration, series.window, lasting) * trust,
        )
    )
    known = valid or seen > 0
    _write_band(verdict, band, known, seen >= _SPREAD_FROM)
    nats = (by_point, by_window, by_record, by_change, run.nats, weighed.departure.nats if valid else 0.0)
    _write_evidence(verdict.evidence, nats)
    write_experts(verdict, series.family.family, mixture, shown(band.typical, known) if known else 0.0)
    write_context(verdict, series, given, step, past, found, decision, told.kind, unit)
    level = series.level.mean if seen > 0 else present
    return Judgement(step, valid, lived, level, mixture, band, evidence, found, decision, frozen, past, told, begun)


@kernel
def _write_told(verdict: Record, told: Told, points: float) -> None:
    verdict.record_score, verdict.kind, verdict.since = points, told.kind, told.since
    verdict.onset, verdict.incident, verdict.turned = told.onset, told.incident, told.turned


@kernel
def _write_evidence(evidence: Array, nats: tuple[float, float, float, float, float, float]) -> None:
    for place_of in range(len(nats)):
        evidence[place_of] = nats[place_of]


@kernel
def _write_band(verdict: Record, band: Foreseen, known: bool, wide: bool) -> None:
    verdict.lower, verdict.upper = shown(band.lower, wide), shown(band.upper, wide)
    verdict.typical = shown(band.typical, known)


@kernel
def _state(decision: Decision, told: Told) -> float:
    """How far the value lies from the last accepted normal, in nats; 0: no incident is open, told of or not."""
    is_open = decision.inside or told.incident == _OPEN
    if told.kind == _LEARNING or told.incident == _CLOSED or not is_open:
        return 0.0
    return away(decision.told)


@kernel
def _lesson(config: Record, judgement: Judgement) -> Lesson:
    """What is to be learned from a value: what lies far outside of its band, as if it lay near it, and with doubt."""
    step, band, lived = judgement.step, judgement.band, judgement.lived
    # what was lived through is plausible: else a series that began constant would never learn how it varies
    lowest = min(band.typical - config.reach * (band.typical - band.lower), lived.low)
    highest = max(band.typical + config.reach * (band.upper - band.typical), lived.high)
    harmless = within(step.value, lowest, highest) if step.seen > 0 else step.value
    return Lesson(harmless, config.doubt / max(judgement.evidence.point, config.doubt))


@kernel
def learn(constants: Record, series: Record, given: Record, judgement: Judgement) -> None:
    """Learns from a value that is there.

    Args:
        constants: Those of the detector.
        series: The state of the series; changed.
        given: The value.
        judgement: As from `judge`.
    """
    config, step, decision, evidence = constants.config, judgement.step, judgement.decision, judgement.evidence
    kept = series.before.level.count >= 0
    if decision.dead and not kept:
        keep(series)
    lesson, mixture = _lesson(config, judgement), judgement.mixture
    weights = reweigh(mixture.log_weights, densities(mixture, lesson.value), config.weight_forget)
    learn_families(
        config, constants.choice, series.family, mixture, step, lesson, given.kind, given.family, given.samples
    )
    learn_level(config, series.level, step.value, lesson)
    learn_log_level(config, series.log_level, step.value, lesson)
    learn_hour(config, series.hour, step, lesson, mixture.parts[0])
    series.level.log_weight, series.log_level.log_weight, series.hour.log_weight = weights

    if step.seen >= config.learning:
        learn_tail(constants.calibration, series.point, evidence.surprise)
        learn_tail(constants.calibration, series.window, evidence.window)
        learn_tail(constants.calibration, series.change.tail, evidence.change)
        series.window.mean = evidence.mean_point
    learn_jump(config, series.change, evidence.step, step.seen, config.reach * constants.edge, step.resolution)
    learn_record(config, series.record, judgement.lived, step.value, judgement.level, step.resolution)
    learn_frozen(constants.frozen, series.frozen, judgement.frozen > 0, step.seen, judgement.frozen)
    learn_repeats(
        constants.repeats, series.repeats, evidence.weight, given.time, judgement.told.unrest, judgement.begun
    )
    series.lingering.surprise = evidence.lingering
    learn_departure(constants.departures, series.departure, evidence.departure, step.value, step.gap)
    if evidence.recurs:
        learn_recurring(series.recurring, given.local, float(series.departure.clock), evidence.departure.times)
    fades = decision.concerned and decision.returned and decision.incident.serious and decision.incident.abrupt
    peak, mean = decision.incident.peak, float(series.regime.mean)
    learn_again(constants.regimes, config.half, series.again, config.forget, step.gap, fades, peak, mean)
    learn_regime(constants.regimes, config, series.regime, judgement.found.place, step, decision)
    if decision.concerned and decision.returned and kept:
        restore(series)
    if decision.concerned and not decision.inside:
        series.before.level.count = -1.0
    learn_past(series.past, judgement.past, given.time, step.value)
    learn_days(series.days, given.time, step.local, step.weekend)
    learn_feedback(constants.feedback, series.feedback, step.value - judgement.band.typical)
    series.seen, series.time = step.seen + 1, given.time


@kernel
def fade(constants: Record, series: Record, judgement: Judgement) -> None:
    """Lets an incident that goes on come to its end at a value that must not be learned from.

    The last values become less present with it; nothing begins or grows, and no expert learns. Without an incident
    the state stays as it was.

    Args:
        constants: Those of the detector.
        series: The state of the series; changed.
        judgement: As from `judge`.
    """
    if series.repeats.onset == NEVER and not judgement.decision.incident.was:
        return
    evidence = judgement.evidence
    conclude_regime(constants.regimes, series.regime, judgement.decision)
    conclude(constants.repeats, series.repeats, judgement.told.unrest)
    series.window.mean = min(float(series.window.mean), evidence.mean_point)
    series.lingering.surprise = min(float(series.lingering.surprise), evidence.lingering)
    if abs(evidence.step.deviation) < abs(series.change.before):
        series.change.before = evidence.step.deviation
