"""Where history ends, on a real broker: before the first offset and the first event time of the log or the archive."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.embedded.endpoints import Endpoints
from engine.formats.columnar import encode
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.doctor.context import Context
from pipelines.doctor.kafka.history import history
from pipelines.history.importing import Import, archive_folder
from pipelines.history.intake import Intake
from pipelines.history.place import Edge, edge
from pipelines.jobs.archive.reader import ArchiveReader
from tests.pipelines.history.test_importing import Given

pytestmark = pytest.mark.servers

HOUR = 3_600_000
LIVE = (int(time.time() * 1000) // HOUR - 5) * HOUR
"""The earliest sample of the log; it is not in the first message."""


@pytest.fixture
def site(endpoints: Endpoints, tmp_path: Path) -> Settings:
    more = {"namespace": f"h{uuid.uuid4().hex[:8]}.", "kafka.partitions": 2, "archive.path": str(tmp_path / "archive")}
    settings = endpoints.settings(load(state_dir=tmp_path / "state", **more))
    topic = settings.topic(topics.TELEMETRY)
    ensure_topics(endpoints.bootstrap, {topic: topics.configs()[topics.TELEMETRY]}, 2)
    return settings


def send(settings: Settings, times: list[int]) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap or ""})
    for n, at in enumerate(times):
        row = {"time": at, "entity": "m-1", "metric": "cpu", "value": 1.0, "kind": "gauge"}
        value = encode(pa.Table.from_pylist([row], Telemetry.arrow_schema()), at - 5_000)
        producer.produce(settings.topic(topics.TELEMETRY), value, partition=n % 2, timestamp=at + 1_000)
    assert producer.flush(30) == 0


def bring(settings: Settings, begin: int, end: int) -> Edge:
    """Imports an hourly sample up to an end."""
    found = edge(settings, archive_folder(settings))
    rows = [(at, "m-1", "cpu", 1.0, "gauge") for at in range(begin, end, HOUR)]
    Import(settings, Given(rows), Intake(settings), Event()).run(found, begin, end, lambda *_: None)
    return found


def delete(settings: Settings, before: int) -> None:
    """Has Kafka delete messages, as its retention does."""
    places = [TopicPartition(settings.topic(topics.TELEMETRY), p, before) for p in range(2)]
    client = AdminClient({"bootstrap.servers": settings.kafka.bootstrap or ""})
    for future in client.delete_records(places).values():
        future.result(30)


def test_history_ends_before_the_first_event_time_and_offset_of_the_log_and_then_of_what_was_imported(
    site: Settings,
) -> None:
    folder = archive_folder(site)
    assert edge(site, folder) == Edge({0: 0, 1: 0}, None, "")
    send(site, [LIVE + 20_000, LIVE + 10_000, LIVE, LIVE + 30_000])
    delete(site, 1)
    assert edge(site, folder) == Edge({0: 1, 1: 1}, LIVE, "")
    bring(site, LIVE - 3 * HOUR, LIVE)
    found = edge(site, folder)
    assert (found.time, found.origin) == (LIVE - 3 * HOUR, "given")
    assert found.places == ArchiveReader(folder, Telemetry).first
    assert max(found.places.values()) <= 0
    bring(site, LIVE - 5 * HOUR, LIVE - 3 * HOUR)
    assert edge(site, folder).time == LIVE - 5 * HOUR
    assert ArchiveReader(folder, Telemetry).end == {0: 1, 1: 1}
    assert history(Context(site)) == []


def test_a_log_that_has_lost_what_follows_history_is_refused_and_found_by_doctor(site: Settings) -> None:
    send(site, [LIVE + n * 1_000 for n in range(8)])
    bring(site, LIVE - 3 * HOUR, LIVE)
    delete(site, 3)
    with pytest.raises(NewnormalError, match="ARCHIVE_GAP"):
        edge(site, archive_folder(site))
    assert [finding.kind.code for finding in history(Context(site))] == ["HISTORY_APART"]


def test_history_that_ended_long_before_the_first_live_sample_is_found_by_doctor(site: Settings) -> None:
    bring(site, LIVE - 5 * HOUR, LIVE - 2 * HOUR)
    assert history(Context(site)) == []
    send(site, [LIVE])
    (finding,) = history(Context(site))
    assert finding.kind.code == "HISTORY_GAP"
    assert "2h" in finding.what or "2 h" in finding.what


def test_another_topic_of_that_name_is_refused(site: Settings) -> None:
    send(site, [LIVE])
    bring(site, LIVE - HOUR, LIVE)
    folder = archive_folder(site)
    folder.messages.with_name(f"{folder.topic}.id").write_text("another")
    with pytest.raises(NewnormalError, match="ARCHIVE_OTHER_TOPIC"):
        edge(site, folder)
