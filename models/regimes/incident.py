"""Incidents: from a surprise until it is over or another regime holds, and what speaks for such a regime meanwhile."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.evidence.repeats import NEVER
from models.evidence.score import scored
from models.kernels import kernel, within
from models.numbers.arrays import Columns
from models.records import Record
from models.regimes.challenger import Challenger, challenge, challenger_of, heavy, learn_off
from models.regimes.config import RegimesConfig
from models.regimes.reference import Expected

_END = 690.0
"""sinh of places beyond this is no float."""


class CurrentValue(NamedTuple):
    """What is known of a value when its kind is asked for.

    Args:
        place: Where the value lies on the axis.
        score: Its `record_score`; 0 where it is expected at its time.
        bar: The score from which it is reported.
        counts: What its evidence counts beside that of a window of five minutes, in (0, 1].
        seen: Values learned so far.
        time: When, epoch milliseconds.
        valid: Whether there is a value.
        outside: Whether it lies outside of its band.
        at_hour: Where it lay at this hour of the days before, on the axis.
        visits: How many values that was learned from, in effect.
    """

    place: float
    score: float
    bar: float
    counts: float
    seen: float
    time: int
    valid: bool
    outside: bool
    at_hour: float
    visits: float


class Incident(NamedTuple):
    """The open incident of a series.

    Args:
        weight: Logarithm of the Bayes factor of the challenger against the reference, tempered; 0: no incident.
        strength: The same with larger steps: the evidence that it is one, in nats.
        peak: Largest `record_score` so far; or, after an abrupt onset, what all of them add up to, if that is more and
            some value of it lay outside of its band: else there is no window whose anomaly could be reported.
        onset: When it began.
        same: How often a value was exactly that before.
        announced: Whether a change of state has been announced.
        serious: Whether a value of it lay where no usual one does.
        abrupt: Whether it began with a jump.
        evident: Whether a value of it lay outside of its band.
        challenger: Where values have been since.
        was: Whether it was open before this value.
        gain: What this value says for the challenger: its log density less that of the reference.
    """

    weight: float
    strength: float
    peak: float
    onset: int
    same: float
    announced: bool
    serious: bool
    abrupt: bool
    evident: bool
    challenger: Challenger
    was: bool
    gain: float


_NUMBERS = ("weight", "strength", "peak", "same", *Challenger._fields)
_FLAGS = ("told", "serious", "abrupt", "evident")


def new_state(n: int) -> Columns:
    """The columns for n series without an incident."""
    columns: Columns = {name: np.zeros(n, np.float32) for name in _NUMBERS}
    columns |= {name: np.zeros(n, np.bool_) for name in _FLAGS}
    return columns | {"onset": np.full(n, NEVER, np.int64)}


@kernel
def go_on(
    config: RegimesConfig,
    half: float,
    regime: Record,
    current: CurrentValue,
    expected: Expected,
    step: float,
    creeping: bool,
    reminds: bool,
) -> Incident:
    """The incident after one more value; where none was open one begins, or stays closed.

    Args:
        config: The constants.
        half: Weight of evidence that scores 50.
        regime: The columns.
        current: What is known of the value.
        expected: What the reference expected.
        step: How far the value is from the one before, on the axis.
        creeping: Whether it may begin an incident without a jump.
        reminds: Whether a kept regime explains it so much better that it may begin one.
    """
    away, leap = abs(expected.off) / expected.scale, abs(step) / expected.scale
    surprises = away >= config.trigger
    jumps = (away >= config.start or reminds) and leap >= config.jump
    was_open = regime.weight > 0
    was = was_open and (regime.abrupt or not jumps)  # a jump begins an incident of its own
    begins = not was and (jumps or (creeping and (surprises or reminds)))
    before = Challenger(float(regime.number), float(regime.mean), float(regime.squares), float(regime.latest))
    gain = config.most
    if not begins:
        gain = challenge(before, expected.off, expected.scale) - heavy(expected.off / expected.scale)
    weight = (float(regime.weight) if was else 0.0) + within(gain, config.least, config.most)
    strength = (float(regime.strength) if was else 0.0) + current.counts * within(
        gain, -config.recall_most, config.recall_most
    )
    abrupt = regime.abrupt if was else jumps
    evident = current.outside or (was and regime.evident)
    loudest = current.score
    if abrupt and evident:
        loudest = max(loudest, scored(max(strength, 0.0), half))
    return Incident(
        within(weight, 0.0, config.change) if was or begins else 0.0,
        strength,
        max(float(regime.peak) if was_open else 0.0, loudest),
        regime.onset if was else current.time,
        regime.same + (1.0 if step == 0 else 0.0) if was else 0.0,
        was and regime.told,
        (was and regime.serious) or surprises,
        abrupt,
        evident,
        learn_off(before, expected.off, config.pace) if was else challenger_of(expected.off),
        was,
        gain,
    )


@kernel
def is_dead(config: RegimesConfig, current: CurrentValue, expected: Expected) -> bool:
    """Whether a value is next to nothing beside what the reference expected."""
    usual = min(abs(current.place - expected.off), _END)
    return abs(current.place) <= math.asinh(config.dead * math.sinh(usual))


@kernel
def is_alive(config: RegimesConfig, incident: Incident, current: CurrentValue, expected: Expected, dead: bool) -> bool:
    """Whether the present level can be one to live at: not that of something dead or frozen, or for long enough.

    Args:
        config: The constants.
        incident: The incident after the value.
        current: What is known of the value.
        expected: What the reference expected.
        dead: As from `is_dead`.
    """
    varied = expected.scale > expected.floor
    frozen = incident.same >= 0.8 * (incident.challenger.number - 1) and varied
    return not (dead or frozen) or current.time - incident.onset >= config.outage


@kernel
def is_level(config: RegimesConfig, incident: Incident, expected: Expected) -> bool:
    """Whether values have been at a level of their own since an abrupt onset, and this one is."""
    challenger = incident.challenger
    slack = config.tolerance * abs(challenger.mean) + expected.scale
    return incident.abrupt and abs(challenger.latest - challenger.mean) <= slack and incident.gain > 0


@kernel
def write_incident(regime: Record, incident: Incident, announced: bool) -> None:
    """Remembers an incident that stays open; ``announced``: whether a change of state has been announced by now."""
    regime.weight, regime.strength, regime.peak = incident.weight, incident.strength, incident.peak
    regime.onset, regime.same = incident.onset, incident.same
    regime.told, regime.serious = announced, incident.serious
    regime.abrupt, regime.evident = incident.abrupt, incident.evident
    regime.number, regime.mean, regime.squares, regime.latest = incident.challenger


@kernel
def no_incident() -> Incident:
    """What there is while all is as expected."""
    nobody = Challenger(0.0, 0.0, 0.0, 0.0)
    return Incident(0.0, 0.0, 0.0, NEVER, 0.0, False, False, False, False, nobody, False, 0.0)
