"""Our side of the comparison, as a user writes it: `newnormal run own_jobs.py:from_json`.

The environment names the topics, since each run writes one of its own.
"""

from __future__ import annotations

import os
from typing import ClassVar

from engine import (
    BoundedOutOfOrderness,
    Count,
    Instant,
    Job,
    Max,
    Mean,
    Min,
    Output,
    Record,
    Source,
    Std,
    Stream,
    Sum,
    Tumbling,
)
from engine.formats.columnar import ColumnarDecoder
from pipelines.contracts.records import Telemetry

SAMPLES, RESULTS = os.environ.get("PEER_SAMPLES", "samples"), os.environ.get("PEER_RESULTS", "results")
PARTITIONS = 4


class Statistics(Record):
    """Statistics of one series in one window."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "window_start")

    entity: str
    metric: str
    window_start: Instant
    window_end: Instant
    count: int
    sum: float
    mean: float
    std: float
    min: float
    max: float


def _statistics(name: str, samples: Stream) -> Job:
    windows = samples.key_by("entity", "metric").window(Tumbling("10s"))
    value = {"sum": Sum, "mean": Mean, "std": Std, "min": Min, "max": Max}
    results = windows.aggregate(count=Count(), **{column: kind("value") for column, kind in value.items()})
    return results.write(name, Output(RESULTS, Statistics, "json", PARTITIONS))


_log = {SAMPLES: ColumnarDecoder(Telemetry)}
_late = BoundedOutOfOrderness("5s", idle_after="1h")
from_json = _statistics("from_json", Stream.read_json(SAMPLES, Telemetry, out_of_orderness="5s", idle_after="1h"))
from_log = _statistics("from_log", Stream.read(Source(_log, Telemetry, "time", _late, partitions=PARTITIONS)))
