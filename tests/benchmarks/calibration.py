"""Calibration: on series that stay as they are, how often are windows as improbable as the detector says?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.config import DetectorConfig
from models.detector import Detector
from models.evidence.score import combine
from models.families.choice import NONE, MetricKind
from models.families.choice import Family as Prescribed
from models.families.suited import About
from models.machine.config import MultivariateConfig
from models.machine.joined import Joined, Together, Windows
from models.machine.multivariate import Multivariate
from models.numbers.arrays import Array
from pipelines.evaluation import show

STEP = 300_000
MONTH = 30 * 86_400_000 / STEP
"""Milliseconds, and windows."""

LEVELS = (1e-2, 1e-3, 1e-4)
Draw = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Stationary:
    """Independent values of one distribution, and what the detector is told of their metric."""

    draw: Draw
    kind: MetricKind = MetricKind.GAUGE
    family: int = NONE


@dataclass(frozen=True)
class Shares:
    """What was seen of one family.

    Args:
        below: Share of windows with a probability below each of `LEVELS`.
        errors: Standard error of each, by how it differs between the series: windows of one depend on one another.
        alarms: Share of windows whose score reaches the threshold.
        windows: How many there were.
    """

    below: tuple[float, ...]
    errors: tuple[float, ...]
    alarms: float
    windows: int

    @classmethod
    def of(cls, seen: Array, counted: int) -> Shares:
        """From the windows found of each series, shape (levels + 1, series), of so many each; the last are alarms."""
        share, series = seen / counted, seen.shape[1]
        errors = share.std(axis=1) / np.sqrt(series)
        *below, alarms = share.mean(axis=1).tolist()
        return cls(tuple(below), tuple(errors[:-1].tolist()), alarms, series * counted)


FAMILIES = {
    "normal": Stationary(lambda rng, n: rng.normal(50, 5, n)),
    "lognormal": Stationary(lambda rng, n: np.exp(rng.normal(3, 0.6, n))),
    "gamma": Stationary(lambda rng, n: rng.gamma(2.0, 10.0, n)),
    "poisson, high": Stationary(lambda rng, n: rng.poisson(30, n) + 0.0),
    "negative binomial": Stationary(lambda rng, n: rng.negative_binomial(3, 0.1, n) + 0.0),
    "ratio": Stationary(lambda rng, n: rng.binomial(200, 0.02, n) / 200),
    "quantised": Stationary(lambda rng, n: np.round(rng.normal(50, 5, n) / 4) * 4),
    "count, poisson": Stationary(lambda rng, n: rng.poisson(0.5, n) + 0.0, MetricKind.COUNT),
    "count, negative binomial": Stationary(lambda rng, n: rng.negative_binomial(1, 0.3, n) + 0.0, MetricKind.COUNT),
    "ratio, binomial": Stationary(lambda rng, n: rng.binomial(1000, 0.02, n) / 1000, MetricKind.RATIO),
    "ratio, beta": Stationary(lambda rng, n: rng.beta(2, 30, n), MetricKind.RATIO),
    "categorical": Stationary(
        lambda rng, n: rng.choice([0.0, 1.0, 2.0, 3.0], n, p=[0.9, 0.0979, 0.002, 0.0001]),
        family=Prescribed.CATEGORICAL,
    ),
}
"""Values of each family of the model; gamma, and what comes as a gauge though it is whole, are of none."""


def shares(names: Sequence[str], series: int, warm: int, counted: int, seed: int) -> dict[str, Shares]:
    """Judges series of some families, so many of each.

    Args:
        names: Of `FAMILIES`.
        series: Of each family.
        warm: Windows that do not count.
        counted: Windows that do.
        seed: Of the values.
    """
    rng, some = np.random.default_rng(seed), [FAMILIES[name] for name in names]
    detector, n = Detector(DetectorConfig()), series * len(some)
    state, rows = detector.new_state(n), np.arange(n)
    kinds, families = (np.repeat([getattr(one, what) for one in some], series) for what in ("kind", "family"))
    about = About(kinds.astype(np.int64), families.astype(np.int64), np.ones(n))
    seen = np.zeros((len(LEVELS) + 1, n))
    for step in range(warm + counted):
        values = np.concatenate([one.draw(rng, series) for one in some])
        verdicts = detector.step(state, rows, np.full(n, step * STEP), values, None, about)
        if step >= warm:
            loud = verdicts.record_score >= detector.config.threshold
            seen += np.array([*(verdicts.probability < level for level in LEVELS), loud])
    parts = np.split(seen, len(some), axis=1)
    return {name: Shares.of(part, counted) for name, part in zip(names, parts, strict=True)}


MACHINES: dict[str, Callable[[Array, Array], Array]] = {
    "joined, independent normal": lambda noise, _alike: 50 + 5 * noise,
    "joined, correlated normal": lambda noise, alike: 50 + 5 * noise @ alike,
    "joined, independent lognormal": lambda noise, _alike: np.exp(3 + 0.6 * noise),
    "joined, correlated lognormal": lambda noise, alike: np.exp(3 + 0.3 * noise @ alike),
}
"""Values of the metrics of machines, of standard normal noise and of how the metrics go together."""

_WIDTHS = (2, 5)
"""Metrics of the machines of each kind."""


def joined_shares(
    names: Sequence[str], machines: int, metrics: int, warm: int, counted: int, seed: int
) -> dict[str, Shares]:
    """The same of the joined verdicts on machines of some kinds, so many of each.

    Args:
        names: Of `MACHINES`.
        machines: Number of machines of each kind.
        metrics: Metrics of each.
        warm: Windows that do not count.
        counted: Windows that do.
        seed: Of the values, and of how the metrics go together: the same for each kind.
    """
    config, width, n = DetectorConfig(), 8, machines * len(names)
    draws = [(MACHINES[name], np.random.default_rng(seed)) for name in names]
    alike = [rng.normal(0, 1, (metrics, metrics)) for _, rng in draws]
    detector, model, joined = Detector(config), Multivariate(MultivariateConfig(), width), Joined(config)
    state, own, both = detector.new_state(n * metrics), model.new_state(n), joined.new_state(n)
    rows, owner = np.arange(n * metrics), np.repeat(np.arange(n), metrics)
    there, window = np.ones(len(rows), np.bool_), np.full((n, width), np.nan)
    seen = np.zeros((len(LEVELS) + 1, n))
    for step in range(warm + counted):
        window[:, :metrics] = np.concatenate(
            [
                draw(rng.normal(0, 1, (machines, metrics)), together)
                for (draw, rng), together in zip(draws, alike, strict=True)
            ]
        )
        time = np.full(n, step * STEP)
        single = detector.step(state, rows, time[owner], window[:, :metrics].reshape(-1))
        whole = model.step(own, np.arange(n), time, window)
        evidence = combine([single.evidence[name] for name in ("point", "window", "record", "change")])
        shares_of = whole.shares[:, :metrics].reshape(-1)
        both_ways = Together(-np.log(whole.probability), shares_of, np.full(len(shares_of), np.nan))
        verdicts = joined.join(
            both, Windows(np.arange(n), time, metrics * np.arange(n + 1)), evidence, there, both_ways
        ).verdicts
        if step >= warm:
            loud = verdicts.record_score >= config.threshold
            seen += np.array([*(verdicts.probability < level for level in LEVELS), loud])
    parts = np.split(seen, len(names), axis=1)
    return {name: Shares.of(part, counted) for name, part in zip(names, parts, strict=True)}


def run(series: int, windows: int, warm: int, seed: int) -> dict[str, Any]:
    """Judges each family by itself, prints a table of shares over what they should be; returns the figures."""
    figures: dict[str, Any] = {"series": series, "windows": windows, "warm": warm, "seed": seed}
    machines = max(series // 4, 1)
    seen = {name: shares([name], series, warm, windows, seed)[name] for name in FAMILIES}
    for width in _WIDTHS:
        for name, one in joined_shares(list(MACHINES), machines, width, warm, windows, seed).items():
            seen[f"{name}, {width} metrics"] = one
    lines = []
    for name, one in seen.items():
        figures[name] = [share / level for share, level in zip(one.below, LEVELS, strict=True)]
        lines.append([name, *figures[name], one.alarms * MONTH])
    columns = ["family", *(f"{level:g}" for level in LEVELS), "alarms a month"]
    show.table("Share of windows with a probability below p, in p", columns, lines)
    return figures
