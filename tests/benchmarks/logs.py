"""Log lines a second: JSON to columns, masking, windows and template mining, and the tree on lines that are all new.

The operator runs as in a shard of the job, without Spark and Kafka around it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from datagen.jsonlines import to_json
from datagen.simulator import SimulatorConfig, logs
from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.json_decoder import JsonDecoder
from engine.runtime.intake import KAFKA, read
from engine.runtime.shard import ShardOperator, to_table
from engine.spec.decoder import Messages
from engine.state.segments import DictSegments
from pipelines.contracts import topics
from pipelines.contracts.records import Log, LogFeatures
from pipelines.contracts.settings import load
from pipelines.jobs.templates.job import masked, templates
from pipelines.jobs.templates.miner import Miner
from tests.benchmarks import templates as of_systems

START, STEP = 1_800_000_000_000, 10_000


def run(lines: int, machines: int, data: Path | None = None) -> dict[str, Any]:
    """Measures lines a second on one core and, with a folder of recorded logs, how good their templates are."""
    if data:
        of_systems.recorded(data)  # so that a wrong folder is not told after minutes
    frame = _frame(lines, machines)
    text = pa.array(to_json(frame, Log).to_list(), pa.binary())
    offsets = np.arange(len(text))
    raw = Messages(topics.LOGS_JSON, 0, text, offsets, np.full(len(text), 2**60))
    decoding = _seconds(lambda: JsonDecoder(Log).decode(raw))
    masking = _seconds(lambda: frame.select(masked("message")))
    batches = _batches(frame)
    job, state, messages = templates(load()), DictSegments(), []

    def operate(some: list[list[pa.Table]]) -> None:
        for batch in some:
            messages.extend(
                message for some in ShardOperator(job, 0, 1).run(read(job, batch), state) for message in some
            )

    operate(batches[:1])
    rest = sum(_rows(batch) for batch in batches[1:])
    mining = _seconds(lambda: operate(batches[1:]))
    told = [columnar.decode(m.value, LogFeatures.arrow_schema())[0] for m in messages if m.topic == job.output.topic]
    features = pa.concat_tables(told)
    return {
        "lines": frame.height,
        "machines": machines,
        "windows": len(batches),
        "templates": len(set(features.column("template").to_pylist()) - {None}),
        "features": features.num_rows,
        "json_to_columns_per_second": round(frame.height / decoding),
        "masking_per_second": round(frame.height / masking),
        "templates_job_per_second": round(rest / mining),
        "new_lines_per_second": round(5_000 / _new(5_000)),
    } | ({"recorded": of_systems.run(data)} if data else {})


def _frame(lines: int, machines: int) -> pl.DataFrame:
    site = SimulatorConfig(
        hosts=machines // 5,
        vms=machines - machines // 5,
        start=START,
        duration=3_600_000,
        incident_rate=0.0,
        log_rate=4,
    )
    parts, height = [], 0
    for part in logs(site, 20):
        parts.append(part.select(list(Log.model_fields)))
        height += part.height
        if height >= lines:
            break
    return pl.concat(parts).head(lines)


def _batches(frame: pl.DataFrame) -> list[list[pa.Table]]:
    """A micro-batch a window, a message a partition."""
    batches = []
    for (end,), part in frame.group_by((pl.col("time") // STEP + 1) * STEP, maintain_order=True):
        table = to_table(part, Log)
        where = slots(table.column("entity"), 4)
        values = [columnar.encode(table.filter(pa.array(where == p)), int(end)) for p in range(4)]
        rows = [dict(zip(KAFKA.names, (v, topics.LOGS, p, int(end), 2**60), strict=True)) for p, v in enumerate(values)]
        batches.append([pa.Table.from_pylist([row], KAFKA) for row in rows])
    return batches


def _rows(batch: list[pa.Table]) -> int:
    return sum(columnar.decode(t["value"][0].as_py(), Log.arrow_schema())[0].num_rows for t in batch)


def _new(count: int) -> float:
    """Seconds for lines of which no two are alike, of fifty kinds."""
    words = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(676)]
    rng = np.random.default_rng(0)
    kinds = [[words[j] for j in rng.integers(0, 676, 8)] for _ in range(50)]
    texts = []
    for number in range(count):
        kind = list(kinds[number % 50])
        kind[4], kind[6] = words[number % 676], words[number // 676]
        texts.append(" ".join(kind))
    counts = pl.DataFrame({"program": "p", "masked": texts, "first": np.arange(count)})
    return _seconds(lambda: Miner().window(counts, 1))


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
