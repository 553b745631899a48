"""The kernel kills Spark's JVM when memory is short: the run ends with a code, and the next one goes on."""

from __future__ import annotations

import json
import os
import signal
import time

import psutil
import pytest
from confluent_kafka import Producer

from pipelines.contracts import topics
from tests.integration.conftest import Pipeline


def send(pipeline: Pipeline) -> None:
    sample = {"@timestamp": int(time.time() * 1000), "host.name": "a", "metric": "cpu", "value": 1.0}
    producer = Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""})
    producer.produce(pipeline.settings.topic(topics.RAW_JSON), json.dumps(sample).encode())
    assert not producer.flush(30)


@pytest.mark.slow
@pytest.mark.servers
def test_a_run_whose_jvm_is_killed_ends_with_its_code_and_the_next_goes_on(pipeline: Pipeline) -> None:
    send(pipeline)
    pipeline.start("normalizer")
    driver = pipeline.process
    assert driver is not None
    pipeline.wait("the first micro-batch", lambda: bool(pipeline.read(topics.TELEMETRY)))
    (jvm,) = [child for child in psutil.Process(driver.pid).children() if child.name() == "java"]
    os.kill(jvm.pid, signal.SIGKILL)
    assert driver.wait(60) == 2
    said = pipeline.log.read_text()
    assert "SPARK_ENDED: Spark's JVM was killed by signal 9" in said and "UNEXPECTED_ERROR" not in said
    written = len(pipeline.read(topics.TELEMETRY))
    send(pipeline)
    pipeline.start("normalizer")
    pipeline.wait("the next micro-batch", lambda: len(pipeline.read(topics.TELEMETRY)) > written)
