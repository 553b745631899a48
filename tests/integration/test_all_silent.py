"""Everything stops sending, the worst outage there is: the console shows one incident, and the first record ends it."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from pipelines.contracts import topics
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

SILENCE = 20
JOBS = ("normalizer", "extractor", "detector", "incidents", "sink")


def send(pipeline: Pipeline) -> None:
    """A sample of each of three machines, at two of the inputs."""
    producer, now = Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""}), int(time.time() * 1000)
    for machine in "abc":
        sample = {"@timestamp": now, "host.name": machine, "metric": "cpu", "value": 1.0}
        for topic in (topics.RAW_JSON, topics.RAW_AGENTS):
            producer.produce(pipeline.settings.topic(topic), json.dumps(sample).encode(), machine)
    assert not producer.flush(30)


def test_that_nothing_is_received_any_more_is_one_incident_in_the_console_which_the_first_record_ends(
    pipeline: Pipeline,
) -> None:
    pipeline.environment["NEWNORMAL_INCIDENTS__SILENCE"] = f"{SILENCE}s"
    pipeline.start(*JOBS)
    address = list[str]()

    def told() -> bool:
        address.extend(re.findall(r"console\s+url=(http://127\.0\.0\.1:\d+)", pipeline.log.read_text()))
        return bool(address)

    def shown(state: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"{address[-1]}/api/incidents", timeout=30)
        return [each for each in answer.json().get(state, ()) if "received" in each["message"]]

    pipeline.wait("the console", told)
    pipeline.wait("the first sample in `telemetry`", lambda: (send(pipeline), bool(pipeline.read(topics.TELEMETRY)))[1])
    last = time.time() * 1000
    pipeline.wait("an incident that nothing is received", lambda: bool(shown("open")))
    (incident,) = shown("open")
    assert incident["severity"] == "critical"
    assert incident["message"].startswith("nothing has been received since"), incident
    assert abs(incident["event.start"] - last) < 15_000, "since the last record"
    time.sleep(SILENCE)
    assert [each["event.id"] for each in shown("open")] == [incident["event.id"]], "it stays one"
    send(pipeline)
    pipeline.wait("its end", lambda: not shown("open"))
    (over,) = shown("resolved")
    assert over["event.id"] == incident["event.id"]
