"""What comes too late for the log detector is not dropped: windows go to a topic, a label counts from then on."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.operators.chain import PassThrough
from engine.runtime.intake import KAFKA
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.testing import Driven
from engine.vectorized.build import build
from pipelines.contracts import topics
from pipelines.contracts.records import Label, LogFeatures
from pipelines.contracts.settings import DetectorSettings, load
from pipelines.jobs.chain import JOBS
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.job import log_detector
from pipelines.jobs.detectors.logs.judging import Logs

T0, STEP, PARTITIONS = 1_800_000_000_000, 10_000, 4
HOSTS = [f"h{number}" for number in range(8)]


def row(host: str, window: int, count: int = 5) -> dict[str, Any]:
    start = T0 + window * STEP
    named = {"entity": host, "metric": "log.template.get", "kind": "count", "severity": 6, "revision": 0}
    return named | {"window_start": start, "window_end": start + STEP, "count": count}


def run(driven: Driven, rows: list[dict[str, Any]], watermark: int, offset: int) -> None:
    """A micro-batch: one message a partition of `features.logs`, and heartbeats of rules and labels."""
    by_partition: dict[int, list[dict[str, Any]]] = {number: [] for number in range(PARTITIONS)}
    for each in rows:
        by_partition[crc32(each["entity"]) % PARTITIONS].append(each)
    schema, now = LogFeatures.arrow_schema(), T0 + watermark * STEP
    entries = [
        (columnar.encode(pa.Table.from_pylist(own, schema=schema), now), topics.LOG_FEATURES, number, offset, now)
        for number, own in by_partition.items()
    ]
    entries += [(HEARTBEAT, name, n, offset, now) for name in (topics.RULES, topics.LABELS) for n in range(PARTITIONS)]
    driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, entry, strict=True)) for entry in entries], KAFKA)])


def test_a_window_of_log_lines_that_comes_after_it_was_judged_goes_to_the_late_topic() -> None:
    job = log_detector(load(**{"detector.emit": "all"}))
    assert job.late is not None and job.late.topic == "features.logs.late"
    driven = Driven(job, 2)
    run(driven, [row(host, number) for host in HOSTS for number in range(20)], 20, 0)
    judged = {(verdict["host.name"], verdict["window_start"]) for verdict in driven.rows}
    assert judged == {(host, T0 + number * STEP) for host in HOSTS for number in range(20)}
    run(driven, [row("h3", 19, 500), row("h3", 20), row("h5", 4)], 21, 1)
    assert sorted((late["entity"], late["window_start"], late["count"]) for late in driven.late) == [
        ("h3", T0 + 19 * STEP, 500),
        ("h5", T0 + 4 * STEP, 5),
    ]
    places = [(verdict["host.name"], verdict["window_start"]) for verdict in driven.rows]
    assert sorted(places) == sorted({*judged, ("h3", T0 + 20 * STEP)}), "no window is judged twice"


@pytest.mark.parametrize("comes", [200, 205], ids=["in time", "after the windows that follow it were judged"])
def test_a_label_for_the_log_of_a_machine_counts_whenever_it_comes(comes: int) -> None:
    """What a false alarm teaches is seen in the score of the next burst."""
    rng = np.random.default_rng(1)
    counts = {number: int(rng.poisson(20)) for number in range(240)} | {199: 90, 230: 90}
    label = Label(entity="h0", metric="logs", start=T0, time=T0 + 200 * STEP, verdict="false_alarm")
    scores = {}
    for labelled in (False, True):
        segments, processor = DictSegments(), build(Detect(DetectorSettings(), Logs(STEP)))
        verdicts, before = [], T0
        for first, last in ((0, 200), (200, 205), (205, 240)):
            frame = pl.DataFrame([row("h0", number, counts[number]) for number in range(first, last)])
            frame = frame.with_columns(template=pl.lit("app get"), example=pl.lit("get 1"))
            none = pl.lit(None, pl.String)
            frame = frame.with_columns(rule=none, label=none)
            if labelled and first == comes:
                said = {"window_end": [label.time], "label": [label.to_json().decode()]}
                frame = pl.concat([frame, pl.DataFrame(said)], how="diagonal")
            state = ShardState(segments)
            verdicts.append(processor.process(frame, state, Progress(before, T0 + last * STEP)).records)
            state.save()
            before = T0 + last * STEP
        burst = pl.concat(verdicts, how="diagonal").filter(window_end=T0 + 231 * STEP)
        scores[labelled] = burst["record_score"][-1]
    assert 0 < scores[True] < scores[False] - 1


def test_every_job_that_may_get_something_too_late_has_a_topic_for_it() -> None:
    settings = load()
    jobs = [build_job(settings) for build_job in JOBS.values()]
    assert {job.name for job in jobs if not isinstance(job.processor, PassThrough)} == {
        "extractor",
        "templates",
        "detector",
        "log_detector",
        "incidents",
        "places",
        "calls",
    }
    never = {"incidents", "places", "calls"}  # news counts whenever it comes; places and calls are said again and again
    assert {job.name for job in jobs if not isinstance(job.processor, PassThrough) and job.late is None} == never
