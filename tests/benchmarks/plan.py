"""The coefficients of `newnormal plan`: runs other benchmarks at two sizes, and fits what each unit costs.

``newnormal bench plan`` writes the file that ships with the package. What these benchmarks do not measure keeps the
value and the source that it has in that file.
"""

from __future__ import annotations

import json
import math
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from engine.formats import columnar
from engine.runtime.shard import ROWS_A_MESSAGE, to_table
from engine.spec.record import Record
from pipelines.contracts.records import Features, Telemetry
from pipelines.plan import coefficients
from tests.benchmarks import detector, engine, growth, logs, model, shard, sink, throughput, topology
from tests.benchmarks.detector import FeatureLoad
from tests.benchmarks.load import Load
from tests.benchmarks.queries import say

SIZES = (10_000, 100_000)
"""Series of the two runs of each benchmark whose cost depends on their number."""
SMALL_MESSAGE, WINDOW_MS, SPAN_MS, BEGIN = 1_000, 10_000, 60_000, 1_784_000_000_000


def run(records: int, documents: int, lines: int, kafka: str | None, state_dir: Path | None) -> dict[str, Any]:
    """Measures; returns the tree of a file of coefficients."""
    tree = json.loads(coefficients.SHIPPED.read_text(encoding="utf-8"))
    found, cores = tree["coefficients"], os.cpu_count() or 1

    def note(name: str, value: float, source: str) -> None:
        found[name] = {"value": round(value, 5), "source": source}
        say(f"{name}: {value:.5g} {coefficients.UNITS[name]}, {source}")

    for name, value, source in (*messages(), *states()):
        note(name, value, source)
    for name, value in topology.run().items():
        note(name, value, f"bench plan: {value:.3g} {coefficients.UNITS[name]}, without Spark")
    for name, value, source in (*extractor(records, cores, kafka, state_dir), *judging(cores, kafka, state_dir)):
        note(name, value, source)
    rate = throughput.run(records, SIZES[0], kafka, state_dir)["records_per_second"]["normalizer"]
    note("normalizer.sample", cores / rate * 1e6, f"bench throughput: {rate:,} records/s on {cores} cores")
    told = sink.run(documents)
    for name, key in (
        ("sink.document", "job_per_second"),
        ("elasticsearch.document", "elasticsearch_alone_per_second"),
    ):
        note(name, cores / told[key] * 1e6, f"bench sink: {told[key]:,} documents/s on {cores} cores")
    # the job's run has Elasticsearch on the same cores
    own = max(0.0, found["sink.document"]["value"] - found["elasticsearch.document"]["value"])
    note("sink.document", own, found["sink.document"]["source"] + ", without those of Elasticsearch")
    note("novelties.verdict", told["bytes"] + 15, "bench sink: bytes of a verdict, and Kafka's record format, 15")
    mined = logs.run(lines, 1_000)
    for name, key in (
        ("log_normalizer.line", "json_to_columns_per_second"),
        ("templates.line", "templates_job_per_second"),
    ):
        note(name, 1e6 / mined[key], f"bench logs: {mined[key]:,} lines/s on one core")
    tree |= {
        "machine": f"{cores} cores, {platform.machine()}, {platform.system()}",
        "date": datetime.now(UTC).date().isoformat(),
        "command": "newnormal bench plan",
        "source": "Measured by `newnormal bench plan`, but for those coefficients whose source names another place.",
    }
    coefficients.of(tree)
    return tree


def fit(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float]:
    """What a sample and a window cost, from two runs.

    Args:
        first: (samples, windows, core-seconds) of one run.
        second: The same of another, with another ratio of windows to samples.

    Returns:
        (core-seconds a sample, core-seconds a window), neither below 0.

    >>> fit((100, 10, 120), (100, 50, 200))
    (1.0, 2.0)
    """
    (n, w, t), (m, v, u) = first, second
    both = n * v - m * w
    sample, window = (t * v - u * w) / both, (n * u - m * t) / both
    if sample < 0 or window < 0:  # noise: all of the cost is then that of the other
        return (0.0, (t + u) / (w + v)) if sample < 0 else ((t + u) / (n + m), 0.0)
    return sample, window


def power(small: float, large: float, ratio: float) -> float:
    """The exponent of a power that gives two sizes of a row, one in messages ``ratio`` times as long as in the other.

    >>> round(power(8, 4, 4), 6)
    -0.5
    """
    return min(0.0, math.log(large / small) / math.log(ratio))


def messages() -> list[tuple[str, float, str]]:
    """Bytes of a sample and of a window in messages of two lengths, each row of another series."""
    samples = next(iter(Load(100_000, 100_000, WINDOW_MS, begin=BEGIN).chunks()))
    windows = next(iter(FeatureLoad(100_000, 1, BEGIN).chunks()))
    found = []
    for name, row, frame, record in (
        ("telemetry", "sample", samples, Telemetry),
        ("features", "window", windows, Features),
    ):
        small, large = (_bytes(frame.head(n), record) for n in (SMALL_MESSAGE, ROWS_A_MESSAGE))
        source = f"messages of {SMALL_MESSAGE:,} and {ROWS_A_MESSAGE:,} rows: {small:.1f} and {large:.1f} bytes a row"
        found.append((f"{name}.{row}", small, source))
        found.append((f"{name}.exponent", power(small, large, ROWS_A_MESSAGE / SMALL_MESSAGE), source))
    return found


def _bytes(frame: pl.DataFrame, record: type[Record]) -> float:
    return len(columnar.encode(to_table(frame, record), BEGIN)) / frame.height


def states() -> list[tuple[str, float, str]]:
    """Bytes of state a series, at two numbers of series: the larger of both."""
    sizes = [growth.measure(growth.operators()["windows"], n)["state_bytes_per_key"] for n in SIZES]
    told = model.run(SIZES[0], 2.0)["bytes_per_series"]
    return [
        ("extractor.state", max(sizes), f"bench engine, growth: {sizes[0]} and {sizes[1]} bytes a key"),
        ("detector.state", told, f"bench model: {told:,} bytes a series"),
    ]


def extractor(records: int, cores: int, kafka: str | None, state_dir: Path | None) -> list[tuple[str, float, str]]:
    """Cost of a sample and of a window: two runs with the same samples, one with ten times the series."""
    found = engine.run(["windows"], SIZES, records, kafka, state_dir)
    runs = []
    for keys in SIZES:
        rate = found[f"windows, {keys:,} keys"]["records_per_second"]["log"]
        runs.append((float(records), keys * SPAN_MS / WINDOW_MS, records / rate * cores))
    sample, window = fit(*runs)
    source = f"bench engine, windows from the columnar log: fit to {SIZES[0]:,} and {SIZES[1]:,} series"
    return [("extractor.sample", sample * 1e6, source), ("extractor.window", window * 1e6, source)]


def judging(cores: int, kafka: str | None, state_dir: Path | None) -> list[tuple[str, float, str]]:
    """Cost of a judged window with each `detector.emit`, at two numbers of series: the larger of both."""
    runs = [detector.run(keys, 2_400_000 // keys, kafka, state_dir)["rows_per_second"] for keys in SIZES]
    found = []
    for emit in ("all", "context", "novel"):
        rates = [told[f"Spark, emit={emit}"] for told in runs]
        source = f"bench detector: {rates[0]:,} and {rates[1]:,} rows/s on {cores} cores with {SIZES} series"
        found.append((f"detector.{emit}", cores / min(rates) * 1e6, source))
    quiet = shard.run(1_000, 720, 20, "context", 0.0)
    share = quiet["verdicts"] / (quiet["series"] / 2 * 720 * 1.1)
    found.append(("stored.context", share, "bench shard --keys 1000 --windows 720 --outliers 0: a quiet site"))
    return found
