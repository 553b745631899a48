"""A site of many series without Spark and Kafka: what a micro-batch of few of them costs, and of all."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from engine.runtime.intake import read
from engine.runtime.shard import ShardOperator
from engine.spec.job import Job
from engine.spec.record import Record
from engine.state.segments import DictSegments
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.detectors.job import detector
from pipelines.jobs.extractor import extractor
from tests.benchmarks.detector import FeatureLoad
from tests.benchmarks.queries import say
from tests.benchmarks.shard import kafka_rows

_SHARDS, _METRICS, _STEP = 2, 10, 10_000
_BEGIN = 1_784_000_000_000
_ALL, _MACHINES, _SPREAD = "all", "one machine in a hundred", "one series in a hundred, of different machines"
_PLAN = (*[_ALL] * 3, *[_MACHINES] * 3, *[_SPREAD] * 3, _ALL, _ALL)
"""What the windows after each other touch; the first two, in which series are new, do not count.

They are too few for a machine that is left out to count as absent.
"""
_UNCOUNTED = 2


@dataclass(frozen=True)
class _Measured:
    """A job, the records of its input, and how those of a window are made of windows of features."""

    job: Job
    topic: str
    record: type[Record]
    records: Callable[[pl.DataFrame], pl.DataFrame]


def run(keys: int, emit: str) -> dict[str, Any]:
    """CPU and wall milliseconds of micro-batches of one window, by what they touch; state and memory at the end.

    Args:
        keys: Series of both shards; one of the shards is measured.
        emit: The setting ``detector.emit``.
    """
    settings = load(**{"detector.emit": emit})
    made = FeatureLoad(keys, len(_PLAN), _BEGIN)
    measured = {
        "extractor": _Measured(extractor(settings), topics.TELEMETRY, Telemetry, _samples),
        "detector": _Measured(detector(settings), topics.FEATURES, Features, lambda frame: frame),
    }
    figures: dict[str, Any] = {"series": keys, "emit": emit}
    for name, each in measured.items():
        with TemporaryDirectory(prefix="newnormal-large-", dir="/dev/shm") as folder:
            figures[name] = _measure(settings, each, made, Path(folder))
    return figures


def _measure(settings: Settings, measured: _Measured, made: FeatureLoad, folder: Path) -> dict[str, Any]:
    state, spent = DictSegments(folder / "kept"), dict[str, list[tuple[float, float]]]()
    for number, (touched, whole) in enumerate(zip(_PLAN, made.chunks(), strict=False)):
        batch = _batch(settings, measured, whole.filter(_chosen(touched, whole.height)), number)
        began, wall = time.process_time(), time.perf_counter()
        list(ShardOperator(measured.job, 0, _SHARDS).run(read(measured.job, [batch], 0), state))
        took = time.process_time() - began, time.perf_counter() - wall
        say(f"{measured.job.name}: {touched}: {took[0]:.2f} s of CPU, {took[1]:.2f} s")
        if number >= _UNCOUNTED:
            spent.setdefault(touched, []).append(took)
    cost = {
        touched: [round(median(each) * 1000) for each in zip(*took, strict=True)] for touched, took in spent.items()
    }
    return {
        "cpu_ms": {touched: cpu for touched, (cpu, _) in cost.items()},
        "wall_ms": {touched: wall for touched, (_, wall) in cost.items()},
        "cpu_share_of_all": {t: round(cpu / cost[_ALL][0], 3) for t, (cpu, _) in cost.items() if t != _ALL},
        "state_bytes": sum(map(len, state.values.values())),
        "shared_memory_mb": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) // 2**20,
        "most_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _chosen(touched: str, keys: int) -> pl.Series:
    """Which series a window touches."""
    series = np.arange(keys)
    machine, metric = series // _METRICS, series % _METRICS
    flags = {
        _ALL: np.ones(keys, np.bool_),
        _MACHINES: machine % 100 == 0,
        _SPREAD: (machine % 10 == 1) & (metric == machine // 10 % _METRICS),
    }
    return pl.Series(flags[touched])


def _batch(settings: Settings, measured: _Measured, windows: pl.DataFrame, number: int) -> pa.Table:
    """Kafka rows of the first shard with the records of some windows, which the watermark passes."""
    end, records = int(windows["window_end"][0]), measured.records(windows)
    return kafka_rows(settings, measured.topic, measured.record, records, _SHARDS, number, end)


def _samples(windows: pl.DataFrame) -> pl.DataFrame:
    """A sample of each window; of a tenth of the metrics it is one of a counter."""
    counter = pl.col("metric") == "metric.0"
    return windows.select(
        "entity", "metric", time=pl.col("window_start") + 5_000, value="mean",
        kind=pl.when(counter).then(pl.lit("counter")).otherwise(pl.lit("gauge")),
    )  # fmt: skip
