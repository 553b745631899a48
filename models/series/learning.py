"""What a series learns from a value that was judged, or from one that must not be learned from."""

from __future__ import annotations

from models.evidence.change import learn_jump
from models.evidence.departure import learn_departure
from models.evidence.frozen import learn_frozen
from models.evidence.record import learn_record
from models.evidence.recurring import learn_recurring
from models.evidence.repeats import NEVER, conclude, learn_repeats
from models.experts.base import Lesson
from models.experts.days import learn_days
from models.experts.hour_of_day import learn_hour
from models.experts.level import learn_level
from models.experts.log_level import learn_log_level
from models.families.suited import learn_families
from models.kernels import kernel, within
from models.numbers.calibration import learn_tail
from models.records import Record
from models.regimes.again import learn_again
from models.regimes.regimes import conclude_regime, learn_regime
from models.series.before_outage import keep, restore
from models.series.birth import learn_birth
from models.series.feedback import learn_feedback
from models.series.judging import Judgement
from models.series.mixture import densities, reweigh
from models.series.past import learn_past


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
def learn(constants: Record, series: Record, observation: Record, judgement: Judgement) -> None:
    """Learns from a value that is there.

    Args:
        constants: Those of the detector.
        series: The state of the series; changed.
        observation: The value.
        judgement: As from `judge`.
    """
    config, step, decision, evidence = constants.config, judgement.step, judgement.decision, judgement.evidence
    kept = series.before.level.count >= 0
    if decision.dead and not kept:
        keep(series)
    lesson, mixture = _lesson(config, judgement), judgement.mixture
    weights = reweigh(mixture.log_weights, densities(mixture, lesson.value), config.weight_forget)
    family, samples = observation.family, observation.samples
    learn_families(config, constants.choice, series.family, mixture, step, lesson, observation.kind, family, samples)
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
        constants.repeats, series.repeats, evidence.weight, observation.time, judgement.news.unrest, judgement.begun
    )
    series.lingering.surprise = evidence.lingering
    learn_departure(constants.departures, series.departure, evidence.departure, step.value, step.gap)
    if evidence.recurs:
        learn_recurring(series.recurring, observation.local, float(series.departure.clock), evidence.departure.times)
    fades = decision.concerned and decision.returned and decision.incident.serious and decision.incident.abrupt
    peak, mean = decision.incident.peak, float(series.regime.mean)
    learn_again(constants.regimes, config.half, series.again, config.forget, step.gap, fades, peak, mean)
    learn_regime(constants.regimes, config, series.regime, judgement.current.place, step, decision)
    if decision.concerned and decision.returned and kept:
        restore(series)
    if decision.concerned and not decision.inside:
        series.before.level.count = -1.0
    learn_past(series.past, judgement.past, observation.time, step.value)
    learn_days(series.days, observation.time, step.local, step.weekend)
    learn_birth(series.birth, step.value)
    learn_feedback(constants.feedback, series.feedback, step.value - judgement.band.typical)
    series.seen, series.time = step.seen + 1, observation.time


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
    conclude(constants.repeats, series.repeats, judgement.news.unrest)
    series.window.mean = min(float(series.window.mean), evidence.mean_point)
    series.lingering.surprise = min(float(series.lingering.surprise), evidence.lingering)
    if abs(evidence.step.deviation) < abs(series.change.before):
        series.change.before = evidence.step.deviation
