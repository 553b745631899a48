"""What a site keeps whose pods come and go: the state after each day, with each pod alive for half a day.

Each day brings as many pods with new names as the day before, in workloads of ten; the pods that they replace are gone.
The operators run as in a job, on their packed state, without Spark and Kafka: the detector, the keys that a shard
knows, the incidents job, and the state view's database with what the detector says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
import polars as pl
import psutil

from engine.kept_memory import keep_little
from engine.spec.duration import NEVER
from engine.spec.operator import Progress
from engine.state.known_keys import KnownKeys
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.evaluation import show
from pipelines.jobs.detectors.detect_operator import STATE
from pipelines.jobs.detectors.job import detector
from pipelines.jobs.incidents.job import grouper
from pipelines.jobs.incidents.verdicts import ROWS, SITE
from pipelines.jobs.sources import most_series
from pipelines.query.view.database import Database
from pipelines.query.view.detector_topics import DetectorTopics
from pipelines.query.view.keys import PROGRESS
from pipelines.query.view.progress import Progress as ViewProgress

DAY, HOUR = 86_400_000, 3_600_000
T0 = 20_000 * DAY
WINDOWS, REPLICAS = 12, 10
"""Windows of a pod, one an hour; pods of a workload at a time."""

_LETTERS = np.array(list("bcdfghjklmnpqrstvwxz2456789"))


@dataclass
class Message:
    """A message of `detector.state` as the follower of the view gets it."""

    text: bytes | None
    name: bytes
    of: str

    def topic(self) -> str:
        return self.of

    def value(self) -> bytes | None:
        return self.text

    def key(self) -> bytes:
        return self.name

    def partition(self) -> int:
        return 0


@dataclass
class Site:
    """The state of a site's operators.

    Args:
        folder: The folder of the view's database.
        settings: The settings.
    """

    folder: Path
    settings: Settings = field(
        default_factory=lambda: load(**{"window.size": "1h", "kafka.partitions": 1, "engine.shards": 1})
    )

    def __post_init__(self) -> None:
        self.detector, self.grouper = detector(self.settings), grouper(self.settings)
        self.judge, self.groups = build(self.detector.processor), build(self.grouper.processor)
        self.models, self.incidents, self.keys = DictSegments(), DictSegments(), DictSegments()
        self.database, self.content = Database(self.folder), DetectorTopics(self.settings)
        self.most, self.counts = most_series(self.settings), ViewProgress()
        self.before, self.refused, self.told, self.deleted = NEVER, 0, 0, 0

    def day(self, number: int, windows: pl.DataFrame) -> None:
        """One micro-batch with the windows of a day."""
        now = T0 + (number + 1) * DAY
        ends = windows["window_end"].to_numpy()
        known, good = KnownKeys(self.keys), np.ones(windows.height, np.bool_)
        table = windows.select("entity", "metric").to_arrow()
        self.refused += int(known.beyond(self.most, "telemetry", 0, table, good, ends).sum())
        known.save()
        state = ShardState(self.models)
        results = self.judge.process(windows, state, Progress(self.before, now))
        state.save()
        self._believe(results.aside.get(STATE, pl.DataFrame()))
        verdicts = results.records
        news = verdicts.filter(~pl.col("kind").is_in(["normal", "learning"]) | (pl.col("incident_state") == "closed"))
        self._group(news, now)
        self.before = now

    def _believe(self, beliefs: pl.DataFrame) -> None:
        gathering = self.content.gathering()
        for one in beliefs.iter_rows(named=True):
            key = orjson.dumps({"entity": one["entity"], "metric": one["metric"]})
            said = None
            if one["kind"]:
                names = {"entity": "host.name", "window_end": "@timestamp", "incident_state": "incident.state"}
                said = orjson.dumps({names.get(k, k): v for k, v in one.items() if v is not None})
            self.deleted += said is None
            gathering.take(Message(said, key, self.settings.reads(topics.STATE)), self.counts)
        place = self.settings.reads(topics.STATE), 0
        puts, gone = gathering.entries(self.database, {place: self.counts})
        self.database.write([*puts.items(), (PROGRESS, self.counts.stored())], gone)

    def _group(self, news: pl.DataFrame, now: int) -> None:
        state = ShardState(self.incidents)
        batch = pl.DataFrame(schema=ROWS)
        if news.height:
            missing = [pl.lit(None, kind).alias(name) for name, kind in ROWS.items() if name not in news.columns]
            batch = news.with_columns(*missing).with_columns(pl.lit("default").alias(SITE))
        results = self.groups.process(batch, state, Progress(self.before, now))
        state.save()
        self.told += results.records["id"].n_unique() if results.records.height else 0

    def figures(self) -> dict[str, float]:
        """Bytes of each store, and the number of entries of the view."""
        sizes = {name: sum(map(len, each.values.values())) for name, each in self.stores.items()}
        view = sum(1 for _ in self.database.scan(b"", once=True))
        return {**sizes, "view": view, "memory": psutil.Process().memory_info().rss}

    @property
    def stores(self) -> dict[str, DictSegments]:
        return {"detector": self.models, "incidents": self.incidents, "keys": self.keys}


def pods(a_day: int, day: int, rng: np.random.Generator) -> pl.DataFrame:
    """The windows of the pods of a day: half of them live in the morning, half in the afternoon."""
    number = np.arange(a_day)
    ends = [*("".join(row) for row in rng.choice(_LETTERS, (a_day, 5)).tolist())]
    versions = [*("".join(row) for row in rng.choice(_LETTERS, (a_day, 9)).tolist())]
    workload = number % max(a_day // 2 // REPLICAS, 1)
    names = [f"shop/app{w}-{v}-{e}" for w, v, e in zip(workload.tolist(), versions, ends, strict=True)]
    first = np.where(number < a_day // 2, 0, WINDOWS)
    hour = (first[:, None] + np.arange(WINDOWS)[None]).ravel()
    start = T0 + day * DAY + hour * HOUR
    values = rng.normal(50.0, 3.0, len(hour))
    frame = pl.DataFrame({"entity": np.repeat(names, WINDOWS), "window_start": start, "mean": values})
    return frame.with_columns(
        metric=pl.lit("cpu"), kind=pl.lit("gauge"), count=pl.lit(1, pl.Int64), revision=pl.lit(0, pl.Int64),
        window_end=pl.col("window_start") + HOUR, p95=pl.col("mean"), rate=pl.lit(None, pl.Float64),
        rule=pl.lit(None, pl.String), label=pl.lit(None, pl.String),
    )  # fmt: skip


def days(folder: Path, number: int, a_day: int) -> Iterator[tuple[Site, dict[str, float]]]:
    """The site after each day, and its figures."""
    site, rng = Site(folder), np.random.default_rng(5)
    for day in range(number):
        began = time.perf_counter()
        site.day(day, pods(a_day, day, rng))
        yield site, site.figures() | {"seconds": time.perf_counter() - began}
    site.database.close()


def run(number: int = 365, a_day: int = 2_740) -> dict[str, Any]:
    """Measures, prints a table of months; returns the largest figures of each 30 days."""
    keep_little()
    months: list[dict[str, float]] = []
    with show.bar("pods") as progress, TemporaryDirectory() as folder:
        for day, (_, figures) in enumerate(days(Path(folder) / "view", number, a_day)):
            months += [{}] if day % 30 == 0 else []
            months[-1] = {name: max(figures[name], months[-1].get(name, 0)) for name in figures}
            progress(day + 1, number)
    rows = [
        [f"{n + 1}", *(f"{month[name] / 1e6:.1f}" for name in ("detector", "incidents", "keys", "memory")),
         f"{month['view']:,.0f}", f"{month['seconds']:.2f}"]
        for n, month in enumerate(months)
    ]  # fmt: skip
    columns = ["month", "detector, MB", "incidents, MB", "keys, MB", "process, MB", "view, entries", "s a day"]
    show.table(f"{number * a_day:,} pods in {number} days", columns, rows)
    return {"months": months}
