"""`newnormal prove` on real servers: what was said is computed again, and is equal; what was altered is different.

Nothing of a proof is left: no topic, no folder, no index, no version.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.offsets import KafkaOffsets
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import load
from pipelines.query.incidents import incidents
from tests.integration.conftest import Pipeline
from tests.integration.spikes import send_minutes
from tests.security.broker import PASSWORD, USER, secure_kafka

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(900)]

MINUTE = 60_000


def _prove(pipeline: Pipeline, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code of a proof of the first incident, and what it says as JSON."""
    first = min(incidents(pipeline.settings), key=lambda each: each.opened)
    words = [sys.executable, "-m", "pipelines.cli.main", "prove", first.id, "--json", *options]
    done = subprocess.run(words, env=pipeline.environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.startswith("{"), done.stdout[-3000:] + done.stderr[-6000:]
    return done.returncode, json.loads(done.stdout)


def _there(pipeline: Pipeline) -> set[str]:
    """All that a proof could leave: topics, indices and templates, folders, groups."""
    settings, client = pipeline.settings, AdminClient({"bootstrap.servers": pipeline.settings.kafka.bootstrap})
    named = set(client.list_topics(timeout=30).topics)
    named |= {group.group_id for group in client.list_consumer_groups().result(30).valid}
    with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=30) as elastic:
        named |= set(elastic.indices.get(index="*", expand_wildcards="all"))
    folders = {str(path) for path in Path(settings.state).rglob("*@*")}
    of_the_pipeline = f"{settings.namespace}newnormal.owners"  # Kafka forgets it a while after the pipeline has ended
    return {name for name in named if name.startswith(settings.namespace)} - {of_the_pipeline} | folders


def _alter(pipeline: Pipeline, field: str, by: float) -> dict[str, Any]:
    """Writes one verdict on the first incident again, with a number that is a little larger; returns the verdict."""
    settings = pipeline.settings
    first = min(incidents(settings), key=lambda each: each.opened)
    series = {(each.entity, each.metric) for each in first.series}
    verdict = next(
        each for each in sorted(pipeline.verdicts(), key=lambda each: each["@timestamp"])
        if (each["host.name"], each["metric"]) in series and each["kind"] == "anomaly" and each["record_score"] < 99
        and first.start <= each["window_start"] and each["@timestamp"] <= (first.end or first.updated)
    )  # fmt: skip
    altered = verdict | {field: verdict[field] + by, "revision": verdict["revision"] + 1}
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
    producer.produce(settings.topic(topics.NOVELTIES), json.dumps(altered).encode(), key=verdict["host.name"])
    assert producer.flush(30) == 0
    return verdict


def _delete(pipeline: Pipeline, *names: str) -> None:
    """Has Kafka delete the first half of topics, as its retention does."""
    bootstrap = pipeline.settings.kafka.bootstrap or ""
    ends = KafkaOffsets(bootstrap, [pipeline.settings.topic(name) for name in names]).ends()
    places = [TopicPartition(topic, partition, end // 2) for (topic, partition), end in ends.items()]
    client = AdminClient({"bootstrap.servers": bootstrap})
    for future in client.delete_records(places).values():
        future.result(30)


def _start() -> int:
    return (int(time.time() * 1000) - 120 * MINUTE) // MINUTE * MINUTE


def test_of_all_that_was_said_only_the_altered_verdict_is_different_and_without_its_input_nothing_can_be_proven(
    pipeline: Pipeline,
) -> None:
    pipeline.environment["NEWNORMAL_DETECTOR__THRESHOLD"] = "40"
    send_minutes(pipeline, _start(), 0, 45)
    pipeline.command("run", "--until", "now")
    pipeline.environment["NEWNORMAL_DETECTOR__THRESHOLD"] = "55"  # what the settings are now is not what proves
    before = _there(pipeline)
    altered = _alter(pipeline, "record_score", 1e-9)
    code, said = _prove(pipeline)
    assert (code, said["proven"]) == (1, False)
    assert (said["job"], said["savepoint"], said["settings"]["detector.threshold"]) == ("detector", None, 40.0)
    assert set(said["offsets"]) == {pipeline.settings.topic(name) for name in (topics.FEATURES, topics.LOG_FEATURES)}
    (difference,) = said["differences"]
    assert altered["metric"] in difference["what"]
    assert (difference["field"], difference["computed"]) == ("record_score", altered["record_score"])
    first, *series = said["compared"]
    assert first["what"].startswith("incident ")
    assert first["compared"] == first["equal"] > 15
    assert sum(each["compared"] for each in series) > 15, "windows of three minutes of 10 s of one series at least"
    assert sum(each["compared"] - each["equal"] for each in series) == 1
    assert _there(pipeline) == before
    assert "proof" not in pipeline.command("versions", "--json")

    _delete(pipeline, topics.FEATURES, topics.TELEMETRY)
    code, said = _prove(pipeline)
    assert (code, said["proven"], said["code"]) == (3, None, "PROOF_INPUT_DELETED")
    assert _there(pipeline) == before


@pytest.mark.slow
def test_a_proof_begins_at_the_nearest_savepoint_and_in_the_archive_where_kafka_has_no_more(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Verdicts are stored around incidents only, as by default; in the end those of Elasticsearch are proven."""
    del pipeline.environment["NEWNORMAL_DETECTOR__EMIT"]
    pipeline.environment |= {
        "NEWNORMAL_ARCHIVE__PATH": str(tmp_path / "archive"),
        "NEWNORMAL_ARCHIVE__EVERY": "1s",
    }
    start = _start()
    send_minutes(pipeline, start, 0, 25)
    pipeline.command("run", "--until", "now")
    pipeline.command("savepoint", "create", "before")
    send_minutes(pipeline, start, 25, 45)
    pipeline.command("run", "--until", "now")
    pipeline.command("savepoint", "create", "after")  # too late for this incident
    before = _there(pipeline)
    code, said = _prove(pipeline)
    assert (code, said["proven"], said["differences"]) == (0, True, [])
    assert (said["job"], said["savepoint"]) == ("detector", "before")
    assert any(said["offsets"][pipeline.settings.topic(topics.FEATURES)].values())
    assert _there(pipeline) == before

    for name in ("before", "after"):
        pipeline.command("savepoint", "delete", name, "--yes")
    _delete(pipeline, topics.FEATURES, topics.LOG_FEATURES, topics.TELEMETRY, topics.LOGS, topics.NOVELTIES)
    before = _there(pipeline)
    code, said = _prove(pipeline, "--indices")
    assert (code, said["proven"], said["differences"]) == (0, True, [])
    assert (said["job"], said["savepoint"]) == ("extractor", None)
    assert sum(each["compared"] for each in said["compared"][1:]) > 15
    assert _there(pipeline) == before


@pytest.mark.slow
def test_a_user_with_the_acls_of_proofs_may_prove_and_remove_all_of_it(endpoints: Endpoints, tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    with secure_kafka(tmp_path / "kafka") as kafka:
        name, state = f"proofs{time.time_ns() % 10**9}.", tmp_path / "state"
        there = {"kafka.bootstrap": kafka.internal, "elasticsearch.url": endpoints.elasticsearch_url}
        settings = load(namespace=name, state_dir=state, **there)
        given = {"NAMESPACE": name, "STATE_DIR": str(state), "CONSOLE__PORT": "0", "DETECTOR__THRESHOLD": "40"}
        given |= {"KAFKA__BOOTSTRAP": kafka.internal, "ELASTICSEARCH__URL": endpoints.elasticsearch_url}
        environment = os.environ | {f"NEWNORMAL_{key}": value for key, value in given.items()}
        pipeline = Pipeline(settings, tmp_path / "driver.log", environment)
        wanted = {settings.topic(each): config for each, config in topics.configs().items()}
        ensure_topics(kafka.internal, wanted, settings.kafka.partitions)
        send_minutes(pipeline, _start(), 0, 45)
        pipeline.command("run", "--until", "now")
        listed = [json.loads(line) for line in pipeline.command("acls", "proofs", "--json").splitlines()]
        kafka.allow(USER, ((each["resource"], each["name"], each["prefix"], each["operation"]) for each in listed))
        before, word = _there(pipeline), tmp_path / "word"
        word.write_text(PASSWORD)
        word.chmod(0o600)
        login = {"BOOTSTRAP": kafka.sasl, "SECURITY_PROTOCOL": "SASL_SSL", "SASL_USERNAME": USER}
        login |= {"SSL_CA_FILE": str(kafka.authority.file), "SASL_PASSWORD_FILE": str(word)}
        pipeline.environment |= {f"NEWNORMAL_KAFKA__{key}": value for key, value in login.items()}
        assert _prove(pipeline, "--as", "v1")[0] == 0
        assert _there(pipeline) == before
