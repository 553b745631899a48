"""Rules, labels and late samples through real Kafka and Spark: what operators say changes the verdicts from then on."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka import Producer

from pipelines.contracts import topics
from pipelines.contracts.records import Label, Rule
from pipelines.query.control_topics import labels, rules, write
from tests.integration.conftest import Pipeline
from tests.pipelines.detectors.hostile import HOSTILE_LABELS, HOSTILE_RULES, LABELS, RULES, fuzz

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(400)]
STEP, WINDOWS = 10_000, 200
BEFORE, WITHIN, AFTER, REVISED = 80, 120, 170, 190


def small(values: Sequence[bytes | None]) -> list[bytes | None]:
    """Those that Kafka takes."""
    return [value for value in values if len(value or b"") < 900_000]


def elsewhere(values: list[bytes]) -> list[bytes]:
    """Those that cannot concern the machines of this test."""
    hosts = [json.loads(value).get("host.name", "*") for value in values]
    return [value for value, host in zip(values, hosts, strict=True) if not fnmatch("plain", str(host))]


def control(producer: Producer, topic: str, values: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """Writes messages to a topic of operators; where they lie: partition and offset."""
    places: list[tuple[int, int]] = []
    for number, value in enumerate(values):
        producer.produce(
            topic, value, key=b"hostile%d" % number, on_delivery=lambda _, m: places.append((m.partition(), m.offset()))
        )
    producer.flush()
    assert len(places) == len(values)
    return places


def _values() -> np.ndarray:
    """Three machines of like load; each has the same three outliers, each larger than the one before."""
    value = np.tile(np.random.default_rng(0).normal(50, 3, WINDOWS), (3, 1))
    value[:, [BEFORE, WITHIN, AFTER]] = 90.0, 150.0, 400.0
    return value


def test_a_rule_suppresses_while_in_force_a_label_changes_what_follows_and_late_samples_amend(
    pipeline: Pipeline,
) -> None:
    settings = pipeline.settings
    start = (int(time.time() * 1000) - 3_600_000) // STEP * STEP

    def at(window: int) -> int:
        return start + window * STEP

    rule = Rule(id="upgrade", time=at(WITHIN - 10), end=at(WITHIN + 10), entity="ruled", skip_result=True)
    write(settings, rule)
    label = Label(
        entity="labelled", metric="cpu", start=at(BEFORE), end=at(BEFORE), time=at(BEFORE + 5), verdict="false_alarm"
    )
    write(settings, label)
    assert (rules(settings), labels(settings)) == ([rule], [label])

    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "linger.ms": 5})

    def send(host: str, when: int, value: float) -> None:
        sample = {"@timestamp": when, "host.name": host, "metric": "cpu", "value": value, "kind": "gauge"}
        producer.produce(settings.topic(topics.RAW_JSON), orjson.dumps(sample), partition=0)

    hostile = {topics.RULES: small(HOSTILE_RULES), topics.LABELS: small(HOSTILE_LABELS)}
    sent = {topic: control(producer, settings.topic(topic), values) for topic, values in hostile.items()}
    for window, values in enumerate(_values().T):
        for host, value in zip(("ruled", "labelled", "plain"), values, strict=True):
            send(host, at(window) + 1, float(value))
    producer.flush()
    pipeline.start("normalizer", "extractor", "detector", "log_detector")

    def verdicts() -> dict[tuple[str, int], dict[str, Any]]:
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for message in pipeline.read(topics.NOVELTIES):
            row = orjson.loads(message.value())
            place = row["host.name"], (row["window_start"] - start) // STEP
            if row["metric"] == "cpu" and row["revision"] >= found.get(place, row)["revision"]:
                found[place] = row
        return found

    pipeline.wait("verdicts", lambda: ("plain", REVISED + 5) in verdicts())
    control(producer, settings.topic(topics.RULES), elsewhere(fuzz(RULES, 150)))
    control(producer, settings.topic(topics.LABELS), elsewhere(fuzz(LABELS, 100)))
    send("plain", at(REVISED) + 2, 2000.0)
    producer.flush()
    pipeline.wait("the amended verdict", lambda: verdicts()["plain", REVISED]["revision"] > 0)
    found = verdicts()

    ruled = [found["ruled", window] for window in (BEFORE, WITHIN, AFTER)]
    assert [row["kind"] for row in ruled] == ["anomaly", "normal", "anomaly"]
    assert [row.get("rules") for row in ruled] == [None, ["upgrade"], None]
    assert ruled[1]["record_score"] == 0
    plain, told = (
        [found[host, window]["record_score"] for window in (BEFORE, WITHIN, AFTER)] for host in ("plain", "labelled")
    )
    assert told[0] == plain[0]
    assert told[1] < plain[1]
    amended = found["plain", REVISED]
    assert amended["revision"] > 0 and amended["actual"] == (2000.0 + _values()[2, REVISED]) / 2
    assert amended["kind"] == "anomaly"
    hostile_messages_are_dead_letters(pipeline, sent)


def hostile_messages_are_dead_letters(pipeline: Pipeline, sent: dict[str, list[tuple[int, int]]]) -> None:
    """Each of the messages at these places is a dead letter, once.

    Args:
        pipeline: The pipeline.
        sent: Partition and offset of each message, by the name of its topic.
    """
    dead = [orjson.loads(message.value()) for message in pipeline.read(topics.DEADLETTER)]
    assert {letter["service.name"] for letter in dead} == {"detector"}, "although two jobs and all shards read them"
    for topic, places in sent.items():
        letters = [letter for letter in dead if letter["kafka.topic"] == pipeline.settings.topic(topic)]
        refused = [(letter["kafka.partition"], letter["kafka.offset"]) for letter in letters]
        assert set(places) <= set(refused)
        assert len(set(refused)) == len(refused), "each once"
    assert all(letter["error.message"] for letter in dead)
