"""`newnormal run --small` with all processes of a pipeline holds less than 2 GB, and finds the same."""

from __future__ import annotations

import json
import time
from pathlib import Path

import polars as pl
import pytest

from datagen.kafka_writer import KafkaWriter
from datagen.simulator import SimulatorConfig, simulate
from datagen.sinks import KafkaSink
from deploy.embedded.services import running
from pipelines.contracts import topics
from pipelines.contracts.records.novelty import PEERS
from pipelines.contracts.settings import Settings, load
from tests.benchmarks.memory import METRICS, Watched, ours
from tests.integration.conftest import Pipeline
from tests.integration.differences import differences

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

WINDOW, MINUTE, MOST = 10_000, 60_000, 2_000_000_000


class Counted(KafkaSink):
    """Notes the windows of each series that have a sample."""

    windows: set[tuple[str, str, int]]

    def telemetry(self, frame: pl.DataFrame) -> None:
        end = pl.col("time") // WINDOW * WINDOW + WINDOW
        self.windows |= set(frame.select("entity", "metric", end).iter_rows())
        super().telemetry(frame)


def sent(site: SimulatorConfig, settings: Settings) -> set[tuple[str, str, int]]:
    """Sends what happens at a site; returns the windows that have samples: machine, metric, end."""
    with KafkaWriter(settings.kafka.bootstrap or "") as writer:
        sink = Counted(writer, settings.namespace)
        sink.windows = set()
        simulate(site, sink)
        # a minute later, in each partition: all windows close
        after = [
            {"@timestamp": max(end for *_, end in sink.windows) + MINUTE, "host.name": f"end-{n}"} for n in range(64)
        ]
        lines = [json.dumps({**each, "metric": "m", "value": 0.0}) for each in after]
        writer.write(settings.topic(topics.RAW_JSON), lines, [str(each["host.name"]) for each in after])
    return sink.windows


@pytest.mark.parametrize(
    ("series", "minutes"), [(200, 10), pytest.param(1_000, 15, marks=pytest.mark.long)], ids=["200", "1000"]
)
def test_a_small_site_takes_less_than_two_gigabytes_and_finds_the_same(
    pipeline: Pipeline, tmp_path: Path, series: int, minutes: int
) -> None:
    start = (int(time.time() * 1000) - (minutes + 5) * MINUTE) // MINUTE * MINUTE
    hosts = series // METRICS // 5
    site = SimulatorConfig(
        seed=3, start=start, hosts=hosts, vms=series // METRICS - hosts, spare=1, metrics=METRICS, late=0.0,
        incident_rate=20.0, duration=minutes * MINUTE, speed=50,
    )  # fmt: skip
    small = Watched(tmp_path / "small", {"NEWNORMAL_DETECTOR__EMIT": "all"}, ("--small",))
    with small.running():
        settings = running(load(state_dir=small.state))
        assert (settings.kafka.partitions, settings.engine.shards) == (1, 1)
        found = Pipeline(settings, small.state / "run.log", {})
        windows = sent(site, settings)
        small.watch(lambda: windows <= found.final().keys())
        known = found.final()
    assert 0 < ours(small.together) < MOST, {part: held.pss >> 20 for part, held in small.together.items()}
    pipeline.start()
    assert sent(site, pipeline.settings) == windows
    pipeline.wait("verdicts on all windows", lambda: windows <= pipeline.final().keys(), seconds=600)
    again = pipeline.final()
    kinds = {verdict["kind"] for verdict in known.values()}
    assert "normal" in kinds and kinds - {"normal", "learning"}, "there is news; which depends on the hour of the start"
    last = max(end for *_, end in windows)
    # which machines share a shard, and so a model of logs, or a partition, and so are peers, differs: logs.md, peers.md
    known, again = (
        {at: verdict for at, verdict in verdicts.items() if not _of_sharing(at[1]) and at[2] <= last}
        for verdicts in (known, again)
    )
    assert not differences(known, again)


def _of_sharing(metric: str) -> bool:
    return metric == "logs" or metric.startswith(PEERS)
