"""Departure: how far have the last two values left the median of the fifteen before, against what is usual lately?

The experts ask whether a value is rare for its series, by the hour and by all that was lived through; a series that has
an incident every other day teaches them that. This asks something that incidents hardly teach: the deviations from the
recent median are held against their own 95 % quantile of about the last day, and of a run of large deviations only the
largest is learned. One value alone may be an error of measurement and counts half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from models.constant import Constant
from models.kernels import kernel, within
from models.numbers.arrays import Columns
from models.records import Record

RECENT = 15
"""Values before a value whose median it is held against."""

_KNOWN = 30.0
"""Values until the quantile of deviations is known well enough to be followed slowly."""

_DAY, _SIX_HOURS = 86_400_000.0, 21_600_000.0
_PRIOR = 0.5
_FINEST = 1e-6
_LARGEST = 1e30
"""Larger values count as this."""


@dataclass(frozen=True)
class Departures:
    """The constants of departures; none of it should need to be changed.

    Args:
        tail: Share of deviations that lie above the quantile which they are held against.
        pace: Share of the quantile's history that is forgotten per value.
        forget: The same of the excesses above it.
        strength: Excesses that the prior belief, a mean excess of half of the quantile, is worth.
        most: An excess is learned as one of at most this many mean ones.
        calm: So many values within the quantile end a run of excesses.
        floor: Least quantile, as a share of the range lived through.
        alone: The nats of a single value are divided by this.

    Sources: peaks over a threshold as in A. Siffer et al., Anomaly detection in streams with extreme value theory, KDD
    2017, of the largest excess of each run (runs declustering, S. Coles, An Introduction to Statistical Modeling of
    Extreme Values (2001), 5.3.2); the quantile by H. Robbins, S. Monro, A stochastic approximation method (1951); the
    Lomax tail as in `models.numbers.calibration`.
    """

    tail: Annotated[
        float, Constant("share", 0.001, 0.5, "the one line of arithmetic that it must beat uses the same (model.md)")
    ] = 0.05
    pace: Annotated[float, Constant("share per value", 0, 0.1, "a day of minutes; five times slower is alike")] = (
        1 / 1440
    )
    forget: Annotated[float, Constant("share per value", 0, 0.5, "that of the level", off=0)] = 1 / 6500
    strength: Annotated[float, Constant("excesses", 0.1, 100, "that of calibrations")] = 5.0
    most: Annotated[
        float, Constant("mean excesses", 1, 100, "that of calibrations: incidents must not teach", off=1000000.0)
    ] = 3.0
    calm: Annotated[
        float,
        Constant("values", 0, 1000, "measured: without it web_kpis −.1 at one false alarm a month (model.md)", off=0),
    ] = 5.0
    floor: Annotated[float, Constant("share", 0, 1, "measured: .01 is alike", off=0)] = 0.003
    alone: Annotated[
        float,
        Constant("1", 1, 100, "measured: with 3 less is found, with 1.5 more falsely (model.md)", off=1),
    ] = 2.0


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known.

    ``recent``: the last values, in no order; ``count``: values so far; ``before``: deviation of the last one; ``edge``:
    the quantile; ``shape``, ``rate``: of the excesses above it, in units of it; ``top``: largest excess of the run;
    ``quiet``: values since the last excess; ``clock``: usual milliseconds between two values.
    """
    columns: Columns = {name: np.zeros(n, np.float32) for name in ("count", "before", "edge", "rate", "top", "clock")}
    columns |= {"shape": np.zeros(n, np.float32), "quiet": np.zeros(n, np.float32)}
    return columns | {"recent": np.zeros((n, RECENT), np.float32)}


class Departure(NamedTuple):
    """How far a value has left the median of those before.

    Args:
        deviation: Its distance from the median.
        edge: The quantile of such distances that it is held against.
        times: The distance in units of the quantile.
        nats: -ln of the chance of such a departure; 0 until that is known.
        covers_day: Whether the deviations of a whole day are known.
    """

    deviation: float
    edge: float
    times: float
    nats: float
    covers_day: bool


@kernel
def _median(departure: Record, value: float) -> float:
    """The (lower) median of the recent values; ``value`` where there is none."""
    count = min(int(departure.count), RECENT)
    place, low, high = (count - 1) // 2, -math.inf, math.inf
    for i in range(count):
        middle = float(departure.recent[i])
        if not low < middle < high:  # it is known to lie beside the median
            continue
        below = equal = 0
        for k in range(count):
            below += departure.recent[k] < middle
            equal += departure.recent[k] == middle
        if below > place:
            high = middle
        elif below + equal > place:
            return middle
        else:
            low = middle
    return value


@kernel
def _nats(config: Departures, departure: Record, times: float) -> float:
    """-ln of the chance of a deviation of so many quantiles."""
    usual = -math.log(config.tail)
    shape = config.strength + departure.shape
    rate = config.strength * _PRIOR + departure.rate
    return usual * min(times, 1.0) + shape * math.log1p(max(times - 1.0, 0.0) / rate)


@kernel
def clock_of(departure: Record) -> float:
    """Usual milliseconds between two values; 0 in the first six hours of a series."""
    return float(departure.clock) if _knows(departure, _SIX_HOURS) else 0.0


@kernel
def _knows(departure: Record, span: float) -> bool:
    return departure.count >= _KNOWN and departure.count * departure.clock >= span


@kernel
def depart(config: Departures, departure: Record, value: float, lived: float) -> Departure:
    """How far a value has left the median of those before.

    Args:
        config: The constants.
        departure: The columns.
        value: The value.
        lived: Length of the range lived through.

    >>> from models.records import constants, record_of
    >>> config, state = constants(all=Departures()).all, record_of(new_state(1))
    >>> rng = np.random.default_rng(0)
    >>> for value in rng.normal(50, 2, 1440):
    ...     learn_departure(config, state, depart(config, state, value, 10.0), value, 60_000.0)
    >>> found = []
    >>> for value in (53.0, 70.0, 70.0):
    ...     found.append(round(depart(config, state, value, 10.0).nats, 1))
    ...     learn_departure(config, state, depart(config, state, value, 10.0), value, 60_000.0)
    >>> found[0] < 3, found[1] * 1.8 < found[2]
    (True, True)
    """
    value = within(value, -_LARGEST, _LARGEST)
    middle = _median(departure, value)
    deviation = abs(value - middle)
    edge = max(float(departure.edge), config.floor * min(lived, _LARGEST), _FINEST * abs(middle), 1.0 / _LARGEST)
    times = min(deviation / edge, _LARGEST)
    if not _knows(departure, _DAY):
        return Departure(deviation, edge, times, 0.0, False)
    both = min(deviation, float(departure.before)) / edge
    nats = max(_nats(config, departure, both), _nats(config, departure, times) / config.alone)
    return Departure(deviation, edge, times, nats, True)


@kernel
def learn_departure(config: Departures, departure: Record, latest: Departure, value: float, gap: float) -> None:
    """Adds a value.

    Args:
        config: The constants.
        departure: The columns; changed.
        latest: As from `depart`.
        value: The value.
        gap: Milliseconds since the value before.
    """
    count = departure.count
    departure.recent[int(count) % RECENT] = within(value, -_LARGEST, _LARGEST)
    departure.before = latest.deviation
    departure.count = count + 1.0 if count < 15_000_000.0 else count - RECENT * 900_000.0
    if count > 0:
        clock = float(departure.clock) if count > 1 else gap
        departure.clock = clock + 0.05 * (min(gap, 2 * clock) - clock)
    if count + 1 < _KNOWN:
        departure.edge = max(0.97 * departure.edge, latest.deviation)
        return
    shape, rate = config.strength + departure.shape, config.strength * _PRIOR + departure.rate
    above, mean = latest.times > 1, rate / shape
    pace = max(config.pace, 1 / (51 + count)) * mean / config.tail
    departure.edge = latest.edge * math.exp(pace * ((1.0 if above else 0.0) - config.tail))
    keep = 1 - max(config.forget, 1.2 / (51 + count))
    departure.shape, departure.rate = keep * departure.shape, keep * departure.rate
    if not above:
        departure.quiet = min(departure.quiet + 1.0, config.calm + 1.0)
        return
    if departure.quiet > config.calm:
        departure.top = 0.0
        departure.shape += 1.0
    excess = min(latest.times - 1.0, config.most * mean)
    departure.rate += max(excess - departure.top, 0.0)
    departure.top, departure.quiet = max(float(departure.top), excess), 0.0
