"""What the values of a regime are held against: a model beside the experts that stands still while an incident is open.

The experts go on learning, so that the score soon calls nothing of a new level unusual; whether that level is a new
normal is asked of this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, cells, clamp
from models.experts.hour_of_day import HOURS, REFERENCE_GAP
from models.experts.wall_clock import local_ms
from models.regimes.config import RegimesConfig

_VAGUE = 0.25
"""Standard deviation before anything is known: of a quarter of the value."""

_FINEST = 1e-6
_PARTS = 4.0
"""Visits are kept in quarters, as 16 bits."""

_MOST_VISITS = 16_000.0

_CLIP = 4.0


class Expected(NamedTuple):
    """What was expected of n values; all of shape (n,), places on the axis less the shift of the present regime.

    Args:
        place: Where the values lie.
        off: Where they lie from what was expected.
        scale: Standard deviation about it.
        floor: Smallest scale: differences below it mean nothing.
        hour: What was expected of the hour of the day.
        known: How far that is to be trusted, in [0, 1].
        bins: The two nearest hours; shape (2, n).
        shares: The share of each, shape (2, n).
    """

    place: Array
    off: Array
    scale: Array
    floor: Array
    hour: Array
    known: Array
    bins: Ints
    shares: Array


class Reference:
    """A mean for each hour of the day, how far values lie from it of late, and the spread about both.

    An hour that is not known yet predicts the mean of the latest values.

    Args:
        config: The constants.
        zone: IANA name of the time zone in which hours are counted.

    Source: additive seasonal smoothing, P. R. Winters, Forecasting sales by exponentially weighted moving averages,
    Management Science 6 (1960).
    """

    def __init__(self, config: RegimesConfig, zone: str) -> None:
        self.config, self.zone = config, zone

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        columns: Columns = {name: np.zeros(n, np.float32) for name in ("level", "drift", "now")}
        columns |= {"hour": cells(n, HOURS, np.float32), "visits": cells(n, HOURS, np.uint16)}
        return columns | {"spread": np.full(n, _VAGUE, np.float32)}

    def expect(self, state: Rows, at_place: Array, time: Ints, floor: Array, seen: Array) -> Expected:
        """What was expected of one value each.

        Args:
            state: The columns.
            at_place: Where the value lies on the axis, shape (n,).
            time: When, epoch milliseconds, shape (n,).
            floor: Differences on the axis below this mean nothing, shape (n,).
            seen: Values learned so far, shape (n,).
        """
        z = at_place - state["now"]
        o_clock = (local_ms(time, self.zone) % 86_400_000) / 3_600_000.0 - 0.5
        below = np.floor(o_clock)
        first = below.astype(np.int64) % HOURS
        bins, later = np.stack([first, (first + 1) % HOURS]), o_clock - below
        shares = np.stack([1 - later, later])
        weights = shares * np.stack([state.cell("visits", index) for index in bins]) / _PARTS
        means = np.stack([state.cell("hour", index) for index in bins])
        visits = weights[0] + weights[1]
        hour = (weights[0] * means[0] + weights[1] * means[1]) / np.maximum(visits, 1e-12)
        known = visits / (visits + self.config.hour_prior)
        level = np.where(seen > 0, state["level"], z)
        expected = known * (hour + state["drift"]) + (1 - known) * level
        floor = np.maximum(floor, _FINEST)
        return Expected(z, z - expected, np.maximum(state["spread"], floor), floor, hour, known, bins, shares)

    def learn(self, state: Rows, told: Expected, gap: Array, seen: Array, calm: Flags) -> None:
        """Learns from the values where ``calm``.

        Args:
            state: The columns.
            told: As from `expect`.
            gap: Milliseconds since the value before, shape (n,).
            seen: Values learned so far, shape (n,).
            calm: Whether no incident is open, shape (n,).
        """
        config = self.config
        pace = np.where(calm, np.maximum(config.follow, 1 / (1 + seen)), 0.0)
        level, drift, spread = state["level"], state["drift"], state["spread"]
        state["level"] = level + pace * (told.place - level)
        state["drift"] = drift + pace * told.known * (told.place - told.hour - drift)
        off = clamp(told.off / told.scale, -_CLIP, _CLIP) * told.scale
        slow = np.where(calm, np.maximum(config.spread_forget, 2 / (4 + seen)), 0.0)
        state["spread"] = np.sqrt(spread * spread + slow * (off * off - spread * spread))
        forget = np.minimum(config.hour_forget * np.where(gap > 0, gap, REFERENCE_GAP) / REFERENCE_GAP, 0.5)
        for index, share in zip(told.bins, told.shares, strict=True):
            part = np.where(calm, share, 0.0)
            visits, mean = state.cell("visits", index) / _PARTS, state.cell("hour", index)
            after = visits * (1 - forget * part) + part
            state.set_cell("visits", index, np.rint(np.minimum(after, _MOST_VISITS) * _PARTS))
            state.set_cell("hour", index, mean + part / np.maximum(after, 1e-12) * (told.place - mean))

    def is_grown(self, state: Rows) -> Flags:
        """Whether every hour of the day is known; until then a deviation that comes slowly may be the first morning."""
        known: Flags = state["visits"].min(axis=1) >= _PARTS * self.config.hour_prior
        return known

    def move(self, state: Rows, by: Array) -> None:
        """Takes what lies so far from the present level, on the axis, for it; shape (n,)."""
        state["level"], state["drift"] = state["level"] + by, state["drift"] + by
