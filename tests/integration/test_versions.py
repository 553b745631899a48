"""Two versions of the chain live at once: a replay that is killed and goes on, a promotion under load, a retirement."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest
from elasticsearch import ApiError

from datagen.kafka_writer import KafkaWriter
from datagen.simulator import SimulatorConfig, simulate
from datagen.sinks import KafkaSink, make_topics
from engine.spec.duration import iso
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.query import tables
from tests.alias_reader import AliasReader
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]

MINUTE, HOUR = 60_000, 3_600_000
SECOND = "novelties-v2"


def test_a_second_version_catches_up_goes_live_is_promoted_under_load_and_equals_the_first(pipeline: Pipeline) -> None:
    start = (int(time.time() * 1000) - 4 * HOUR) // MINUTE * MINUTE
    shape: dict[str, Any] = {"hosts": 2, "vms": 4, "spare": 0, "metrics": 6, "start": start, "incident_rate": 24.0}
    inorder = {"late": 0.0, "delayed": 0.0, "skewed": 0.0, "log_rate": 0.5}
    site = SimulatorConfig(seed=3, **shape, **inorder, backfill=HOUR, duration=3 * HOUR, speed=10)  # type: ignore[arg-type]
    stopping = threading.Event()

    def load() -> None:
        with KafkaWriter(pipeline.settings.kafka.bootstrap or "") as writer:
            simulate(site, KafkaSink(writer, pipeline.settings.namespace), stopping)

    make_topics(pipeline.settings, pipeline.settings.kafka.bootstrap or "")
    sending = threading.Thread(target=load)
    sending.start()
    pipeline.start()
    pipeline.wait("the topics of the first version", lambda: topics.NOVELTIES in _names(pipeline))
    pipeline.wait("verdicts of the first version", lambda: len(pipeline.read(topics.NOVELTIES)) > 2_000)
    second = pipeline.spawn("replay", "--as", "v2")
    try:
        pipeline.wait(
            "some verdicts of the second version", lambda: SECOND in _names(pipeline) and bool(pipeline.read(SECOND))
        )
        second.send_signal(signal.SIGKILL)
        second.wait(30)
        second = pipeline.spawn("replay", "--as", "v2")
        pipeline.wait("documents of the first version", lambda: _count(pipeline, "2") > 2_000)
        stored = _count(pipeline, "2")
        pipeline.wait("the second version has caught up", lambda: _count(pipeline, "v2-") >= stored)
        with AliasReader(pipeline.settings.elasticsearch.url or "", pipeline.settings.alias) as reader:
            for name in ("v2", "v1", "v2"):
                pipeline.command("promote", name)
        assert not reader.errors
        assert set(reader.seen) == {frozenset({"v1"}), frozenset({"v2"})}
        refused = pipeline.refused("retire", "v1", "--yes")
        assert "ALREADY_RUNNING" in refused
        stopping.set()
        sending.join()
    finally:
        stopping.set()
        second.send_signal(signal.SIGTERM)
        second.wait(90)
        pipeline.stop()
    for version in ("v1", "v2"):
        pipeline.command("run", "--until", "now", "--as", version)
    one, other = pipeline.final(), pipeline.final(SECOND)
    assert one.keys() == other.keys()
    unlike = [key for key in one if {**one[key], "revision": 0} != {**other[key], "revision": 0}]
    assert not unlike, f"{len(unlike)} of {len(one)}, e.g. {one[unlike[0]]} {other[unlike[0]]}"
    assert len(pipeline.read(SECOND)) == len({(m.partition(), m.value()) for m in pipeline.read(SECOND)}), "doubled"
    _ask_what_if(pipeline, start)
    _retire_the_first(pipeline)


def _ask_what_if(pipeline: Pipeline, start: int) -> None:
    """A replay of half an hour with another setting gives verdicts on that time only, and touches nothing else."""
    config = pipeline.log.with_name("whatif.toml")
    config.write_text("[detector]\nthreshold = 20.0\n")
    before = {name: len(pipeline.read(name)) for name in (topics.FEATURES, topics.NOVELTIES, SECOND)}
    begin, end = start + 10 * MINUTE, start + 40 * MINUTE
    bounds = ("--from", iso(begin), "--until", iso(end), "--config", str(config), "--job", "extractor")
    pipeline.command("replay", "--as", "whatif", *bounds)
    judged = [verdict["@timestamp"] for verdict in pipeline.verdicts("novelties-whatif") if verdict["metric"] != "logs"]
    assert begin < min(judged) <= begin + MINUTE
    assert end - MINUTE < max(judged) <= end
    assert before == {name: len(pipeline.read(name)) for name in before}, "a what-if touched what runs"


def _retire_the_first(pipeline: Pipeline) -> None:
    """The first version keeps what the second one reads, and readers go on."""
    shown = pipeline.command("retire", "v1", "--yes")
    assert "kept, as other versions read what they write: normalizer, log_normalizer" in shown
    assert pipeline.documents(), "readers see the second version"
    assert _names(pipeline) >= {topics.TELEMETRY, topics.LOGS, SECOND}
    assert topics.NOVELTIES not in _names(pipeline)
    assert topics.FEATURES not in _names(pipeline)


def _count(pipeline: Pipeline, version: str) -> int:
    """Number of documents of a version."""
    with elasticsearch_client(pipeline.settings.elasticsearch.url or "", request_timeout=30) as client:
        try:
            return int(client.count(index=f"{pipeline.settings.alias}-{version}*")["count"])
        except ApiError:  # its first index is being made
            return 0


def _names(pipeline: Pipeline) -> set[str]:
    """The topics of the pipeline, without its namespace."""
    reader = tables.consumer(pipeline.settings.kafka.bootstrap or "")
    try:
        return set(tables.topic_names(reader, pipeline.settings.namespace))
    finally:
        reader.close()
