"""Simulated gauges with a bound of 100, of many shapes, with the time at which each is full, or that it never is.

The shapes are those of disks, memory, quotas and certificates. None is made by the assumptions of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.numbers.arrays import Array

STEP = 300_000
DAY = 86_400_000 // STEP
BOUND = 100.0
DAYS = 42
"""Milliseconds between values, values of a day, what is full, and how long each series is."""


class Filling(NamedTuple):
    """A simulated series.

    Attributes:
        shape: Its name in `SHAPES`.
        values: A value every `STEP`, up to and with the first that is full, shape (n,).
        full: Number of that value; -1: it is never full.
    """

    shape: str
    values: Array
    full: int


Shape = Callable[[np.random.Generator, int], Array]


def _days(n: int) -> Array:
    return np.arange(n) / DAY


def _start(rng: np.random.Generator) -> float:
    return float(rng.uniform(20, 75))


def _leak(rng: np.random.Generator, n: int) -> Array:
    start = _start(rng)
    slope = (BOUND - start) / rng.uniform(2, 40)
    return start + slope * _days(n) + rng.normal(0, rng.choice([0.01, 0.1, 0.5]), n)


def _office_hours(rng: np.random.Generator, n: int) -> Array:
    """Grows by day, not at night, with noise in what it grows by."""
    start = _start(rng)
    hour = (_days(n) * 24 + rng.uniform(0, 24)) % 24
    rate = np.where((hour > 8) & (hour < 19), 1.0, 0.05) * rng.gamma(2, 0.5, n)
    return start + np.cumsum(rate / rate.sum() * DAYS) * (BOUND - start) / rng.uniform(3, 40)


def _cycle_with_drift(rng: np.random.Generator, n: int) -> Array:
    start, days = _start(rng), _days(n)
    wave = rng.uniform(1, 12) * np.sin(2 * np.pi * (days + rng.uniform()))
    return start + (BOUND - start) / rng.uniform(4, 60) * days + wave + rng.normal(0, rng.uniform(0.05, 1), n)


def _bursts(rng: np.random.Generator, n: int) -> Array:
    start = _start(rng)
    jumps = rng.poisson(rng.uniform(1, 24) / DAY, n) * rng.gamma(1, 1, n)
    grown: Array = np.cumsum(jumps) / max(float(jumps.sum()), 1e-9)
    return start + grown * (BOUND - start) * DAYS / rng.uniform(4, 60)


def _rotated(rng: np.random.Generator, n: int) -> Array:
    """A saw: what grows is deleted every so often; something else leaks."""
    start = rng.uniform(20, 60)
    every = int(DAY * rng.choice([0.25, 1, 1, 7]))
    saw = rng.uniform(2, 20) * ((np.arange(n) + rng.integers(every)) % every) / every
    return start + saw + (BOUND - start) / rng.uniform(6, 50) * _days(n) + rng.normal(0, 0.1, n)


def _rotated_only(rng: np.random.Generator, n: int) -> Array:
    every = int(DAY * rng.choice([0.25, 1, 1, 7]))
    start, height = rng.uniform(10, 60), rng.uniform(5, 35)
    saw = height * ((np.arange(n) + rng.integers(every)) % every) / every
    return start + saw + rng.normal(0, 0.2, n)


def _evicting(rng: np.random.Generator, n: int) -> Array:
    """A cache, or a cleanup at a level: grows by bursts, and is cut down whenever it passes the level."""
    top, back = rng.uniform(70, 95), rng.uniform(3, 30)
    growth = rng.gamma(0.5, 2, n) * rng.uniform(3, 60) / DAY
    values, level = np.empty(n), top - back * rng.uniform(0, 3)
    for i in range(n):
        level += growth[i]
        if level > top + rng.normal(0, 0.3):
            level = top - back * rng.uniform(0.8, 1.2)
        values[i] = level
    return values


def _slope_changes(rng: np.random.Generator, n: int) -> Array:
    """Grows by another slope, or not at all, from some times on."""
    at = np.sort(rng.integers(0, n, rng.integers(1, 5)))
    slopes = rng.choice([0.0, 0.0, 0.3, 1.0, 3.0], len(at) + 1) * rng.uniform(0.3, 3)
    rate = np.repeat(slopes, np.diff(np.concatenate([[0], at, [n]])))
    return _start(rng) + np.cumsum(rate / DAY) + rng.normal(0, rng.choice([0.02, 0.2]), n)


def _runaway(rng: np.random.Generator, n: int) -> Array:
    """Nothing happens until something writes until it is full, within half an hour to a day."""
    start, begin = rng.uniform(20, 85), int(rng.integers(2 * DAY, n - 2 * DAY))
    ramp = np.maximum(np.arange(n) - begin, 0) * (BOUND - start) / (DAY * rng.uniform(0.5, 24) / 24)
    return start + np.minimum(ramp, 90) + rng.normal(0, rng.choice([0.02, 0.3]), n)


def _wandering(rng: np.random.Generator, n: int) -> Array:
    """Mean-reverting, as memory is."""
    center, pull, noise = rng.uniform(30, 75), 1 / (DAY * rng.uniform(0.05, 2)), np.empty(n)
    level, kicks = 0.0, rng.normal(0, 1, n) * rng.uniform(1, 6) * np.sqrt(2 * pull)
    for i in range(n):
        level += kicks[i] - pull * level
        noise[i] = level
    return np.minimum(center + noise, 99)


def _walk(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(30, 85) + np.cumsum(rng.normal(0, rng.uniform(1, 6) / np.sqrt(DAY), n))


def _warming(rng: np.random.Generator, n: int) -> Array:
    """Approaches a level below the bound, as a heap or a page cache does, and again after restarts."""
    low, top, pace = rng.uniform(10, 40), rng.uniform(60, 95), DAY * rng.uniform(0.1, 4)
    since = np.arange(n) - np.maximum.accumulate(np.where(rng.uniform(0, 1, n) < 1 / (DAY * 12), np.arange(n), 0))
    return top - (top - low) * np.exp(-since / pace) + rng.normal(0, rng.uniform(0.05, 0.5), n)


def _steps_of_percent(rng: np.random.Generator, n: int) -> Array:
    return np.round(_leak(rng, n) - 0.4)


def _daily_load(rng: np.random.Generator, n: int) -> Array:
    wave = rng.uniform(5, 30) * np.sin(2 * np.pi * (_days(n) + rng.uniform()))
    return np.clip(rng.uniform(40, 60) + wave + rng.normal(0, rng.uniform(0.5, 4), n), 0, 99)


def _high(rng: np.random.Generator, n: int) -> Array:
    return np.minimum(rng.uniform(85, 95) + rng.normal(0, rng.uniform(0.1, 1.2), n), 99.4)


def _certificate(rng: np.random.Generator, n: int) -> Array:
    """Days since a certificate of 100 was issued, exactly; half of them are renewed in time."""
    renewed = rng.uniform(60, 85) if rng.uniform() < 0.5 else 1e9
    return (rng.uniform(60, 99) + _days(n)) % renewed


SHAPES: dict[str, Shape] = {
    "leak": _leak,
    "office hours": _office_hours,
    "cycle with drift": _cycle_with_drift,
    "bursts": _bursts,
    "rotated, with a leak": _rotated,
    "rotated": _rotated_only,
    "evicting": _evicting,
    "slope changes": _slope_changes,
    "runaway": _runaway,
    "wandering": _wandering,
    "walk": _walk,
    "warming": _warming,
    "steps of a percent": _steps_of_percent,
    "daily load": _daily_load,
    "high": _high,
    "certificate": _certificate,
}


def _accelerating(rng: np.random.Generator, n: int) -> Array:
    start, days = _start(rng), _days(n)
    return start + (BOUND - start) * (days / rng.uniform(10, 60)) ** 2 + rng.normal(0, 0.1, n)


def _weekly(rng: np.random.Generator, n: int) -> Array:
    """Grows on working days."""
    start = _start(rng)
    rate = np.where((_days(n) + rng.uniform(0, 7)) % 7 < 5, 1.0, 0.05) * rng.gamma(1, 1, n)
    return start + np.cumsum(rate / rate.sum() * DAYS) * (BOUND - start) / rng.uniform(6, 60)


def _compacted(rng: np.random.Generator, n: int) -> Array:
    """A database: grows by load of the day, is compacted at random, and grows on the whole."""
    start, level, values = rng.uniform(30, 60), 0.0, np.empty(n)
    grows, cut = rng.uniform(4, 20), rng.uniform(0.3, 0.8)
    load = 1 + 0.8 * np.sin(2 * np.pi * _days(n))
    kept, when = 0.0, rng.uniform(0, 1, n) < 1 / (DAY * rng.uniform(0.3, 2))
    for i in range(n):
        level += load[i] * grows * rng.gamma(1, 1) / DAY
        if when[i]:
            kept, level = kept + level * (1 - cut) * 0.3, 0.0
        values[i] = start + kept + level
    return values


def _exponential(rng: np.random.Generator, n: int) -> Array:
    """Doubles every few days, as data of a service that grows."""
    start, days = _start(rng), _days(n)
    grown = 2 ** (days / rng.uniform(4, 15)) - 1
    return start + rng.uniform(0.5, 6) * grown + rng.normal(0, rng.choice([0.02, 0.2]), n)


def _slowing(rng: np.random.Generator, n: int) -> Array:
    """Fills ever more slowly, towards a level that may lie beyond the bound."""
    start, top = rng.uniform(10, 50), rng.uniform(80, 140)
    return (
        start + (top - start) * (1 - np.exp(-_days(n) / rng.uniform(3, 30))) + rng.normal(0, rng.uniform(0.05, 0.5), n)
    )


def _imports(rng: np.random.Generator, n: int) -> Array:
    """Steps: large files come at a time of some days, more or less, and stay."""
    start, every = _start(rng), DAY * rng.uniform(0.3, 5)
    at = np.cumsum(rng.gamma(8, every / 8, 200)).astype(int)
    steps = np.zeros(n)
    np.add.at(steps, at[at < n], rng.uniform(1, 8) * rng.gamma(10, 0.1, int((at < n).sum())))
    return start + np.cumsum(steps) + rng.normal(0, 0.05, n)


def _restarted(rng: np.random.Generator, n: int) -> Array:
    """Memory that leaks until the process is restarted, for other reasons."""
    low, slope, values = rng.uniform(15, 50), rng.uniform(2, 40), np.empty(n)
    level, again = low, rng.uniform(0, 1, n) < 1 / (DAY * rng.uniform(1, 10))
    for i in range(n):
        level = low if again[i] else level + slope / DAY
        values[i] = level
    return values + rng.normal(0, rng.uniform(0.1, 1), n)


def _weeks_with_drift(rng: np.random.Generator, n: int) -> Array:
    """Load of the day and of the week, and more users."""
    days, phase = _days(n), rng.uniform()
    day = rng.uniform(2, 12) * np.sin(2 * np.pi * (days + phase))
    week = np.where((days + 7 * phase) % 7 < 5, 0.0, -rng.uniform(2, 10))
    start = rng.uniform(30, 65)
    return start + day + week + (BOUND - start) / rng.uniform(15, 90) * days + rng.normal(0, rng.uniform(0.2, 2), n)


def _spiked(rng: np.random.Generator, n: int) -> Array:
    """Nothing fills: now and then a few values are high, of any height; one that reaches the bound is chance."""
    center, noise = rng.uniform(30, 75), rng.uniform(0.2, 3)
    spikes = (rng.uniform(0, 1, n) < rng.uniform(0.05, 3) / DAY) * noise * (2 + 3 * rng.pareto(rng.uniform(1.5, 3), n))
    long = np.maximum(spikes, np.maximum(0.8 * np.roll(spikes, 1), 0.5 * np.roll(spikes, 2)))
    return center + long + noise * rng.normal(0, 1, n)


def _backed_up(rng: np.random.Generator, n: int) -> Array:
    """A copy is written each night and removed hours later, beside what grows."""
    start, days = rng.uniform(20, 60), _days(n)
    hour = (days * 24 + rng.uniform(0, 24)) % 24
    copy = rng.uniform(3, 20) * np.interp(hour, [0, rng.uniform(0.3, 2), rng.uniform(3, 8), 8.2, 24], [0, 1, 1, 0, 0])
    return (
        start + copy * (1 + 0.02 * rng.normal()) + (BOUND - start) / rng.uniform(8, 80) * days + rng.normal(0, 0.1, n)
    )


def _tenants(rng: np.random.Generator, n: int) -> Array:
    """Many users write and delete, each in its own way; on the whole it grows, or does not."""
    total = np.full(n, rng.uniform(25, 60))
    for _ in range(12):
        rate = rng.choice([-0.2, 0.0, 0.3, 0.6]) * rng.gamma(1, 1) / DAY
        at = np.sort(rng.integers(0, n, 2))
        size = rng.gamma(1, 2) * (np.arange(n) >= at[0]) * (np.arange(n) < at[1])
        total += rate * np.arange(n) + size
    return total + rng.normal(0, 0.1, n)


HELD_BACK: dict[str, Shape] = {"accelerating": _accelerating, "working days": _weekly, "compacted": _compacted}
"""Shapes that were not looked at when the model was made."""

UNSEEN: dict[str, Shape] = {
    "exponential": _exponential,
    "slowing": _slowing,
    "imports": _imports,
    "restarted": _restarted,
    "weeks with drift": _weeks_with_drift,
    "spiked": _spiked,
    "backed up": _backed_up,
    "tenants": _tenants,
}
"""Shapes written down before the model was changed by what `HELD_BACK` had shown."""


def filling(shape: str, rng: np.random.Generator) -> Filling:
    """A series of a shape."""
    values = (SHAPES | HELD_BACK | UNSEEN)[shape](rng, DAY * DAYS)
    full = np.flatnonzero(values >= BOUND)
    first = int(full[0]) if len(full) else -1
    return Filling(shape, values[: first + 1] if len(full) else values, first)


def fillings(shapes: dict[str, Shape], each: int, seed: int) -> list[Filling]:
    """So many series of each shape; those that are full from the beginning are left out."""
    made = [filling(shape, np.random.default_rng((seed, k, i))) for k, shape in enumerate(shapes) for i in range(each)]
    return [one for one in made if len(one.values) > 1]
