"""`newnormal rule try` on a real Kafka and Elasticsearch: it says what the detector gives with the rule."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from elasticsearch import Elasticsearch

from deploy.embedded.endpoints import Endpoints
from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Incident, Label, Novelty, Rule
from pipelines.contracts.records.incident import AffectedSeries
from pipelines.contracts.settings import DetectorSettings, Settings, load
from pipelines.evaluation.rule_trial.stored import stored
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.jobs.detectors.worst import last_revisions, reported
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.query import control_topics
from tests.pipelines.cli.conftest import Run

pytestmark = pytest.mark.servers

STEP, WINDOWS, KEPT = 10_000, 300, 120
NOW = int(time.time() * 1000)
T0 = NOW - (WINDOWS + 2) * STEP
ALARMS = ["anomaly", "state_change", "new_normal", "absence"]


def values() -> pl.DataFrame:
    """A machine with a latency that has spikes up and down, and one with a disk that fills up slowly."""
    rng, rows = np.random.default_rng(7), []
    latency, disk = rng.normal(50, 2, WINDOWS), 0.5 + 0.0015 * np.arange(WINDOWS)
    latency[[90, 130]], latency[110] = 120.0, 5.0
    for entity, metric, course in (("web-1", "latency", latency), ("db-1", "disk.used_ratio", disk)):
        times = [T0 + at * STEP for at in range(WINDOWS)]
        rows += [(entity, metric, at, at + STEP, float(v)) for at, v in zip(times, course, strict=True)]
    return pl.DataFrame(rows, ["entity", "metric", "window_start", "window_end", "value"], orient="row")


def judged(*rules: Rule) -> pl.DataFrame:
    """The final verdicts of the detector with rules in force all the time."""
    detection = Detection(DetectorSettings())
    in_force = [RuleInForce(rule, 0, NOW) for rule in rules]
    return last_revisions(detection.process(values(), detection.new_state(), in_force)[0])


def alarms(verdicts: pl.DataFrame) -> set[tuple[str, int]]:
    return set(verdicts.filter(pl.col("kind").is_in(ALARMS)).select("metric", "window_start").rows())


@pytest.fixture(scope="module")
def site(endpoints: Endpoints) -> Iterator[Settings]:
    """A namespace with the novelties of those series in Elasticsearch; Kafka has the values of the last windows."""
    addresses: dict[str, Any] = {
        "kafka.bootstrap": endpoints.bootstrap, "elasticsearch.url": endpoints.elasticsearch_url,
    }  # fmt: skip
    settings = load(namespace=f"try{uuid.uuid4().hex[:8]}.", **addresses)
    sink = Sink(SinkConfig.of(settings, endpoints.elasticsearch_url))
    written = [SinkDocument(_document(row)) for row in judged().filter(reported()).iter_rows(named=True)]
    assert sink.write(written).indexed == len(written) > 4
    sink.close()
    sink = Sink(SinkConfig.of_incidents(settings, endpoints.elasticsearch_url), Incident)
    assert sink.write([SinkDocument(_incident().to_json())]).indexed == 1
    sink.close()
    topic = settings.topic(topics.FEATURES)
    ensure_topics(endpoints.bootstrap, {topic: topics.config(topics.FEATURES)}, 2, 1)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap})
    late = values().filter(pl.col("window_start") >= T0 + (WINDOWS - KEPT) * STEP)
    for (start,), rows in late.group_by("window_start", maintain_order=True):
        table = pa.Table.from_pylist([_features(row) for row in rows.iter_rows(named=True)], Features.arrow_schema())
        producer.produce(topic, columnar.encode(table, NOW), partition=int(start) // STEP % 2)
    assert producer.flush(30) == 0
    yield settings
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        for alias, index in ((settings.alias, settings.index), (settings.incident_alias, settings.incident_index)):
            client.indices.delete(index=[*client.indices.get_alias(name=alias)])
            client.indices.delete_index_template(name=f"newnormal-{index}")


def _incident() -> Incident:
    """An incident of the one value that was unusually low."""
    start = T0 + 110 * STEP
    low = AffectedSeries(
        entity="web-1", metric="latency", kind="anomaly", since=start, reported=start + STEP, end=start + STEP,
        record_score=90, change="less",
    )  # fmt: skip
    return Incident(
        id="low", site="default", status="resolved", severity="major", severity_score=60, record_score=90, message="m",
        machine_count=1, series_count=1, open_series=0, series=[low], opened=start + STEP, start=start,
        updated=start + 2 * STEP, end=start + STEP,
    )  # fmt: skip


def _document(row: dict[str, Any]) -> bytes:
    kept = ["entity", "metric", "window_start", "window_end", "kind", "record_score", "probability", "actual"]
    kept += ["typical", "since", "incident_state", "revision"]
    names = {Novelty.model_fields[name].alias or name: name for name in kept}
    return json.dumps({alias: row[name] for alias, name in names.items() if row[name] is not None}).encode()


def _features(row: dict[str, Any]) -> dict[str, object]:
    same = dict.fromkeys(("std", "min", "max", "last", "p50", "p95", "p99", "mean"), row["value"])
    named = {name: row[name] for name in ("entity", "metric", "window_start", "window_end")}
    return named | same | {"kind": "gauge", "count": 10, "rate": None, "revision": 0}


@pytest.fixture
def here(site: Settings, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", endpoints.bootstrap)
    monkeypatch.setenv("NEWNORMAL_ELASTICSEARCH__URL", endpoints.elasticsearch_url)
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", site.namespace)
    return site


def test_what_would_have_been_removed_is_what_the_detector_does_not_tell_with_the_rule(
    here: Settings, run: Run
) -> None:
    given = Rule(id="slower", time=0, metric="lat*", only="up")
    was, is_ = alarms(judged()), alarms(judged(given))
    down = T0 + 110 * STEP
    assert was - is_ == {("latency", down)} and is_
    label = Label(entity="web-1", metric="latency", start=down, end=down + STEP, verdict="true", time=down + STEP)
    control_topics.write(here, label)
    code, out, err = run("rule", "try", "slower", "--metric", "lat*", "--only", "up", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["removed"]["windows"] == len(was - is_) and found["added"]["windows"] == 0
    assert found["removed"]["true_alarms"] == 1
    assert (found["removed"]["incidents"], found["removed"]["incident_severities"]) == (1, {"major": 1})
    first = found["examples"][0]
    assert (first["from"], first["label"], first["actual"]) == (iso(down), "true", 5.0)
    assert control_topics.rules(here) == []
    code, out, _ = run("rule", "try", "slower", "--metric", "lat*", "--only", "up")
    assert code == 0
    assert "removed: " in out and "1 true alarm lost" in out and "nothing is known of the time before" in out
    _, out, _ = run("rule", "try", "slower", "--metric", "lat*", "--only", "up", "--from", iso(down - STEP))
    assert "removed: 1 of " in out and "nothing is known" not in out


def test_what_would_have_been_added_is_counted_as_far_back_as_kafka_has_the_values(here: Settings, run: Run) -> None:
    """Quiet windows are not stored by default."""
    given = Rule(id="full", time=0, metric="disk*", above=0.9, report=True)
    added = alarms(judged(given)) - alarms(judged())
    assert len(added) > 20 and min(start for _, start in added) > T0 + (WINDOWS - KEPT) * STEP
    given_options = ("rule", "try", "full", "--metric", "disk*", "--above", "90%", "--report")
    code, out, _ = run(*given_options, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["added"] == {"windows": len(added), "alarms": 1, "severities": {"unknown": 1}}
    assert found["stored"]["values_from"] == iso(T0 + (WINDOWS - KEPT) * STEP)
    code, out, _ = run(*given_options, "--from", iso(T0))
    assert code == 0 and "what the rule adds before is not counted" in out


def test_a_time_of_which_nothing_is_stored_is_said(here: Settings, run: Run) -> None:
    first = int(judged().filter(reported())["window_end"].min())  # type: ignore[arg-type]
    code, out, err = run("rule", "try", "r", "--skip-result", "--from", "-30d", "--until", "-20d")
    assert code != 0 and out == ""
    assert f"from {iso(first)} to" in " ".join(err.split())
    assert "VERSION_EMPTY" in err and "no verdict is stored of that time" in " ".join(err.split())


def test_what_cannot_be_tried_is_refused(here: Settings, run: Run) -> None:
    for wrong in (["--skip-learning"], ["--skip-result", "--from", "-1h", "--until", "-2h"], ["--store"]):
        code, out, err = run("rule", "try", "r", *wrong)
        assert (code, out, "USAGE_INVALID" in err) == (2, "", True)
    code, _, err = run("rule", "try", "r", "--skip-result", "--from", "+1h")
    assert code == 2 and "USAGE_INVALID" in err
    code, _, err = run("rule", "try", "r", "--metric", "latency", "--above", "95%", "--report")
    assert code == 2 and "is no ratio" in " ".join(err.split())


def test_more_than_fits_into_memory_is_refused(here: Settings) -> None:
    for rule in (Rule(id="r", time=0, skip_result=True), Rule(id="r", time=0, metric="disk*", above=0.1, report=True)):
        with pytest.raises(NewnormalError, match="more than 3 stored windows") as refused:
            stored(rule, T0, NOW, here, most=3)
        assert refused.value.code == "USAGE_INVALID"


def test_labels_on_windows_that_are_no_alarms_propose_nothing(here: Settings, run: Run) -> None:
    spikes = [T0 + at * STEP for at in (90, 110, 130)]
    code, out, _ = run("rule", "propose", "--json")
    before = json.loads(out)
    assert (code, before["proposals"], before["complete"]) == (0, [], True)
    labels = [
        Label(entity="db-1", metric="disk.used_ratio", start=start, end=start + STEP, verdict="false_alarm", time=NOW)
        for start in spikes
    ]
    control_topics.write(here, *labels)  # on windows that are no alarms
    code, out, err = run("rule", "propose")
    assert (code, err) == (0, "")
    assert f"labelled true: {before['true_alarms']}" in out and "no proposal: " in out
    code, _, err = run("rule", "propose", "--from", "+1h")
    assert code == 2 and "USAGE_INVALID" in err
