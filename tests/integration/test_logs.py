"""Log lines through real Kafka and Spark: an unseen template becomes a novelty with its example line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from datagen.kafka_writer import KafkaWriter
from pipelines.contracts import topics
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(600)]

MACHINES = [f"host-{number:02}" for number in range(16)]
WINDOW, WINDOWS, AT = 10_000, 170, 160
VICTIM, NEW = MACHINES[3], "EXT4-fs error (device vda1): unable to read block 4711"


def _lines(start: int) -> list[tuple[str, dict[str, Any]]]:
    """Usual lines of all machines, in order of time, and one that none of them ever wrote."""
    rng = np.random.default_rng(1)
    made = []
    for window in range(WINDOWS):
        for host in MACHINES:
            for template, rate in enumerate((4.0, 1.5, 0.5)):
                text = (f"GET /items/{rng.integers(10**6)} 200", f"session {rng.integers(999)} opened", "cache flushed")
                for _ in range(rng.poisson(rate)):
                    at = start + window * WINDOW + int(rng.integers(WINDOW))
                    made.append((at, host, "app", 6, text[template]))
    made.append((start + AT * WINDOW + 5_000, VICTIM, "kernel", 3, NEW))
    names = ("@timestamp", "host.name", "process.name", "log.syslog.severity.code", "message")
    return [(line[1], dict(zip(names, line, strict=True))) for line in sorted(made)]


def test_an_unseen_template_becomes_a_novelty_and_a_start_with_another_window_is_refused(pipeline: Pipeline) -> None:
    start = (int(time.time() * 1000) // WINDOW - WINDOWS) * WINDOW
    lines = _lines(start)
    with KafkaWriter(pipeline.settings.kafka.bootstrap or "") as writer:
        values = [json.dumps(line) for _, line in lines]
        writer.write(pipeline.settings.topic(topics.LOGS_JSON), values, [host for host, _ in lines])

    def verdicts() -> list[dict[str, Any]]:
        found = [json.loads(message.value()) for message in pipeline.read(topics.NOVELTIES)]
        return sorted(found, key=lambda v: (v["@timestamp"], v["host.name"]))

    pipeline.start("log_normalizer", "templates", "log_detector")
    end = start + (AT + 1) * WINDOW

    def past_it() -> bool:
        """Whether the victim's shard has judged the window; other shards may be ahead of it."""
        return any(v["@timestamp"] > end and v["host.name"] == VICTIM for v in verdicts())

    pipeline.wait("a verdict", past_it, 240)
    told = verdicts()
    (found,) = [v for v in told if v["host.name"] == VICTIM and v["@timestamp"] == end]
    assert found["kind"] == "anomaly"
    assert found["metric"] == "logs"
    assert found["event.original"] == NEW
    assert found["log.template"] == "kernel EXT<n>-fs error (device vda<n>): unable to read block <n>"
    assert found["evidence"]["unseen"] > 6
    others = [v for v in told if v["kind"] not in ("normal", "learning") and v["host.name"] != VICTIM]
    assert others == []

    command = [sys.executable, "-m", "pipelines.cli.main", "status", "--json"]
    status = subprocess.run(command, env=pipeline.environment, capture_output=True, text=True, check=False)
    (process,) = json.loads(status.stdout)["processes"]
    assert [job["name"] for job in process["jobs"]] == ["log_normalizer", "templates", "log_detector"]
    assert status.returncode == (1 if process["problems"] else 0)

    pipeline.stop()
    assert subprocess.run(command, env=pipeline.environment, capture_output=True, check=False).returncode == 3
    pipeline.environment["NEWNORMAL_WINDOW__SIZE"] = "30s"
    pipeline.start("templates")
    assert pipeline.process
    assert pipeline.process.wait(240) == 2
    assert "window.size = 30s, but the state of templates was made with 10s" in pipeline.log.read_text()
