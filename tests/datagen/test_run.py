"""Running a simulation: history at once, then at the pace of the clock; stopped without loss."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition

from datagen.kafka_writer import KafkaWriter
from datagen.simulator import SimulatorConfig, demo, frames, simulate
from datagen.sinks import FileSink, KafkaSink
from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from tests.datagen.in_memory import CollectSink, VirtualClock

NOW = 1_800_000_000_000
SMALL = SimulatorConfig(hosts=1, vms=2, backfill=300_000, duration=60_000)


class _Timed(CollectSink):
    """Notes when each frame came, and may stop the run after a few."""

    def __init__(self, clock: VirtualClock, stop: threading.Event | None = None, frames: int = 0) -> None:
        super().__init__()
        self.clock, self.stop, self.most, self.flushed = clock, stop, frames, 0
        self.came: list[int] = []

    def telemetry(self, frame: pl.DataFrame) -> None:
        super().telemetry(frame)
        self.came.append(self.clock.now())
        if self.stop and len(self.came) >= self.most:
            self.stop.set()

    def flush(self) -> None:
        self.flushed += 1


@pytest.mark.parametrize("speed", [1.0, 5.0])
def test_the_live_part_is_sent_when_it_arrives_and_the_history_before(speed: float) -> None:
    clock = VirtualClock(NOW)
    sink = _Timed(clock)
    simulate(replace(SMALL, speed=speed), sink, clock=clock)
    assert sink.came[0] == NOW
    assert 60_000 / speed - 1_000 <= clock.now() - NOW <= 60_000 / speed + 1_000
    for came, frame in zip(sink.came[:-1], sink.frames[:-1], strict=True):
        assert (frame["time"] <= came + 5_000).all()


def test_what_is_sent_does_not_depend_on_the_pace() -> None:
    config = replace(SMALL, start=NOW - 300_000)
    sink = CollectSink()
    simulate(config, sink, clock=VirtualClock(NOW))
    assert pl.concat(sink.frames).equals(pl.concat(frames(config)))


def test_a_stopped_run_flushes_and_reports_what_it_sent() -> None:
    clock, stop = VirtualClock(NOW), threading.Event()
    sink = _Timed(clock, stop, frames=3)
    summary = simulate(replace(SMALL, duration=None), sink, stop, clock)
    assert sink.flushed == 1 and len(sink.frames) == 3
    assert summary.records == sum(frame.height for frame in sink.frames)


def test_files_hold_the_same_bytes_in_each_run(tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        with FileSink(tmp_path / name) as sink:
            simulate(replace(demo(NOW), duration=0), sink, clock=VirtualClock(NOW))
        written.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert written[0] == written[1]
    assert set(written[0]) == {"telemetry.json", "logs.json", "groundtruth.jsonl", "topology.jsonl"}
    assert json.loads(written[0]["groundtruth.jsonl"].splitlines()[0])["class"] == "anomaly"


@pytest.mark.servers
def test_kafka_gets_every_record_and_one_machine_stays_in_one_partition(endpoints: Endpoints) -> None:
    space = "datagen-test."
    names = {f"{space}{name}": {} for name in ("telemetry.json", "logs.json", "groundtruth", "topology")}
    assert ensure_topics(endpoints.bootstrap, names) == sorted(names)
    assert ensure_topics(endpoints.bootstrap, names) == []
    config = replace(SMALL, start=NOW - 300_000, speed=0.0)
    with KafkaWriter(endpoints.bootstrap) as writer:
        summary = simulate(config, KafkaSink(writer, space), clock=VirtualClock(NOW))
    assert writer.delivered == summary.records + summary.logs + len(summary.injected) + len(summary.placed)
    assert len(summary.placed) == 2
    consumer = Consumer({"bootstrap.servers": endpoints.bootstrap, "group.id": "datagen-test"})
    consumer.assign([TopicPartition(f"{space}telemetry.json", part, 0) for part in range(4)])
    got = []
    while len(got) < summary.records:
        messages = consumer.consume(10_000, timeout=20)
        assert messages, f"{len(got)} of {summary.records}"
        got += messages
    consumer.close()
    places = {(message.key(), message.partition()) for message in got}
    assert len(places) == 3
    assert all(Telemetry.from_json(m.value()).entity.encode() == m.key() for m in got[::20])


@pytest.mark.servers
def test_a_missing_topic_is_an_error_that_says_so(endpoints: Endpoints) -> None:
    soon = {"topic.metadata.propagation.max.ms": 2_000}
    with pytest.raises(NewnormalError, match="DELIVERY_FAILED"), KafkaWriter(endpoints.bootstrap, extra=soon) as writer:
        writer.write("datagen-test.no-such-topic", ["{}"], ["a"])


def test_a_broker_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(NewnormalError, match="KAFKA_UNREACHABLE"):
        ensure_topics("127.0.0.1:1", {"a": {}}, timeout=1.0)


@pytest.mark.parametrize("stopped_after", [1, 7, 40])
def test_a_run_goes_on_from_where_an_earlier_one_was_stopped_as_if_the_two_were_one(stopped_after: int) -> None:
    """Each record is sent once, counters go on counting, and nothing that happened is told twice."""
    later = NOW + 400_000
    whole, first, second = CollectSink(), _Timed(VirtualClock(NOW), threading.Event(), stopped_after), CollectSink()
    reached: list[int] = []
    simulate(demo(NOW), first, first.stop, first.clock, lambda _, at: reached.append(at))
    simulate(
        replace(demo(later, earlier=(NOW,)), duration=60_000), second, clock=VirtualClock(later), since=reached[-1]
    )
    simulate(replace(demo(later, earlier=(NOW,)), duration=60_000), whole, clock=VirtualClock(later))
    for kind in ("frames", "lines"):
        parts = [pl.concat(getattr(sink, kind)) for sink in (first, second)]
        assert pl.concat(parts).equals(pl.concat(getattr(whole, kind)))
    assert [*first.rows, *second.rows] == whole.rows
    assert [*first.placements, *second.placements] == whole.placements
