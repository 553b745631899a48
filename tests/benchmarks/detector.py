"""The detector on Spark, from the columnar features topic to verdicts in Kafka, beside the models alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from deploy.embedded.services import embedded
from engine.kafka.heartbeat_sender import HeartbeatSender
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.records.novelty import QUIET_KINDS
from pipelines.contracts.settings import DetectorSettings, load
from pipelines.evaluation import show
from pipelines.jobs import chain
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.judging import rows_to_judge
from pipelines.jobs.links import LINKS
from tests.benchmarks import outputs
from tests.benchmarks.load import write_columnar
from tests.benchmarks.queries import Queries, say, session

_METRICS = 10
_STEP = 10_000
_BATCH = 400_000
_END = 1_000_000
_OUTLIERS = 0.001
_EMIT = ("all", "context", "novel")
"""What the job writes: a verdict for each window, those around incidents, or only news and ends of incidents."""

NUMBERS = ["record_score", "probability", "typical", "lower", "upper"]


@dataclass(frozen=True)
class FeatureLoad:
    """Windows of machines with ten metrics each, all of a window before all of the next: daily curves, noise, outliers.

    Args:
        keys: Series.
        windows: Of each series.
        begin: Start of the first, epoch milliseconds.
        outliers: Share of the values that are three times as large.
    """

    keys: int
    windows: int
    begin: int
    outliers: float = _OUTLIERS
    time: ClassVar[str] = "window_end"

    @property
    def records(self) -> int:
        """Rows in all."""
        return self.keys * self.windows

    def chunks(self) -> Iterator[pl.DataFrame]:
        """A window of all series at a time, and at the end one that moves the watermark of each partition."""
        rng = np.random.default_rng(11)
        series = np.arange(self.keys)
        names = pl.DataFrame({"e": series // _METRICS, "m": series % _METRICS}).select(
            entity=pl.lit("host-") + pl.col("e").cast(pl.String), metric=pl.lit("metric.") + pl.col("m").cast(pl.String)
        )
        for window in range(self.windows):
            start = self.begin + window * _STEP
            mean = 100 + 10 * np.sin(2 * np.pi * start / 86_400_000) + rng.normal(0, 5, self.keys)
            mean[rng.random(self.keys) < self.outliers] *= 3
            yield _frame(names, start, mean)
        ends = pl.DataFrame({"entity": [f"end-{i}" for i in range(400)], "metric": ["m"] * 400})
        yield _frame(ends, self.begin + self.windows * _STEP + _END, np.zeros(400))


def _frame(names: pl.DataFrame, start: int, mean: np.ndarray) -> pl.DataFrame:
    count, revision = pl.lit(10, pl.Int64), pl.lit(0, pl.Int64)
    value = pl.Series("mean", mean)
    others = dict.fromkeys(("min", "max", "last", "p50", "p95", "p99"), value)
    return names.with_columns(
        kind=pl.lit("gauge"), window_start=start, window_end=start + _STEP, count=count, mean=value,
        std=pl.lit(5.0), revision=revision, **others,
    )  # fmt: skip


def run(
    keys: int = 10_000,
    windows: int = 240,
    kafka: str | None = None,
    state_dir: Path | None = None,
    warm_up: int = 30,
) -> dict[str, Any]:
    """Measures, compares the verdicts with those of the models alone, prints a table; returns the figures."""
    settings = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir})
    begin = (int(time.time() * 1000) - windows * _STEP - 2 * _END) // _STEP * _STEP
    made = FeatureLoad(keys, windows, begin)
    with embedded(settings, elasticsearch=False) as servers:
        found = servers.settings(settings)
        with session(found) as spark:
            own = found.model_copy(update={"namespace": f"detector-{int(time.time())}."})
            queries = Queries(spark, own, warm_up)
            say(f"writing {made.records:,} windows of {keys:,} series")
            write_columnar(queries.bootstrap, queries.topic(topics.FEATURES), own.kafka.partitions, made, Features)
            for name in (
                topics.DEADLETTER,
                *LINKS["detector"].outputs,
            ):  # a message to a topic that does not exist waits for ever
                queries.topic(name)
            said = [queries.topic(name) for name in (topics.RULES, topics.LABELS, topics.CHANGES)]
            rates, verdicts = {}, {}
            with HeartbeatSender(queries.bootstrap, said, every=3_600):  # one is enough: all windows are of the past
                for emit in _EMIT:
                    detector = own.detector.model_copy(update={"emit": emit})
                    job = chain.detector(own.model_copy(update={"detector": detector}))
                    rates[emit] = queries.ours(emit, job, made.records, min(_BATCH, made.records // 6))
                    verdicts[emit] = outputs.json_rows(queries.bootstrap, queries.topic(emit))
    alone, wanted = _alone(made, own.detector)
    same = {emit: _compared(verdicts[emit], wanted, emit, begin + windows * _STEP) for emit in _EMIT}
    rates_by_name = {f"Spark, emit={emit}": round(rate) for emit, rate in rates.items()}
    rates_by_name["models and frames alone, one core"] = round(alone)
    figures = {"series": keys, "rows": made.records, "rows_per_second": rates_by_name, "outputs": same}
    equal = "equal" if all(found["equal"] for found in same.values()) else "DIFFERENT"
    rows = [[name, f"{value:,}"] for name, value in rates_by_name.items()]
    show.table(f"Detector, {keys:,} series: verdicts {equal}", ["", "rows/s"], rows)
    return figures


def _compared(verdicts: pl.DataFrame, wanted: pl.DataFrame, emit: str, end: int) -> dict[str, Any]:
    """Of the job's verdicts and the models'; behind the end of the load all machines are absent."""
    by = ["entity", "metric", "window_end"]
    theirs = verdicts.rename({"host.name": "entity", "@timestamp": "window_end"}).filter(pl.col("window_end") <= end)
    news = wanted.filter(~pl.col("kind").is_in(QUIET_KINDS) | pl.col("incident_state").eq_missing("closed"))
    if emit == "novel":
        wanted = news
    elif emit == "context":  # which of the ordinary ones are written: tests/pipelines/detectors/test_surroundings.py
        ordinary = wanted.join(theirs, on=by, how="semi").join(news, on=by, how="anti")
        wanted = pl.concat([news, ordinary])
    return outputs.compare(theirs.select(*by, *NUMBERS), wanted, by, NUMBERS)


def _alone(made: FeatureLoad, settings: DetectorSettings) -> tuple[float, pl.DataFrame]:
    """Rows a second of the detection in this process, and its verdicts on all but the windows that end the load."""
    detection = Detection(settings)
    state, verdicts, seconds = detection.new_state(), [], []
    for chunk in made.chunks():
        if chunk["window_end"][0] > made.begin + made.windows * _STEP:
            break
        frame = rows_to_judge(chunk.with_columns(rate=pl.lit(None, pl.Float64)))
        began = time.perf_counter()
        found, state = detection.process(frame, state)
        seconds.append(time.perf_counter() - began)
        verdicts.append(found.select("entity", "metric", "window_end", "kind", "incident_state", *NUMBERS))
    warm = seconds[len(seconds) // 4 :]
    return made.keys * len(warm) / sum(warm), pl.concat(verdicts)
