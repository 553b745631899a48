"""Incidents: from a surprise until it is over or another regime holds, and what speaks for such a regime meanwhile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, clamp
from models.evidence.combine import score
from models.evidence.repeats import NEVER
from models.regimes.challenger import Challenger, heavy
from models.regimes.config import RegimesConfig
from models.regimes.reference import Expected

_VARIED = 4.0
"""What varies by less than so many of the smallest scales repeats itself without being frozen."""


_END = 690.0
"""sinh of places beyond this is no float."""


class Found(NamedTuple):
    """What is known of n values when their kind is asked for; all of shape (n,).

    Args:
        place: Where the values lie on the axis.
        score: Their `record_score`.
        floor: Differences on the axis below this mean nothing.
        seen: Values learned so far.
        time: When, epoch milliseconds.
        gap: Milliseconds since the value before.
        valid: Whether there is a value.
        outside: Whether it lies outside of its band.
    """

    place: Array
    score: Array
    floor: Array
    seen: Array
    time: Ints
    gap: Array
    valid: Flags
    outside: Flags


class Incident(NamedTuple):
    """The open incidents of n series; all of shape (n,).

    Args:
        weight: Logarithm of the Bayes factor of the challenger against the reference, tempered; 0: no incident.
        strength: The same with larger steps: the evidence that it is one, in nats.
        peak: Largest `record_score` so far; or, after an abrupt onset, what all of them add up to, if that is more and
            some value of it lay outside of its band: else there is no window of which an anomaly could be told.
        onset: When it began.
        same: How often a value was exactly that before.
        told: Whether a change of state has been announced.
        serious: Whether a value of it lay where no usual one does.
        abrupt: Whether it began with a jump.
        evident: Whether a value of it lay outside of its band.
        challenger: Where values have been since.
    """

    weight: Array
    strength: Array
    peak: Array
    onset: Ints
    same: Array
    told: Flags
    serious: Flags
    abrupt: Flags
    evident: Flags
    challenger: Challenger

    def columns(self) -> dict[str, Array | Ints | Flags]:
        """All by name."""
        own = self._asdict()
        return {**{name: own[name] for name in Incident._fields[:-1]}, **self.challenger._asdict()}


class News(NamedTuple):
    """What a value said of n incidents; all of shape (n,).

    Args:
        reference: Log density that the reference gave it, as of `heavy`.
        gain: Log density of the challenger less that of the reference.
        was: Whether the incident was open before.
    """

    reference: Array
    gain: Array
    was: Flags


def new_state(n: int) -> Columns:
    """The columns for n series without an incident."""
    numbers = ("weight", "strength", "peak", "same", *Challenger._fields)
    columns: Columns = {name: np.zeros(n, np.float32) for name in numbers}
    columns |= {name: np.zeros(n, np.bool_) for name in ("told", "serious", "abrupt", "evident")}
    return columns | {"onset": np.full(n, NEVER, np.int64)}


def go_on(
    config: RegimesConfig,
    half: float,
    state: Rows,
    found: Found,
    told: Expected,
    step: Array,
    *,
    creeping: Flags,
    reminds: Flags,
) -> tuple[Incident, News]:
    """Incidents after one more value each; where none was open one begins, or stays closed.

    Args:
        config: The constants.
        half: Weight of evidence that scores 50.
        state: The columns of these series.
        found: What is known of the values.
        told: What the reference expected.
        step: How far the value is from the one before, on the axis, shape (n,).
        creeping: Whether it may begin an incident without a jump, shape (n,).
        reminds: Whether a kept regime explains it so much better that it may begin one, shape (n,).
    """
    away, leap, grown = np.abs(told.off) / told.scale, np.abs(step) / told.scale, found.seen >= config.young
    surprises = away >= config.trigger
    jumps = ((away >= config.start) | reminds) & (leap >= config.jump) & grown
    was_open, was_abrupt = state["weight"] > 0, state["abrupt"] > 0
    was: Flags = was_open & (was_abrupt | ~jumps)  # a jump begins an incident of its own
    begins = ~was & (jumps | (creeping & grown & (surprises | reminds)))
    before = Challenger(*(state[name].astype(np.float64) for name in Challenger._fields))
    reference = heavy(told.off / told.scale)
    gain = np.where(begins, config.most, before.log_density(told.off, told.scale) - reference)
    weight = np.where(was, state["weight"], 0.0) + clamp(gain, config.least, config.most)
    strength = np.where(was, state["strength"], 0.0) + clamp(gain, -config.recall_most, config.recall_most)
    abrupt = np.where(was, was_abrupt, jumps)
    evident: Flags = (was & (state["evident"] > 0)) | found.outside
    loudest = np.maximum(found.score, np.where(abrupt & evident, score(np.maximum(strength, 0.0), half), 0.0))
    after = Incident(
        weight=np.where(was | begins, clamp(weight, 0.0, config.cap), 0.0),
        strength=strength,
        peak=np.maximum(np.where(was_open, state["peak"], 0.0), loudest),
        onset=np.where(was, state["onset"].astype(np.int64), found.time),
        same=np.where(was, state["same"] + (step == 0), 0.0),
        told=was & (state["told"] > 0),
        serious=(was & (state["serious"] > 0)) | surprises,
        abrupt=abrupt,
        evident=evident,
        challenger=before.learn(told.off, config.pace, ~was),
    )
    return after, News(reference, gain, was)


def is_dead(config: RegimesConfig, found: Found, told: Expected) -> Flags:
    """Whether values are next to nothing beside what the reference expected."""
    usual = np.minimum(np.abs(found.place - told.off), _END)
    dead: Flags = np.abs(found.place) <= np.arcsinh(config.dead * np.sinh(usual))
    return dead


def is_alive(config: RegimesConfig, incident: Incident, found: Found, told: Expected, dead: Flags) -> Flags:
    """Whether the present level can be one to live at: not that of something dead or frozen, or for long enough.

    Args:
        config: The constants.
        incident: The incidents after the value.
        found: What is known of the values.
        told: What the reference expected.
        dead: As from `is_dead`, shape (n,).
    """
    lasts = found.time - incident.onset
    varied = told.scale > _VARIED * told.floor
    frozen = (incident.same >= 0.8 * (incident.challenger.number - 1)) & varied
    return (~dead | (lasts >= config.dead_for)) & (~frozen | (lasts >= config.frozen_for))
