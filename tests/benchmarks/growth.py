"""How state and time grow with the number of keys: the operators with their packed state, without Spark and Kafka.

Each micro-batch brings one record a key; time and state are those of the last micro-batches, when windows open and
close in turn. `windows` are statistics with percentiles in tumbling windows of 10 s; `process` is `averages.Averages`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from engine.aggregates import Count, Last, Max, Mean, Min, Quantile, Std
from engine.operators import Process
from engine.operators.windows import WindowAggregate
from engine.spec.duration import NEVER
from engine.spec.operator import Operator, Progress
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from engine.windows import Tumbling
from pipelines.evaluation import show
from tests.benchmarks import averages

KEYS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
BATCHES, COUNTED, STEP_MS, BOUND_MS = 10, 6, 5_000, 5_000
_KEY = ("entity", "metric")
_VALUES = {"mean": Mean, "std": Std, "min": Min, "max": Max, "last": Last}


def operators() -> dict[str, Operator]:
    """What is measured."""
    values = {name: kind("value") for name, kind in _VALUES.items()}
    quantiles = {f"p{q}": Quantile("value", q / 100) for q in (50, 95, 99)}
    aggregates = {"count": Count(), **values, **quantiles}
    return {
        "windows": WindowAggregate(_KEY, "time", Tumbling("10s"), "0s", aggregates),
        "process": Process(averages.Averages()).bound(_KEY, "time"),
    }


def run(plot: Path | None = None, keys: Sequence[int] = KEYS) -> dict[str, Any]:
    """Measures, prints a table, draws a plot; returns the figures by operator and number of keys."""
    figures: dict[str, Any] = {name: {} for name in operators()}
    with show.bar("growth") as progress:
        for done, n in enumerate(keys):
            for name, config in operators().items():
                figures[name][str(n)] = measure(config, n)
            progress(done + 1, len(keys))
    rows = [
        [name, f"{int(n):,}", f["state_bytes_per_key"], f["batch_ms"], f["records_per_second"]]
        for name, found in figures.items()
        for n, f in found.items()
    ]
    show.table("Growth", ["operator", "keys", "state, bytes a key", "micro-batch, ms", "records/s"], rows)
    if plot:
        draw(figures, plot)
    return figures


def measure(config: Operator, keys: int) -> dict[str, float]:
    """One operator in one shard."""
    rng = np.random.default_rng(7)
    number = np.arange(keys)
    names = {
        "entity": pl.Series([f"host-{k // 10}" for k in number]),
        "metric": pl.Series([f"m{k % 10}" for k in number]),
    }
    series = pl.DataFrame(names).cast(pl.Categorical)
    store, processor, before, took, held = DictSegments(), build(config), NEVER, [], []
    for batch in range(BATCHES):
        times = 1_700_000_000_000 + batch * STEP_MS + number * STEP_MS // keys
        records = series.with_columns(pl.Series("time", times), pl.Series("value", rng.normal(100, 15, keys)))
        now = int(times[-1]) - BOUND_MS
        began = time.perf_counter()
        state = ShardState(store)
        processor.process(records, state, Progress(before, now))
        held.append(state.save())
        took.append(time.perf_counter() - began)
        before = now
    seconds = statistics.mean(took[-COUNTED:])
    return {
        "state_bytes_per_key": round(statistics.mean(held[-COUNTED:]) / keys, 1),
        "batch_ms": round(seconds * 1000, 1),
        "records_per_second": round(keys / seconds),
    }


def draw(figures: dict[str, Any], plot: Path) -> None:
    """State and time over the number of keys, both logarithmic, with a line of proportion."""
    import matplotlib as mpl  # noqa: PLC0415  only when plots are drawn

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415  after the backend is chosen

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    panels = {
        "state, MB": lambda n, f: n * f["state_bytes_per_key"] / 1e6,
        "micro-batch, ms": lambda _, f: f["batch_ms"],
    }
    for axis, (label, value) in zip(axes, panels.items(), strict=True):
        for name, found in figures.items():
            keys = [int(n) for n in found]
            line = [value(int(n), f) for n, f in found.items()]
            axis.loglog(keys, line, "o-", label=name)
            axis.loglog(keys, [line[-1] * n / keys[-1] for n in keys], ":", color="grey", linewidth=1)
        axis.set_xlabel("keys")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    mpl.rcParams["svg.hashsalt"] = "newnormal"
    figure.savefig(plot, metadata={"Date": None} if plot.suffix == ".svg" else None)
    plt.close(figure)
