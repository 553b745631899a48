"""What the values of a regime are held against: a model beside the experts that stands still while an incident is open.

The experts go on learning, so that the score soon calls nothing of a new level unusual; whether that level is a new
normal is asked of this one: a mean for each hour of the day, how far values lie from it of late, and the spread about
both. An hour that is not known yet predicts the mean of the latest values.

Source: additive seasonal smoothing, P. R. Winters, Forecasting sales by exponentially weighted moving averages,
Management Science 6 (1960).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.experts.base import Step
from models.experts.hour_of_day import HOURS, forgotten, nearest_hours
from models.kernels import kernel, within
from models.numbers.arrays import Array, Columns, Rows
from models.records import Record
from models.regimes.config import RegimesConfig

_VAGUE = 0.25
"""Standard deviation before anything is known: of a quarter of the value."""

_FINEST = 1e-6
_PARTS = 4.0
"""Visits are kept in quarters, as 16 bits."""

_MOST_VISITS = 16_000.0


class Expected(NamedTuple):
    """What was expected of a value; places on the axis less the shift of the present regime.

    Args:
        place: Where the value lies.
        off: Where it lies from what was expected.
        scale: Standard deviation about it.
        floor: Smallest scale: differences below it mean nothing.
        hour: What was expected of the hour of the day.
        trust: How far that is to be trusted, in [0, 1].
    """

    place: float
    off: float
    scale: float
    floor: float
    hour: float
    trust: float


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known."""
    columns: Columns = {name: np.zeros(n, np.float32) for name in ("level", "drift", "now")}
    columns |= {"hour": np.zeros((n, HOURS), np.float32), "visits": np.zeros((n, HOURS), np.uint16)}
    return columns | {"spread": np.full(n, _VAGUE, np.float32)}


@kernel
def expect(regime: Record, place: float, step: Step, floor: float) -> Expected:
    """What was expected of a value.

    Args:
        regime: The columns.
        place: Where the value lies on the axis.
        step: What is known of the value.
        floor: Differences on the axis below this mean nothing.
    """
    z = place - regime.now
    hours = nearest_hours(step.local)
    near = (1 - hours.share) * regime.visits[hours.first] / _PARTS
    far = hours.share * regime.visits[hours.second] / _PARTS
    visits = near + far
    hour = (near * regime.hour[hours.first] + far * regime.hour[hours.second]) / max(visits, 1e-12)
    trust = visits / (visits + 1)  # the mean of the latest values counts as one visit
    level = float(regime.level) if step.seen > 0 else z
    expected = trust * (hour + regime.drift) + (1 - trust) * level
    floor = max(floor, _FINEST)
    return Expected(z, z - expected, max(float(regime.spread), floor), floor, hour, trust)


@kernel
def learn_calm(config: RegimesConfig, detector: DetectorConfig, regime: Record, expected: Expected, step: Step) -> None:
    """Learns from a value outside of incidents.

    Args:
        config: The constants.
        detector: Those of the detector.
        regime: The columns; changed.
        expected: As from `expect`.
        step: What is known of the value.
    """
    pace, slow = max(config.follow, 1 / (1 + step.seen)), max(config.spread_forget, 2 / (4 + step.seen))
    regime.level += pace * (expected.place - regime.level)
    regime.drift += pace * expected.trust * (expected.place - expected.hour - regime.drift)
    off = within(expected.off / expected.scale, -config.trigger, config.trigger) * expected.scale
    spread = regime.spread * regime.spread
    regime.spread = math.sqrt(spread + slow * (off * off - spread))
    hours, forget = nearest_hours(step.local), forgotten(detector, step.gap)
    _visit(regime, hours.first, 1 - hours.share, forget, expected.place)
    _visit(regime, hours.second, hours.share, forget, expected.place)


@kernel
def _visit(regime: Record, index: int, part: float, forget: float, place: float) -> None:
    visits = regime.visits[index] / _PARTS * (1 - forget * part) + part
    regime.visits[index] = int(np.rint(min(visits, _MOST_VISITS) * _PARTS))
    regime.hour[index] += part / max(visits, 1e-12) * (place - regime.hour[index])


@kernel
def is_grown(regime: Record) -> bool:
    """Whether every hour of the day was visited; until then a deviation that comes slowly may be the first morning."""
    least = regime.visits[0]
    for hour in range(1, HOURS):
        least = min(least, regime.visits[hour])
    return least >= _PARTS


def move(state: Rows, by: Array) -> None:
    """Takes what lies so far from the present level, on the axis, for it; shape (n,)."""
    state["level"], state["drift"] = state["level"] + by, state["drift"] + by


def begin_reference(state: Rows, place: Array, spread: Array) -> None:
    """Lets new series expect what others are, as if their last value had been that; shape (n,).

    Args:
        state: The columns of the series.
        place: Where values lie on the axis.
        spread: Standard deviation about it.
    """
    state["level"] = state["last"] = place
    state["spread"] = spread
