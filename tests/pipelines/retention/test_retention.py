"""What is older than the policy says goes, and nothing that somebody needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from typer.testing import CliRunner

from deploy.embedded.endpoints import Endpoints
from engine.formats.columnar import encode
from engine.kafka.admin import delete_topics, ensure_topics
from engine.runtime.intake import KAFKA
from engine.spec.duration import epoch_ms
from pipelines.cli.main import app
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.archive.layout import DAY_MS, TopicFolder
from pipelines.jobs.archive.reader import ArchiveReader
from pipelines.jobs.archive.writer import ArchiveWriter
from pipelines.retention.retention import Old, Retention
from pipelines.savepoints.catalogue import Catalogue
from pipelines.savepoints.savepoint import SavedJob, Savepoint
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version
from tests.pipelines.notify.receivers import incident

NOW = epoch_ms("2026-11-22T12:00:00Z")
DAYS = ("2026-10-01", "2026-11-10", "2026-11-20")
POLICY = {"retention.indices": "30d", "retention.archive": "5d"}


@pytest.fixture
def settings(endpoints: Endpoints, tmp_path: Path) -> Iterator[Settings]:
    given = {"namespace": "kept.", "state_dir": tmp_path, "archive.path": tmp_path / "archive", **POLICY}
    settings = endpoints.settings(load(**given))
    yield settings
    with Elasticsearch(settings.elasticsearch.url or "") as client:
        for name in list(client.indices.get(index="kept.*,other.*")):
            client.indices.delete(index=name)
    Registry(settings).remove("v2")


@pytest.fixture
def folder(settings: Settings) -> TopicFolder:
    """An archive with a write for each of three days, and a late record of the first day in the last write."""
    assert settings.archive.path
    folder = TopicFolder(settings.archive.path, settings.topic("telemetry"))
    writer = ArchiveWriter(folder, Telemetry)
    for offset, day in enumerate(DAYS):
        times = [epoch_ms(day), *([epoch_ms(DAYS[0])] if offset == 2 else [])]
        rows = [{"time": t, "entity": "m", "metric": "cpu", "value": 1.0, "kind": "gauge"} for t in times]
        value = encode(pa.Table.from_pylist(rows, Telemetry.arrow_schema()), times[0])
        message = {"value": value, "topic": folder.topic, "partition": 0, "offset": offset, "arrived": times[0]}
        writer.write(f"a-{offset}", pa.Table.from_pylist([message], KAFKA), {0: offset}, {0: offset + 1})
    return folder


def named(found: list[Old]) -> dict[str, str]:
    return {old.name: old.needed for old in found}


@pytest.mark.servers
def test_old_indices_and_days_go_and_those_that_a_replay_needs_stay(settings: Settings, folder: TopicFolder) -> None:
    client = Elasticsearch(settings.elasticsearch.url or "")
    month, daily = "kept.novelties-2026.09", ["kept.novelties-2026.10.20", "kept.novelties-2026.10.24"]
    others = ["kept.novelties-v2-2026.10.20", "other.novelties-2026.10.20", "kept.novelties-notes-2026.10.20"]
    for name in (month, *daily, *others):
        client.indices.create(index=name)
    registry = Registry(settings)
    v2 = Version(name="v2", base="v1", jobs=("extractor", "sink"), sources={"telemetry": "v1"},
                 start=epoch_ms("2026-11-10T08:00:00Z"), created=NOW - 1000)  # fmt: skip
    registry.put(v2)

    retention = Retention(settings, registry)
    found = retention.find(NOW)
    reads, old = "version v2 reads it", "kept.telemetry/day="
    assert named(found) == {
        month: "", daily[0]: "", others[0]: "version v2 is new",
        f"{old}{DAYS[0]}": "", f"{old}{DAYS[1]}": reads,
    }  # fmt: skip
    retention.delete(found)
    assert folder.days() == list(DAYS[1:])
    assert sorted(client.indices.get(index="kept.*,other.*")) == sorted([daily[1], *others])
    assert ArchiveReader(folder, Telemetry).start == {0: 1}

    checkpoint = settings.of(v2.names).folder("checkpoints") / "extractor"
    for part in ("offsets", "commits"):
        (checkpoint / part).mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps({folder.topic: {'0': 2}})}")
    (checkpoint / "archive.json").write_text("{}")
    assert named(retention.find(NOW))[f"{old}{DAYS[1]}"] == reads, "its first micro-batch is not completed"
    (checkpoint / "commits" / "0").write_text("v1\n{}")
    kept = SavedJob(batch=0, offsets={folder.topic: {"0": 1}})
    savepoint = Savepoint(name="before", version="v1", created=NOW, program="1", settings={}, jobs={"extractor": kept})
    manifest = settings.folder("savepoints") / "before" / "savepoint.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(savepoint.model_dump_json())
    assert named(retention.find(NOW))[f"{old}{DAYS[1]}"] == "savepoint before needs it"
    Catalogue(settings).delete(savepoint)
    found = retention.find(NOW)
    assert named(found)[f"{old}{DAYS[1]}"] == ""
    retention.delete(found)
    assert folder.days() == [DAYS[2]]
    rows = pa.Table.from_batches(ArchiveReader(folder, Telemetry).messages(0, 0, 9))
    assert rows["offset"].to_pylist() == [2]
    client.close()


@pytest.mark.servers
def test_an_index_of_incidents_stays_while_one_is_seen_open_and_until_all_have_been_over_for_long(
    settings: Settings, endpoints: Endpoints
) -> None:
    registry = Registry(settings)
    old = epoch_ms("2026-10-01T08:00:00Z")
    ends = {"01": None, "02": NOW - 29 * DAY_MS, "03": NOW - 31 * DAY_MS, "04": None}
    seen = {"01": NOW - 29 * DAY_MS, "04": NOW - 31 * DAY_MS}
    with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=30, max_retries=0) as client:
        for day, end in ends.items():
            status = "open" if end is None else "resolved"
            made = incident(f"i{day}", status=status, opened=old, start=old, end=end, updated=end or old)
            made = made.model_copy(update={"revision": seen.get(day, end)})
            name = f"kept.incidents-2026.10.{day}"
            document = orjson.loads(made.to_json())
            client.index(index=name, document=document, refresh=True)
    retention = Retention(settings, registry)
    found = named(retention.find(NOW))
    assert found == {
        "kept.incidents-2026.10.01": "an incident in it is not over",
        "kept.incidents-2026.10.02": "an incident in it ended later",
        "kept.incidents-2026.10.03": "",
        "kept.incidents-2026.10.04": "",
    }
    gone = [each.name for each in retention.delete(retention.find(NOW))]
    assert gone == ["kept.incidents-2026.10.03", "kept.incidents-2026.10.04"]


@pytest.mark.servers
def test_a_dry_run_shows_what_would_go_and_deletes_nothing(
    settings: Settings, folder: TopicFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"NAMESPACE": "kept.", "STATE_DIR": settings.state_dir, "ARCHIVE__PATH": settings.archive.path}
    given |= {"KAFKA__BOOTSTRAP": settings.kafka.bootstrap, "ELASTICSEARCH__URL": settings.elasticsearch.url}
    for name, value in {**given, "RETENTION__ARCHIVE": "1d", "COLUMNS": "200"}.items():
        monkeypatch.setenv(f"NEWNORMAL_{name}" if name != "COLUMNS" else name, str(value))
    shown = CliRunner().invoke(app, ["retention", "--dry-run"]).output
    assert "kept.telemetry/day=2026-10-01" in shown
    assert "2026-10-02 00:00" in shown
    assert "would delete 3 of 3" in shown
    assert "late records: 7d are kept" in shown, "Kafka deletes them after kafka.retention"
    assert folder.days() == list(DAYS)
    assert "deleted 3 of 3" in CliRunner().invoke(app, ["retention"]).output
    assert folder.days() == []


@pytest.mark.servers
def test_the_command_says_for_how_long_kafka_keeps_late_records_from_now_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap, late = settings.kafka.bootstrap or "", settings.topic("features.late")
    ensure_topics(bootstrap, {late: {"retention.ms": "604800000"}}, 1)
    given = {"NAMESPACE": "kept.", "STATE_DIR": settings.state_dir, "KAFKA__RETENTION": "6d"}
    given |= {"KAFKA__BOOTSTRAP": bootstrap, "ELASTICSEARCH__URL": settings.elasticsearch.url}
    for name, value in given.items():
        monkeypatch.setenv(f"NEWNORMAL_{name}", str(value))
    shown = CliRunner().invoke(app, ["retention"]).output
    assert "late records: 6d are kept" in shown
    assert f"topic {late}: Kafka keeps its messages for 6d" in shown
    assert "None" not in shown
    delete_topics(bootstrap, [late])
