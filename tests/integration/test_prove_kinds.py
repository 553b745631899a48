"""`newnormal prove` on real servers for incidents of each kind: silences, logs, peers, workloads, forecasts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from pipelines.query.incidents import incidents
from tests.integration.conftest import Pipeline
from tests.integration.kinds_of_incidents import CANARY, CHATTY, FULL, MINUTE, MINUTES, SILENT, send

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

SHOWN = {
    (SILENT, "_machine"): "absence",
    (SILENT, "logs"): "absence",
    (CHATTY, "logs"): "anomaly",
    (FULL, "disk.used_percent{path=/}~full"): "exhaustion",
    (CANARY, "_peers.http.latency"): "outlier",
}
"""Of series on which verdicts are proven, what is told."""


def _prove(pipeline: Pipeline, name: str) -> tuple[int, dict[str, Any]]:
    words = [sys.executable, "-m", "pipelines.cli.main", "prove", name, "--json"]
    done = subprocess.run(words, env=pipeline.environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.startswith("{"), done.stdout[-3000:] + done.stderr[-6000:]
    return done.returncode, json.loads(done.stdout)


def test_incidents_of_each_kind_are_proven(pipeline: Pipeline) -> None:
    pipeline.environment["NEWNORMAL_WINDOW__SIZE"] = "1m"
    send(pipeline.settings, int(time.time() * 1000) // MINUTE * MINUTE - MINUTES * MINUTE)
    pipeline.command("run", "normalizer", "log_normalizer", "extractor", "templates", "detector", "log_detector",
                     "incidents", "--until", "now", seconds=600)  # fmt: skip
    told = {(v["host.name"], v["metric"]): v["kind"] for v in pipeline.verdicts() if v["kind"] in set(SHOWN.values())}
    assert SHOWN.items() <= told.items()
    found, proven = incidents(pipeline.settings), set[str]()
    (silent,) = [each for each in found if any(s.entity == SILENT for s in each.series)]
    assert {each.metric for each in silent.metrics} == {"_machine", "logs"}, "its log has stopped, too"
    (slow,) = [each for each in found if any(s.entity == CANARY for s in each.series)]
    assert [each.message for each in slow.changes] == ["cart 2.0"]
    for incident in found:
        code, said = _prove(pipeline, incident.id)
        assert (code, said["proven"], said["differences"]) == (0, True, []), incident.message
        proven |= {row["what"] for row in said["compared"] if row["compared"]}
    assert {f"{metric} of {machine}" for machine, metric in SHOWN} <= proven
