"""Log lines of a simulated site, and jobs driven with them without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from datagen.simulator import SimulatorConfig, logs
from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.runtime.intake import KAFKA
from engine.runtime.shard import to_table
from engine.spec.job import Job
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import Log
from pipelines.contracts.settings import load

SETTINGS = load()
START = 1_800_000_000_000
WINDOW = 10_000


def lines(minutes: int, *, vms: int = 4, seed: int = 0, rate: float = 0.5) -> pl.DataFrame:
    """Log lines of a site without incidents: columns of `Log`."""
    site = SimulatorConfig(
        hosts=2, vms=vms, start=START, duration=minutes * 60_000, incident_rate=0.0, log_rate=rate, seed=seed
    )
    return pl.concat(list(logs(site))).select(list(Log.model_fields)).filter(pl.col("time") >= START)


def said(entity: str, time: int, message: str, program: str = "app", severity: int = 6) -> dict[str, Any]:
    """One line as a row of `lines`."""
    return {"time": time, "entity": entity, "program": program, "severity": severity, "message": message}


def driven(job: Job, frame: pl.DataFrame, cuts: Sequence[int], shards: int = 1, seed: int = 0) -> Driven:
    """A job that reads `logs`, with lines in micro-batches cut at some instants; in each they come in any order."""
    run = Driven(job, shards)
    edges = [-(2**60), *sorted(cuts), 2**60]
    for low, high in pairwise(edges):
        part = frame.filter((pl.col("time") >= low) & (pl.col("time") < high))
        run.kafka(messages(part.sample(fraction=1.0, shuffle=True, seed=seed), high, run.offset))
        run.offset += 10
    return run


def messages(part: pl.DataFrame, watermark: int, offset: int) -> list[pa.Table]:
    """A micro-batch of columnar messages, one a partition of the topic `logs`."""
    table, count = to_table(part, Log), SETTINGS.kafka.partitions
    where = slots(table.column("entity"), count) if part.height else np.zeros(0, np.int64)
    rows = [
        (columnar.encode(table.filter(pa.array(where == p)), watermark), topics.LOGS, p, offset, 2**60)
        for p in range(count)
    ]
    return [pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True))], KAFKA) for row in rows]
