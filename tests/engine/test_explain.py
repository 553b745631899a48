"""A plan says what the job declares; it shows measurements only where there are any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engine.aggregates import Count
from engine.explain.plan import UNMEASURED, explain
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival
from engine.runtime.shard import ShardOperator
from engine.spark.query import BatchReport
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source
from engine.stream import Stream
from engine.watermarks import LearnedLateness
from engine.windows import Tumbling
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings
from pipelines.jobs.chain import JOBS
from pipelines.runtime import job_metrics

T0 = 1_700_000_000_000


class Counted(Record):
    """Records counted in windows."""

    identity = ("entity", "metric")

    entity: Keyword
    metric: Keyword
    n: int


def counting() -> Job:
    source = Source({"t": ColumnarDecoder(Telemetry)}, Telemetry, watermark=LearnedLateness(0.99, most="30s"))
    stream = Stream.read(source).key_by("entity", "metric").window(Tumbling("10s"), "1m").aggregate(n=Count())
    return stream.write("counting", Output("out", Counted), Output("dead", DeadLetter, "json"))


def test_a_plan_names_topics_watermark_key_windows_aggregates_state_and_outputs() -> None:
    text = str(explain(counting()))
    for said in (
        "input t", "LearnedLateness (percentile 0.99", "most 30s", "entity, metric", "n: Count()",
        "for 70s after its start", "results: out (Counted, columnar", "counted, not written", UNMEASURED,
    ):  # fmt: skip
        assert said in text, said


@pytest.mark.parametrize("name", JOBS)
def test_every_job_of_the_pipeline_is_explained(name: str, settings: Settings) -> None:
    plan = explain(JOBS[name](settings), shards=settings.engine.shards)
    console = Console(record=True, width=150)
    console.print(plan)
    assert console.export_text().startswith(name)
    for line in (settings.topic("deadletter"), "watermark", UNMEASURED):
        assert line in str(plan)


def reports(driven: Callable[..., Any], batches: int = 3) -> list[BatchReport]:
    """What two shards report, one of which has a key with most of the records."""
    run, collected = driven(counting(), 2), []
    for batch in range(batches):
        hot = ["host-0"] * 60 + [f"host-{i}" for i in range(40)]
        row = {"metric": "m", "value": 1.0, "kind": "gauge"}
        run.run([[Arrival("t", 0, T0, {"time": T0 + batch * 5000 + i, "entity": e} | row) for i, e in enumerate(hot)]])
        collected.append(BatchReport("counting", batch, tuple(run.written[-1].stats), 0.25))
    return collected


def test_shards_report_keys_windows_and_the_keys_that_dominate(driven: Callable[..., Any], tmp_path: Path) -> None:
    metrics = job_metrics.JobMetrics(tmp_path)
    for report in reports(driven):
        metrics.batch(report)
    metrics.flush()
    figures = job_metrics.load(tmp_path, "counting")
    assert figures is not None
    assert sum(s["records"] for s in figures["shards"]) == figures["records"] == 300
    assert sum(s["keys"] for s in figures["shards"]) == 40
    assert all(s["open"] == 2 and s["late"] == s["dead"] == 0 for s in figures["shards"])
    assert figures["hot"][0]["key"] == "host-0, m"
    assert figures["hot"][0]["share"] == pytest.approx(0.61)
    assert max(s["share"] for s in figures["shards"]) > 0.75
    text = str(explain(counting(), figures))
    assert UNMEASURED not in text
    assert "250 ms for 100 records, median of the last 3" in text
    assert "hot key host-0, m: 61% of the records" in text


def test_a_job_that_never_ran_has_no_figures(tmp_path: Path) -> None:
    assert job_metrics.load(tmp_path, "counting") is None


def test_a_shard_without_records_has_no_hot_key() -> None:
    operator = ShardOperator(counting(), 0, 1)
    assert operator._hot(operator._batch([])) == []
