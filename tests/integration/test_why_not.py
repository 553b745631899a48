"""`newnormal why-not` on real servers: what ended at which step is known, as this test has sent it."""

from __future__ import annotations

import json
import time

import numpy as np
import orjson
import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Rule
from pipelines.contracts.settings import load
from pipelines.query.control_topics import write
from pipelines.why_not.asking import ask
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

STEP, WINDOWS = 10_000, 160
QUIET, NEW, OUTLIER, LATE, REFUSED = 100, 3, 120, 110, 130
MACHINES = ("plain", "ruled", "silent")


def test_each_question_is_answered_with_the_step_at_which_it_ended(pipeline: Pipeline) -> None:
    settings = pipeline.settings
    start = (int(time.time() * 1000) - 3_600_000) // STEP * STEP

    def at(window: int) -> int:
        return start + window * STEP

    write(settings, Rule(id="upgrade", time=at(OUTLIER - 10), end=at(OUTLIER + 10), entity="ruled", skip_result=True))
    values = np.random.default_rng(0).normal(50, 3, WINDOWS)
    values[QUIET] = 50.0
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "linger.ms": 5})

    def send(host: str, window: int, value: float, sample: str = "") -> None:
        raw = {"@timestamp": at(window) + 1, "host.name": host, "metric": "cpu", "value": value, "kind": "gauge"}
        producer.produce(settings.topic(topics.RAW_JSON), sample.encode() or orjson.dumps(raw), partition=0)

    for window, value in enumerate(values):
        for host in MACHINES:
            if host == "silent" and window in (LATE, REFUSED):
                continue
            send(host, window, 200.0 if window == OUTLIER else float(value))
    send("silent", REFUSED, 0.0, json.dumps({"@timestamp": "yesterday", "host.name": "silent", "metric": "cpu"}))
    producer.flush()
    pipeline.command("run", "--until", "now")
    send("silent", LATE, 60.0)
    for window in range(WINDOWS, WINDOWS + 3):
        send("plain", window, 50.0)
    producer.flush()
    pipeline.environment["NEWNORMAL_WINDOW__ALLOWED_LATENESS"] = "10s"
    pipeline.command("run", "--until", "now")

    def why(machine: str, metric: str, window: int) -> tuple[str | None, dict[str, str]]:
        walked = ask(settings, machine, metric, at(window), at(window + 1))
        answer = walked.answer.step.name if walked.answer else None
        return answer, {each.step.name: each.words for each in walked.findings}

    wanted = {
        ("nobody", "cpu", QUIET): ("arrived", "no machine nobody is known"),
        ("plain", "memory", QUIET): ("arrived", "known of plain: "),
        ("plain", "cpu", WINDOWS + 60): ("arrived", "not judged yet"),
        ("silent", "cpu", REFUSED): ("arrived", "could not be used"),
        ("silent", "cpu", LATE): ("in_time", "1 samples came after window.allowed_lateness"),
        ("plain", "cpu", NEW): ("learned", "it was learned"),
        ("plain", "cpu", QUIET): ("unusual", "50 is within"),
        ("ruled", "cpu", OUTLIER): ("rules", "upgrade"),
        # it is an incident, and the settings name no channel
        ("plain", "cpu", OUTLIER): ("told", "notify.channels"),
    }
    answers = {asked: why(*asked) for asked in wanted}
    unlike = {
        asked: answers[asked]
        for asked, (step, words) in wanted.items()
        if answers[asked][0] != step or words not in answers[asked][1][step]
    }
    assert not unlike, json.dumps({str(asked): answer for asked, answer in unlike.items()}, indent=1)
    assert "value 200" in answers["plain", "cpu", OUTLIER][1]["shown"]
    asked = ("why-not", "plain", "cpu", iso(at(OUTLIER)))
    answer = json.loads(pipeline.command(*asked, "--json"))
    assert (answer["from"], answer["until"]) == (iso(at(OUTLIER)), iso(at(OUTLIER) + 300_000))
    assert answer["ended_at"] == "told"
    said = pipeline.command(*asked)
    assert "11 Was it told?" in said
    assert "newnormal notify routes" in said


def test_topics_that_are_not_there_hold_nothing_but_a_broker_that_is_slow_is_an_error(
    endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline
) -> None:
    def late(self: KafkaOffsets) -> Offsets:
        raise TimeoutError("no answer within 30 s")

    end = int(time.time() * 1000)
    known = {"kafka.bootstrap": endpoints.bootstrap}
    answer = ask(load(namespace="never-run.", **known), "web-1", "cpu", end - 60_000, end).answer
    assert answer
    assert "no machine web-1 is known" in answer.words or "not judged yet" in answer.words
    monkeypatch.setattr(KafkaOffsets, "ends", late)
    with pytest.raises(NewnormalError) as error:
        ask(pipeline.settings, "web-1", "cpu", end - 60_000, end)
    assert error.value.code == "KAFKA_UNREACHABLE"
