"""The engine beside what a Spark user writes by hand, and beside itself: windows, process, sliding windows, growth.

Those that are compared read the same records in one run, and what they wrote is compared row by row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql.streaming.query import StreamingQuery

from deploy.embedded.services import embedded
from engine.formats.json_decoder import JsonDecoder
from engine.operators import Process
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.evaluation import show
from pipelines.jobs import chain as jobs
from tests.benchmarks import averages, growth, outputs
from tests.benchmarks.handwritten import by_hand
from tests.benchmarks.load import Load, write_columnar, write_json
from tests.benchmarks.queries import Queries, say, session

WARM_UP, BATCH = 40, 400_000
KEYS = (10_000, 100_000)
BARS = {"log": 4.0, "json": 1.2, "process": 10.0, "sliding": 0.5}
"""Ratios that are aimed at."""


def run(
    parts: Sequence[str] | None = None,
    keys: Sequence[int] | None = None,
    records: int | None = None,
    kafka: str | None = None,
    state_dir: Path | None = None,
    plot: Path | None = None,
    warm_up: int = WARM_UP,
) -> dict[str, Any]:
    """Measures some parts at some numbers of keys, prints a table; returns the figures.

    Args:
        parts: Of `PARTS`, or ``growth``; all of them by default.
        keys: Series of each measurement, by default `KEYS`; `growth` has its own.
        records: Instead of the number that each part takes by default.
        kafka: A broker; by default an embedded one.
        state_dir: For servers and checkpoints.
        plot: Where `growth` draws its plot.
        warm_up: Micro-batches of each query's warm-up.
    """
    parts, keys = parts or [*PARTS, "growth"], keys or KEYS
    settings = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir})
    figures: dict[str, Any] = {}
    wanted = [(part, n) for part in parts if part in PARTS for n in keys]
    if wanted:
        with (
            embedded(settings, elasticsearch=False) as servers,
            session(servers.settings(settings), preload=[averages.__name__]) as spark,
        ):
            for part, n in wanted:
                name = f"{part}-{n}-{int(time.time())}."
                own = servers.settings(settings).model_copy(update={"namespace": name})
                found = PARTS[part](Queries(spark, own, warm_up), n, records)
                say(f"{part}, {n:,} keys: ratio {found['ratio']}, outputs {_same(found)}")
                figures[f"{part}, {n:,} keys"] = found
        _table(figures)
    if "growth" in parts:
        figures["growth"] = growth.run(plot)
    return figures


def windows(queries: Queries, keys: int, records: int | None) -> dict[str, Any]:
    """Statistics in tumbling windows: by hand on JSON, ours on JSON in one job, ours on the columnar log."""
    load = _written(queries, Load.recent(records or 4_000_000, keys), json=True, log=True)
    batch = min(BATCH, load.records // 8)

    extractor = jobs.extractor(queries.settings)
    rates = {
        "handwritten": queries.theirs("handwritten", by_hand(queries, True), load.records, batch),
        "json": queries.ours("json", replace(extractor, inputs=(_json(queries.settings),)), load.records, batch),
        "log": queries.ours("log", extractor, load.records, batch),
    }
    theirs = queries.topic("handwritten")
    same = {n: outputs.compare_windows(queries.bootstrap, queries.topic(n), theirs) for n in ("json", "log")}
    return _figures(load, rates, "handwritten", same)


def process(queries: Queries, keys: int, records: int | None) -> dict[str, Any]:
    """State and a timer a key: row-mode transformWithState and ours, both from JSON to JSON.

    A short warm-up: row mode takes a millisecond or two for each key in each micro-batch, the JVM little of it.
    """
    queries = Queries(queries.spark, queries.settings, max(2, queries.warm_up // 4), share=0.1)
    load = _written(queries, Load.recent(records or 200_000, keys, tail_ms=45_000), json=True)
    settings, batch = queries.settings, min(BATCH, load.records // 6)
    source = queries.topic(topics.RAW_JSON)

    def begin(target: str, work: Path, most: int) -> StreamingQuery:
        return averages.start(queries.spark, queries.bootstrap, source, target, work, most)

    stream = Stream.read(_json(settings)).key_by("entity", "metric").process(Process(averages.Averages()))
    dead = Output(queries.topic(topics.DEADLETTER), Telemetry, "json", settings.kafka.partitions)
    job = stream.write("process", Output("process", averages.Average, "json", settings.kafka.partitions), dead)
    rates = {
        "rowmode": queries.theirs("rowmode", begin, load.records, batch),
        "process": queries.ours("process", job, load.records, batch),
    }
    mine, theirs = (_ahead_of_end(outputs.json_rows(queries.bootstrap, queries.topic(name)), load) for name in rates)
    by, columns = [*outputs.SERIES, "time"], ["n", "mean", "ewma"]
    return _figures(load, rates, "rowmode", {"process": outputs.compare(mine, theirs, by, columns)})


def _ahead_of_end(rows: pl.DataFrame, load: Load) -> pl.DataFrame:
    """Without what the records that end the load led to: whether they are taken in depends on the watermark."""
    return rows.filter(pl.col("time") < load.begin + load.span_ms + load.tail_ms)


def sliding(queries: Queries, keys: int, records: int | None) -> dict[str, Any]:
    """Windows of 60 s every 10 s beside tumbling ones of 10 s, twice in turn.

    Of each run the second half counts, in which windows are whole.
    """
    load = _written(queries, Load.recent(records or 6_000_000, keys, span_ms=120_000), log=True)
    settings, batch = queries.settings, min(BATCH, load.records // 8)
    rates: dict[str, list[float]] = {"tumbling": [], "sliding": []}
    for turn in range(2):
        for name, window in (("tumbling", {}), ("sliding", {"size": "60s", "every": "10s"})):
            windowed = settings.model_copy(update={"window": settings.window.model_copy(update=window)})
            job = jobs.extractor(windowed)
            rates[name].append(queries.ours(f"{name}{turn}", job, load.records, batch, since=0.5))
    tumbling, told = (outputs.windows(queries.bootstrap, queries.topic(f"{name}0"))[0] for name in rates)
    mean = {name: 2 / sum(1 / rate for rate in some) for name, some in rates.items()}
    return _figures(load, mean, "tumbling", {"sliding": _summed(told, tumbling)})


def _summed(told: pl.DataFrame, tumbling: pl.DataFrame) -> dict[str, Any]:
    """Whether each sliding window is made of the tumbling ones in it."""
    parts = pl.concat([tumbling.with_columns(pl.col("window_end") + 10_000 * i) for i in range(6)])
    by, n = [*outputs.SERIES, "window_end"], pl.col("count")
    sums = {"mean": (pl.col("mean") * n).sum() / n.sum(), "count": n.sum()}
    made = parts.group_by(by).agg(**sums, min=pl.col("min").min(), max=pl.col("max").max())
    known = pl.col("window_end") <= tumbling["window_end"].max()
    return outputs.compare(told.filter(known), made.filter(known), by, ["count", "mean", "min", "max"])


PARTS = {"windows": windows, "process": process, "sliding": sliding}


def _json(settings: Settings) -> Source:
    """The JSON topic as an input of its own; the log of the normalizer's other inputs does not matter."""
    known, name = jobs.normalizer(settings).source, settings.topic(topics.RAW_JSON)
    expected = tuple((topic, p) for topic, p in known.watermark.expected if topic == name)
    return replace(known, formats={name: JsonDecoder(Telemetry)}, watermark=replace(known.watermark, expected=expected))  # type: ignore[type-var]


def _written(queries: Queries, load: Load, json: bool = False, log: bool = False) -> Load:
    """Writes the load."""
    say(f"writing {load.records:,} records of {load.keys:,} series")
    if json:
        write_json(queries.bootstrap, queries.topic(topics.RAW_JSON), load)
    if log:
        partitions = queries.settings.kafka.partitions
        write_columnar(queries.bootstrap, queries.topic(topics.TELEMETRY), partitions, load)
    queries.topic(topics.DEADLETTER)
    queries.topic(topics.FEATURES_LATE)
    return load


def _figures(load: Load, rates: Mapping[str, float], base: str, same: Mapping[str, Any]) -> dict[str, Any]:
    ratios = {name: round(rate / rates[base], 2) for name, rate in rates.items() if name != base}
    return {
        "records": load.records,
        "keys": load.keys,
        "records_per_second": {name: round(rate) for name, rate in rates.items()},
        "ratio": ratios,
        "bar": {name: BARS[name] for name in ratios},
        "outputs": same,
    }


def _table(figures: Mapping[str, Any]) -> None:
    rows = []
    for part, found in figures.items():
        for name, rate in found["records_per_second"].items():
            ratio, bar = found["ratio"].get(name), found["bar"].get(name)
            rows.append(
                [part, name, f"{rate:,}", f"{ratio:.2f}" if ratio else "1", str(bar or ""), _same(found).get(name, "")]
            )
    show.table("Engine", ["part", "query", "records/s", "ratio", "bar", "output"], rows)


def _same(found: Mapping[str, Any]) -> dict[str, str]:
    return {name: "equal" if compared["equal"] else "DIFFERENT" for name, compared in found["outputs"].items()}
