"""`newnormal compare` on a real Kafka and Elasticsearch: two versions whose verdicts were written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from elasticsearch import Elasticsearch

from deploy.embedded.endpoints import Endpoints
from engine.address import client_options
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.cli.console_versions import ConsoleVersions
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import FIRST
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.versions.plan import planned
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version

Run = Callable[..., tuple[int, str, str]]
T0, STEP = 1_800_000_000_000, 10_000

pytestmark = pytest.mark.servers


def verdict(at: int, kind: str = "normal", score: float = 10.0, revision: int = 0) -> bytes:
    start = T0 + at * STEP
    tree = {"host.name": "db-1", "metric": "cpu", "window_start": start, "@timestamp": start + STEP, "kind": kind}
    tree |= {"record_score": score, "probability": 0.5, "actual": 5.0, "typical": 4.0, "lower": 3.0, "upper": 4.5}
    tree |= {"revision": revision} | ({"message": "cpu of db-1 is 5; usual: 3 to 4.5."} if kind == "anomaly" else {})
    return json.dumps(tree).encode()


def truth(first: int, last: int) -> bytes:
    tree = {"id": "i", "incident": "i", "type": "spike", "class": "anomaly", "entity": "db-1", "metrics": ["cpu"]}
    return json.dumps(tree | {"start": T0 + first * STEP, "end": T0 + last * STEP}).encode()


def verdicts(alarms: dict[int, float]) -> list[bytes]:
    kinds = {at: ("anomaly", score) for at, score in alarms.items()}
    return [verdict(at, *kinds.get(at, ("normal", 10.0))) for at in range(60)]


@pytest.fixture(scope="module")
def pipeline(endpoints: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Versions v1 and v2, which disagree: v1 misses what was wrong at window 40, and raises a false alarm at 10."""
    addresses: dict[str, Any] = {
        "kafka.bootstrap": endpoints.bootstrap,
        "elasticsearch.url": endpoints.elasticsearch_url,
    }
    settings = load(namespace="comparing.", state_dir=tmp_path_factory.mktemp("state"), **addresses)
    second = planned("v2", Version.first(), "detector", None, None, {"detector.threshold": 30.0}, T0)
    names = (topics.NOVELTIES, f"{topics.NOVELTIES}-v2", topics.GROUNDTRUTH)
    ensure_topics(endpoints.bootstrap, {settings.topic(name): {} for name in names}, 1, 1)
    Registry(settings).put(second)
    written = {
        names[0]: [*verdicts({10: 80.0}), verdict(20, "anomaly", 90.0), verdict(20, "normal", 20.0, revision=1)],
        names[1]: verdicts({40: 35.0}),
        names[2]: [truth(39, 42)],
    }
    producer = Producer({"bootstrap.servers": endpoints.bootstrap, "log_level": 0})
    for name, values in written.items():
        for value in values:
            producer.produce(settings.topic(name), value, partition=0)
    assert producer.flush(30) == 0
    for version, name in ((settings, names[0]), (settings.of(second.names), names[1])):
        sink = Sink(SinkConfig.of(version, endpoints.elasticsearch_url))
        sink.write([SinkDocument(value) for value in written[name]])
        sink.close()
    yield settings
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        for index in client.indices.get(index="comparing.*", allow_no_indices=True):
            client.indices.delete(index=index)


def options(settings: Settings) -> list[str]:
    url = settings.elasticsearch.url or ""
    account = ":".join(client_options(url)["basic_auth"])
    given = {"--kafka": settings.kafka.bootstrap, "--elasticsearch": str(url).replace("//", f"//{account}@")}
    given |= {"--namespace": settings.namespace, "--state-dir": str(settings.state)}
    return [part for name, value in given.items() for part in (name, str(value))]


@pytest.mark.parametrize("source", [[], ["--indices"]], ids=["topics", "indices"])
def test_two_versions_are_compared_on_their_final_verdicts_and_the_ground_truth(
    source: list[str], pipeline: Settings, run: Run
) -> None:
    code, out, said = run("compare", FIRST, "v2", "--json", *source, *options(pipeline))
    assert (code, said) == (0, "")
    found = json.loads(out)
    assert {name: found["alarms"][name] for name in ("new", "gone", "same")} == {"new": 1, "gone": 1, "same": 0}
    assert {name: side["recall"] for name, side in found["accuracy"].items()} == {"v1": 0.0, "v2": 1.0}
    assert {name: side["precision"] for name, side in found["accuracy"].items()} == {"v1": 0.0, "v2": 1.0}
    assert found["settings"] == {"v1": {"detector.threshold": 50.0}, "v2": {"detector.threshold": 30.0}}
    assert found["compared"]["windows"] == 60
    reasons = {each["outcome"]: each["reasons"] for each in found["differences"]}
    assert "an alarm begins at 30" in reasons["gone"]["v2"]
    assert "cpu of db-1 is 5; usual: 3 to 4.5." in reasons["gone"]["v1"]


def test_the_terminal_shows_tables_and_the_page_is_written(pipeline: Settings, run: Run, tmp_path: Path) -> None:
    report = tmp_path / "reports" / "report.html"
    code, out, said = run("compare", FIRST, "v2", "--html", str(report), *options(pipeline))
    assert code == 0
    told = " ".join(out.split())
    assert "v1 and v2 agree on 96.67 % of 60 windows whether there is an alarm." in told
    assert "The settings differ: detector.threshold is 50.0 in v1 and 30.0 in v2." in told
    assert "alarms by machine" in told
    assert "report.html" in said
    assert report.read_text().count("<img") == 2


def test_labels_of_a_file_take_the_place_of_the_ground_truth(pipeline: Settings, run: Run, tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_bytes(truth(9, 12))
    code, out, _ = run("compare", FIRST, "v2", "--json", "--labels", "labels.jsonl", *options(pipeline))
    assert code == 0
    assert {name: side["recall"] for name, side in json.loads(out)["accuracy"].items()} == {"v1": 1.0, "v2": 0.0}


def test_unknown_and_equal_versions_are_refused(pipeline: Settings, run: Run) -> None:
    code, _, said = run("compare", FIRST, "v9", *options(pipeline))
    assert (code, "VERSION_UNKNOWN" in said) == (2, True)
    code, _, said = run("compare", "v2", "v2", *options(pipeline))
    assert (code, "USAGE_INVALID" in said) == (2, True)


def test_the_console_lists_the_versions_and_is_told_what_the_command_says(pipeline: Settings, run: Run) -> None:
    given = {"namespace": pipeline.namespace, "state_dir": pipeline.state}
    versions = ConsoleVersions(lambda: pipeline, given)
    listed = {each["name"]: each for each in versions.listed()}
    assert {name: each["settings"] for name, each in listed.items()} == {"v1": {}, "v2": {"detector.threshold": 30.0}}
    assert (listed["v1"]["shown"], listed["v2"]["shown"]) == (True, False)
    found = versions.compared(FIRST, "v2")
    _, out, _ = run("compare", FIRST, "v2", "--json", *options(pipeline))
    said = json.loads(out)
    reasons = [each["reasons"] for each in said["differences"]]
    assert [{one["version"]: one["reason"] for one in each["versions"]} for each in found["differences"]] == reasons
    [machines] = [table for table in found["tables"] if table["by"] == "machine"]
    numbers = dict(zip(found["outcomes"], machines["rows"][0][3:], strict=True))
    assert numbers == {name: said["alarms"][name] for name in found["outcomes"]}
    gone = next(each for each in found["differences"] if each["outcome"] == "gone")
    points = {one["version"]: {point["@timestamp"]: point for point in one["points"]} for one in gone["versions"]}
    at = T0 + 11 * STEP
    assert (points["v1"][at]["record_score"], points["v2"][at]["record_score"]) == (80.0, 10.0)
    assert len(points["v1"]) == 60
    json.dumps(found)


def test_the_console_is_told_why_versions_cannot_be_compared(pipeline: Settings) -> None:
    versions = ConsoleVersions(lambda: pipeline, {"namespace": pipeline.namespace, "state_dir": pipeline.state})
    with pytest.raises(NewnormalError) as caught:
        versions.compared(FIRST, "v9")
    assert caught.value.code == "VERSION_UNKNOWN"
