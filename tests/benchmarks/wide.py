"""Machines of many metrics: how well breaks are found by blocks of metrics, and what they cost.

The machines are simulated: metrics follow a daily load and either a few factors that all of them share, or one factor
for each five of them, which stand side by side in the order of names or do not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from models.machine.blocks import LARGEST_BLOCK, join_blocks
from models.machine.config import MultivariateConfig
from models.machine.multivariate import Multivariate
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import load
from pipelines.evaluation import show
from pipelines.evaluation.recorded import judge
from pipelines.evaluation.vus import auc_pr, vus_pr
from pipelines.jobs.detectors.metrics.detection import Detection

STEP, DAY = 300_000, 288
_QUIET, _BREAKS, _APART, _LENGTHS = 1000, 16, 110, (3, 40)
"""Windows before the first break; how many there are; windows between two of them, and of short and long ones."""

SITES = {"few factors": (False, False), "groups of five": (True, False), "groups, names at random": (True, True)}
"""Whether five metrics each follow a factor of their own, and whether names say nothing of it."""

METHODS = ("verdict", "blocks", "one model of all, exact", "first block alone")


def run(metrics: int, machines: int, widths: Sequence[int], seed: int) -> dict[str, Any]:
    """Judges ``machines`` simulated machines of each kind, and measures the cost of machines of some ``widths``."""
    quality = {}
    for site, (grouped, shuffled) in SITES.items():
        rngs = [np.random.default_rng([seed, number]) for number in range(machines)]
        areas = np.array([_measured(*_machine(rng, metrics, grouped, shuffled)) for rng in rngs])
        means = [dict(zip(("vus_pr", "auc_pr"), area, strict=True)) for area in areas.mean(axis=0).tolist()]
        quality[site] = dict(zip(METHODS, means, strict=True))
        show.table(
            site, ["method", "VUS-PR", "AUC-PR"], [[name, *area.values()] for name, area in quality[site].items()]
        )
    return {"quality": quality, "cost": {str(width): _cost(width, seed) for width in widths}}


def _machine(rng: np.random.Generator, metrics: int, grouped: bool, shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """Values, shape (windows, metrics), and where they are broken, shape (windows,).

    Breaks are short and long by turns: one metric, or eight of them, are as at another time; a third of the metrics lie
    a little off, each in a direction of its own; or one factor, with all metrics that follow it, is off.
    """
    windows = _QUIET + _BREAKS * _APART
    factors = -(-metrics // 5) if grouped else 5
    daily = np.sin(2 * np.pi * np.arange(windows) / DAY) + 0.4 * _wander(rng, windows, 1, 0.95)[:, 0]
    causes = np.column_stack([daily, _wander(rng, windows, factors, 0.85)])
    weights = rng.normal(size=(1 + factors, metrics)) * (rng.random((1 + factors, metrics)) < 0.5)
    if grouped:
        weights[1:] = np.eye(factors).repeat(5, axis=1)[:, :metrics] * rng.choice([-1, 1], metrics)
    weights[0] = rng.normal(0, 0.6, metrics)
    values, labels = causes @ weights, np.zeros(windows)
    elsewhere = np.roll(causes, windows // 3, axis=0)
    for number in range(_BREAKS):
        start = _QUIET + number * _APART + int(rng.integers(0, 30))
        span, kind = slice(start, start + _LENGTHS[number % 2]), number // 2 % 4
        labels[span] = 1
        some = rng.choice(metrics, (1, 8, metrics // 3, metrics)[kind], replace=False)
        if kind < 2:
            values[span, some] = (elsewhere[span] @ weights)[:, some]
        elif kind == 2:
            values[span, some] += 0.6 * rng.choice([-1, 1], len(some))
        else:
            values[span] += 2.5 * weights[rng.integers(1, 1 + factors)]
    values += _wander(rng, windows, metrics, 0.5) * rng.uniform(0.2, 0.6, metrics)
    values = 50 + values * rng.uniform(1, 20, metrics)
    return (values[:, rng.permutation(metrics)] if shuffled else values), labels


def _wander(rng: np.random.Generator, windows: int, n: int, keep: float) -> np.ndarray:
    """Autoregressive values of variance 1, shape (windows, n)."""
    values = rng.normal(size=(windows, n))
    for window in range(1, windows):
        values[window] = keep * values[window - 1] + np.sqrt(1 - keep**2) * values[window]
    return values


def _measured(values: np.ndarray, labels: np.ndarray) -> list[tuple[float, float]]:
    """VUS-PR and AUC-PR of each of the `METHODS`."""
    blocks = [values[:, first : first + LARGEST_BLOCK] for first in range(0, values.shape[1], LARGEST_BLOCK)]
    evidence = np.array([_evidence(block) for block in blocks])
    first = len(blocks) * np.arange(len(values) + 1)
    sizes = np.tile([float(block.shape[1]) for block in blocks], len(values))
    verdict = judge(_frame(values), load().detector).filter(metric=JOINED)["record_score"].to_numpy()
    joined = join_blocks(first, evidence.T.reshape(-1), sizes)[0]
    learned = slice(_QUIET // 2, None)
    return [
        (vus_pr(labels[learned], score[learned], 30), auc_pr(labels[learned], score[learned]))
        for score in (verdict, joined, _evidence(values), evidence[0])
    ]


def _evidence(values: np.ndarray) -> np.ndarray:
    """What one model says of all these metrics, in nats."""
    model, windows = Multivariate(MultivariateConfig(), values.shape[1]), len(values)
    verdicts = model.step(model.new_state(1), np.zeros(windows, np.int64), STEP * np.arange(windows), values)
    evidence: np.ndarray = -np.log(verdicts.probability)
    return evidence


def _frame(values: np.ndarray) -> pl.DataFrame:
    windows, metrics = values.shape
    names = np.tile([f"m{number:04}" for number in range(metrics)], windows)
    times = np.repeat(STEP * np.arange(1, windows + 1), metrics)
    return pl.DataFrame({"metric": names, "time": times, "value": values.reshape(-1)}).with_columns(entity=pl.lit("a"))


def _cost(metrics: int, seed: int) -> dict[str, float]:
    """CPU time of a window once 300 are known, all in all and of the joint model, and bytes of the latter's state."""
    windows, known = 1000, 300
    values = _machine(np.random.default_rng(seed), metrics, False, False)[0][:windows]
    frame = _frame(values).rename({"time": "window_end"}).with_columns(window_start=pl.col("window_end") - STEP)
    detection = Detection(load().detector)
    early = pl.col("window_end") <= known * STEP
    _, state = detection.process(frame.filter(early), detection.new_state())
    spent, step = 0.0, detection.machines.step

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        begun = time.process_time()
        result = step(*arguments)
        spent += time.process_time() - begun
        return result

    detection.machines.step = timed  # type: ignore[method-assign]
    begun = time.process_time()
    _, state = detection.process(frame.filter(~early), state)
    whole = time.process_time() - begun
    tables = [table for name, table in state.to_tables().items() if name.startswith("machines-")]
    size = sum(column.nbytes for table in tables for column in table.columns)
    each = 1e6 / (windows - known)
    return {
        "us_a_window": round(whole * each, 1),
        "us_a_window_together": round(spent * each, 1),
        "bytes_a_metric_together": round(size / metrics),
    }
