"""A month of a real Prometheus, imported beside a running pipeline, interrupted twice, replayed, live, promoted."""

from __future__ import annotations

import signal
import time
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Producer

from engine.formats.columnar import decode
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.settings import load
from pipelines.formats.remote_write_protocol import Label, WriteRequest
from pipelines.jobs.archive.layout import TopicFolder
from tests.integration.conftest import Pipeline
from tests.pipelines.history.samples import MINUTE, history, live
from tests.prometheus_server import prometheus

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

EVERY, DAYS = 5 * MINUTE, 30
HOUR = 60 * MINUTE
BEGIN = (int(time.time() * 1000) // EVERY - (DAYS * 24 + 4) * 12) * EVERY
LIVE = BEGIN + DAYS * 24 * HOUR
"""When the pipeline gets its first samples; the history that Prometheus has goes on."""

ALL = history(BEGIN, DAYS * 24 + 3, EVERY)


def between(begin: int, end: int) -> dict[tuple[tuple[str, str], ...], list[tuple[int, float]]]:
    return {labels: [s for s in samples if begin <= s[0] < end] for labels, samples in ALL.items()}


def send(pipeline: Pipeline, begin: int, end: int) -> None:
    """Live samples as the gateway writes them: a message for each scrape, which arrives at once."""
    producer = Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""})
    scrapes = defaultdict(list)
    for labels, samples in between(begin, end).items():
        for at, value in samples:
            scrapes[at].append((labels, value))
    for at, series in sorted(scrapes.items()):
        request = WriteRequest()
        for labels, value in series:
            added = request.timeseries.add()
            added.labels.extend(Label(name=n, value=v).SerializeToString() for n, v in labels)
            added.samples.add(value=value, timestamp=at)
        producer.produce(
            pipeline.settings.topic(topics.RAW_AGENTS), request.SerializeToString(), partition=0, timestamp=at
        )
    assert producer.flush(30) == 0


def windows(pipeline: Pipeline, topic: str) -> Counter[tuple[str, str, int, float]]:
    """Machine, metric, begin and last value of the windows in a topic of features."""
    found: dict[tuple[str, str, int], tuple[int, float]] = {}
    try:
        values = [message.value() or b"" for message in pipeline.read(topic)]
    except NewnormalError:
        return Counter()
    for value in values:
        for row in decode(value, Features.arrow_schema())[0].to_pylist():
            found[row["entity"], row["metric"], row["window_start"]] = (row["count"], row["last"])
    return Counter({(*key, last): count for key, (count, last) in found.items()})


def expected(pipeline: Pipeline, begin: int, end: int) -> Counter[tuple[str, str, int, float]]:
    """The same from the samples: each is alone in its window."""
    rows = live(between(begin, end), pipeline.settings)
    return Counter((machine, metric, at // EVERY * EVERY, value) for at, machine, metric, value, _ in rows)


def test_a_month_of_prometheus_is_imported_over_kill_9_and_ctrl_c_replayed_and_promoted_without_a_gap(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    pipeline.environment |= {
        "NEWNORMAL_ARCHIVE__PATH": str(tmp_path / "archive"),
        "NEWNORMAL_ARCHIVE__EVERY": "1s",
        "NEWNORMAL_WINDOW__SIZE": "5m",
        "NEWNORMAL_WATERMARK__IDLE_AFTER": "2s",
        "NEWNORMAL_DETECTOR__EMIT": "context",
    }
    folder = TopicFolder(tmp_path / "archive", pipeline.settings.topic(topics.TELEMETRY))
    pipeline.start()
    send(pipeline, LIVE, LIVE + HOUR)
    pipeline.wait("the live samples", lambda: any(folder.records.glob("day=*/*.parquet")))
    running = pipeline.process

    with prometheus(tmp_path / "prometheus", ALL) as url:
        command = ("import", "prometheus", url, "--match", '{job="node"}', "--from", "-31d")
        for least, ends in ((2, signal.SIGKILL), (6, signal.SIGINT)):
            importing = pipeline.spawn(*command)
            deadline = time.monotonic() + 120
            while len(list(folder.messages.glob("import-*"))) < least and time.monotonic() < deadline:
                time.sleep(0.005)
            importing.send_signal(ends)
            assert importing.wait(60) != 0, pipeline.log.read_text()[-3000:]
        there = len(list(folder.messages.glob("import-*")))
        told = pipeline.said(*command)
    assert len(list(folder.messages.glob("import-*"))) > there >= 2, told
    assert "going on before" in told
    assert "came live lately, by the same names" in told
    assert running is not None
    assert running.poll() is None
    columns = ["time", "entity", "metric", "value", "kind"]
    frame = pl.read_parquet(f"{folder.records}/**/part-import-*.parquet", hive_partitioning=False).select(columns)
    assert sorted(frame.rows()) == live(between(BEGIN, LIVE), load(**{"archive.path": None}))

    pipeline.process = pipeline.spawn("replay", "--as", "v2", "--from", "-31d")
    first = expected(pipeline, BEGIN, LIVE + HOUR - EVERY)
    pipeline.wait("the replay", lambda: not first - windows(pipeline, "features-v2"), 600)
    send(pipeline, LIVE + HOUR, LIVE + 2 * HOUR)
    whole = expected(pipeline, BEGIN, LIVE + 2 * HOUR - EVERY)
    pipeline.wait("the samples that come live", lambda: not whole - windows(pipeline, "features-v2"), 300)
    pipeline.wait("the watermark", lambda: "the version is live" in pipeline.log.read_text())
    pipeline.command("promote", "v2", "--yes")
    assert "v2" in next(line for line in pipeline.command("versions").splitlines() if "v2" in line)
    pipeline.stop()
    pipeline.process = running
    pipeline.stop()
    found = windows(pipeline, "features-v2")
    assert set(found.values()) == {1}
    assert not found - expected(pipeline, BEGIN, LIVE + 2 * HOUR)
    assert min(begin for _, _, begin, _ in windows(pipeline, "features")) >= LIVE, "v1 has read history"
