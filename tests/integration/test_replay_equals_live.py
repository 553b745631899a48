"""An hour of recorded load, replayed: the final verdicts are those of the live run.

They are the same whatever batches and shards, from the log or from the archive, and after a savepoint.

The load is that of a simulated site (metrics and logs, records that are out of order and too late, wrong clocks,
incidents), with a rule, a label and messages that no reader can take. The live run gets it bit by bit.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from datagen.kafka_writer import KafkaWriter
from datagen.simulator import SimulatorConfig, simulate
from datagen.sinks import KafkaSink
from engine.kafka.offsets import KafkaOffsets
from engine.spec.duration import iso
from pipelines.contracts import topics
from tests.integration.conftest import Pipeline
from tests.integration.differences import differences

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2400)]

MINUTE = 60_000
HOUR = 60 * MINUTE


def _hostile(pipeline: Pipeline) -> None:
    """Messages that are no telemetry, over all partitions."""
    rng, producer = random.Random(7), Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""})
    for number in range(40):
        producer.produce(pipeline.settings.topic(topics.RAW_JSON), rng.randbytes(60), partition=number % 4)
    assert producer.flush(30) == 0


def _too_late(pipeline: Pipeline, machines: list[str], at: int) -> None:
    """Samples of windows that the pipeline has long closed, whatever its micro-batches were."""
    producer = Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""})
    for machine in machines:
        sample = {"@timestamp": at, "host.name": machine, "metric": "cpu.util", "value": 0.99}
        producer.produce(pipeline.settings.topic(topics.RAW_JSON), json.dumps(sample).encode(), key=machine)
    assert producer.flush(30) == 0


def _removed(pipeline: Pipeline) -> int:
    """Has Kafka delete four fifths of the samples and log lines, as its retention does; returns their number."""
    bootstrap, kept = pipeline.settings.kafka.bootstrap or "", (topics.TELEMETRY, topics.LOGS)
    offsets = KafkaOffsets(bootstrap, [pipeline.settings.topic(name) for name in kept])
    gone = {place: end * 4 // 5 for place, end in offsets.ends().items()}
    places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in gone.items()]
    client = AdminClient({"bootstrap.servers": bootstrap})
    for future in client.delete_records(places).values():
        future.result(30)
    return sum(gone.values())


@dataclass
class Live:
    """The live run of an hour: the start of its event time, its final verdicts, and what differs in replays of it.

    Args:
        pipeline: Runs it.
        folder: Where its archive and its files are.
        half_way: Is called once, when the first 25 minutes of the load are in Kafka and no later ones are.
    """

    pipeline: Pipeline
    folder: Path
    half_way: Callable[[], None] = lambda: None
    start: int = field(init=False)
    final: dict[Any, dict[str, Any]] = field(init=False)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    _half_way_seen: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        pipeline = self.pipeline
        self.start = start = (int(time.time() * 1000) - HOUR) // MINUTE * MINUTE - 5 * MINUTE
        shape: dict[str, Any] = {"hosts": 2, "vms": 6, "spare": 1, "metrics": 6, "start": start, "incident_rate": 12.0}
        site = SimulatorConfig(seed=5, **shape, late=0.01, late_by=10 * MINUTE, log_rate=1.0, duration=HOUR, speed=100)
        machines = site.topology.names
        pipeline.environment["NEWNORMAL_WINDOW__ALLOWED_LATENESS"] = "2m"
        pipeline.environment |= {
            "NEWNORMAL_ARCHIVE__PATH": str(self.folder / "archive"),
            "NEWNORMAL_ARCHIVE__EVERY": "5s",
        }
        pipeline.start()
        rule = ("rule", "add", "quiet", "--entity", machines[2], "--skip-result", "--at", iso(start + 20 * MINUTE))
        pipeline.command(*rule, "--from", iso(start + 20 * MINUTE), "--until", iso(start + 30 * MINUTE))
        with KafkaWriter(pipeline.settings.kafka.bootstrap or "") as writer:
            sink = KafkaSink(writer, pipeline.settings.namespace)
            simulate(site, sink, progress=lambda _, reached: self._reached(sink, reached))
        _hostile(pipeline)
        last = start + HOUR - 2 * MINUTE
        pipeline.wait("verdicts on the last minutes", lambda: any(v["@timestamp"] >= last for v in pipeline.verdicts()))
        _too_late(pipeline, machines, start + 5 * MINUTE)
        pipeline.wait("records that are too late", lambda: bool(pipeline.read(topics.FEATURES_LATE)))
        pipeline.wait("all verdicts in the index", pipeline.all_indexed)
        pipeline.stop()
        pipeline.command("run", "--until", "now")
        self.final = pipeline.final()
        assert {verdict["kind"] for verdict in self.final.values()} > {"normal", "anomaly"}

    def _reached(self, sink: KafkaSink, time: int) -> None:
        """Calls `half_way` when the load has come so far, and the pipeline too."""
        if time < self.start + 25 * MINUTE or self._half_way_seen:
            return
        self._half_way_seen = True
        sink.flush()
        near = self.start + 20 * MINUTE
        self.pipeline.wait("half of the load", lambda: any(v["@timestamp"] >= near for v in self.pipeline.verdicts()))
        self.half_way()

    def check(self, name: str, shards: int = 2) -> None:
        """Compares the final verdicts of a version with those of the live run."""
        known, again = self.final, self.pipeline.final(f"{topics.NOVELTIES}-{name}")
        if shards != 2:  # what machines of one shard share in the model of logs: docs/logs.md
            known, again = ({key: each[key] for key in each if key[1] != "logs"} for each in (known, again))
        if found := differences(known, again):
            self.wrong[name] = [f"{len(found)} differences of {len(self.final)} verdicts", *found[:5]]

    def config(self, **options: int) -> str:
        """A file with settings of the engine."""
        path = self.folder / "engine.toml"
        path.write_text("[engine]\n" + "".join(f"{key} = {value}\n" for key, value in options.items()))
        return str(path)


BATCHES: dict[str, dict[str, int]] = {"four": {"shards": 4, "max_records": 30}}
MORE_BATCHES: dict[str, dict[str, int]] = {
    "whole": {},
    "smallest": {"max_records": 4},
    "middle": {"max_records": 15},
    "one": {"shards": 1, "max_records": 30},
    **BATCHES,
}


@pytest.mark.parametrize(
    "batches", [BATCHES, pytest.param(MORE_BATCHES, marks=pytest.mark.long)], ids=["other shards", "five"]
)
def test_a_replay_gives_the_final_verdicts_of_the_live_run_whatever_batches_and_shards(
    pipeline: Pipeline, tmp_path: Path, batches: dict[str, dict[str, int]]
) -> None:
    live = Live(pipeline, tmp_path)
    for name, options in batches.items():
        pipeline.command("replay", "--as", name, "--until", "now", "--config", live.config(**options), seconds=600)
        live.check(name, options.get("shards", 2))
    assert not live.wrong, json.dumps(live.wrong, indent=1)


@pytest.mark.long
def test_a_replay_gives_the_final_verdicts_of_the_live_run_from_the_archive_and_after_a_savepoint(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    def half_way() -> None:
        """Keeps the state of the running jobs, and makes a version that stops here, with open windows."""
        pipeline.command("savepoint", "create", "live")
        pipeline.command("replay", "--as", "half", "--until", "now")
        pipeline.command("savepoint", "create", "half", "--as", "half")

    live = Live(pipeline, tmp_path, half_way)
    before = len(pipeline.final(f"{topics.NOVELTIES}-half"))
    assert 0 < before < len(live.final) * 0.6
    # its state is divided anew, and Kafka no longer has what came next
    restored = pipeline.command("savepoint", "restore", "half", "--as", "half", "--shards", "4", "--yes")
    assert "will be computed and written again" not in restored
    assert _removed(pipeline) > 20
    pipeline.environment |= {"NEWNORMAL_ENGINE__SHARDS": "4"}
    assert "OFFSETS_MISSING" in pipeline.refused("run", "--as", "half", "--until", "now")
    pipeline.environment |= {"NEWNORMAL_ENGINE__ON_MISSING_OFFSETS": "archive"}
    pipeline.command("run", "--as", "half", "--until", "now")
    live.check("half", 4)
    pipeline.environment |= {"NEWNORMAL_ENGINE__SHARDS": "2"}
    pipeline.command("replay", "--as", "archived", "--from", iso(live.start - HOUR), "--until", "now")
    live.check("archived")
    # a version that begins with the state of the running detectors computes what these have computed from there on
    pipeline.command("savepoint", "fork", "live", "--as", "forked")
    pipeline.command("run", "--as", "forked", "--until", "now")
    forked = pipeline.final(f"{topics.NOVELTIES}-forked")
    assert {key for key in live.final if key[2] > live.start + 35 * MINUTE} <= forked.keys()
    assert len(forked) < len(live.final) * 0.8
    assert not differences({key: live.final[key] for key in forked}, forked)
    assert not live.wrong, json.dumps(live.wrong, indent=1)
