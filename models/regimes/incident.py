"""Incidents: from a surprise until it is over or another regime holds, and what speaks for such a regime meanwhile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, clamp
from models.evidence.repeats import NEVER
from models.regimes.axis import place
from models.regimes.challenger import Challenger, heavy
from models.regimes.config import RegimesConfig

_SIDE = 3.29
"""Half of the band that holds 99.9 % of a normal distribution, in standard deviations."""

_FINEST = 1e-6


class Surprise(NamedTuple):
    """What the detector found of n values, in units of the first regime; all of shape (n,).

    Args:
        value: The values.
        lower: Lower end of the band.
        typical: What was expected.
        upper: Upper end of the band.
        point: Point evidence in nats.
        change: Change evidence in nats.
        score: `record_score` before kinds.
        resolution: Differences below this mean nothing.
        seen: Values learned so far.
        time: When, epoch milliseconds.
        valid: Whether there is a value.
    """

    value: Array
    lower: Array
    typical: Array
    upper: Array
    point: Array
    change: Array
    score: Array
    resolution: Array
    seen: Array
    time: Ints
    valid: Flags


class Incident(NamedTuple):
    """The open incidents of n series; all of shape (n,).

    Args:
        weight: Logarithm of the Bayes factor of the challenger against the incumbent, tempered; 0: no incident.
        strength: The same with larger steps: what an operator would call its size.
        peak: Largest `record_score` so far.
        onset: When it began.
        last: Place of the latest value on the axis.
        same: How often it was exactly that of the value before.
        told: Whether a change of state has been announced.
        abrupt: Whether it began with a jump.
        challenger: Where values have been since.
    """

    weight: Array
    strength: Array
    peak: Array
    onset: Ints
    last: Array
    same: Array
    told: Flags
    abrupt: Flags
    challenger: Challenger

    def columns(self) -> dict[str, Array | Ints | Flags]:
        """All by name."""
        own = self._asdict()
        return {**{name: own[name] for name in Incident._fields[:-1]}, **self.challenger._asdict()}


class News(NamedTuple):
    """What a value said of n incidents; all of shape (n,).

    Args:
        off: Where it lies from what the incumbent expected.
        scale: The incumbent's standard deviation there.
        incumbent: Log density that the incumbent gave it, as of `heavy`.
        gain: Log density of the challenger less that of the incumbent.
        was: Whether the incident was open before.
    """

    off: Array
    scale: Array
    incumbent: Array
    gain: Array
    was: Flags


def new_state(n: int) -> Columns:
    """The columns for n series without an incident."""
    numbers = ("weight", "strength", "peak", "last", "same", *Challenger._fields)
    columns: Columns = {name: np.zeros(n, np.float32) for name in numbers}
    columns |= {name: np.zeros(n, np.bool_) for name in ("told", "abrupt")}
    return columns | {"onset": np.full(n, NEVER, np.int64)}


def go_on(
    config: RegimesConfig, state: Rows, found: Surprise, unit: Array, triggered: Flags, creeping: Flags
) -> tuple[Incident, News]:
    """Incidents after one more value each; where none was open one begins, or stays closed.

    Args:
        config: The constants.
        state: The columns of these series.
        found: What was found of the values.
        unit: Of the axis, above 0, shape (n,).
        triggered: Whether the value is surprising enough to begin an incident, shape (n,).
        creeping: Whether it may begin one without a jump, shape (n,).
    """
    z, typical = place(found.value, unit), place(found.typical, unit)
    off = z - typical
    side = np.where(off > 0, place(found.upper, unit) - typical, typical - place(found.lower, unit))
    scale = np.maximum(side / _SIDE, _FINEST)

    jumps = triggered & (found.change >= config.abrupt)
    was_abrupt = state["abrupt"] > 0
    was: Flags = (state["weight"] > 0) & (was_abrupt | ~jumps)  # a jump begins an incident of its own
    begins = ~was & triggered & (creeping | jumps)
    before = Challenger(*(state[name].astype(np.float64) for name in Challenger._fields))
    incumbent = heavy(off / scale)
    gain = np.where(begins, config.most, before.log_density(off, scale) - incumbent)
    weight = np.where(was, state["weight"], 0.0) + clamp(gain, config.least, config.most)
    exact = z.astype(np.float32)
    after = Incident(
        weight=np.where(was | begins, clamp(weight, 0.0, config.cap), 0.0),
        strength=np.where(was, state["strength"], 0.0) + clamp(gain, -config.recall_most, config.recall_most),
        peak=np.maximum(np.where(was, state["peak"], 0.0), found.score),
        onset=np.where(was, state["onset"].astype(np.int64), found.time),
        last=exact,  # type: ignore[arg-type]
        same=np.where(was, state["same"] + (exact == state["last"]), 0.0),
        told=was & (state["told"] > 0),
        abrupt=np.where(was, was_abrupt, jumps),
        challenger=before.learn(off, config.pace, ~was),
    )
    return after, News(off, scale, incumbent, gain, was)


def is_alive(config: RegimesConfig, incident: Incident, found: Surprise) -> Flags:
    """Whether the present level can be one to live at: not that of something dead or frozen, or for long enough."""
    lasts = found.time - incident.onset
    dead = np.abs(found.value) <= config.dead * np.abs(found.typical)
    varied = found.upper - found.lower > 30 * found.resolution
    frozen = (incident.same >= 0.8 * (incident.challenger.number - 1)) & varied
    return (~dead | (lasts >= config.dead_for)) & (~frozen | (lasts >= config.frozen_for))
