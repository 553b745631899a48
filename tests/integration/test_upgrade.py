"""What the released version began, this one goes on with: checkpoints of jobs that read more topics now."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from engine.kafka.continuation import identity
from pipelines.contracts import topics
from tests.integration.conftest import Pipeline
from tests.integration.spikes import MINUTE, send_minutes

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parents[2]
RELEASED = "v0.1.0"
JOBS = ("normalizer", "extractor", "detector", "incidents")
MINUTES, UPDATE = 75, 40
"""Minutes of the site, and when the new version takes over: between the two surges."""


def released(folder: Path) -> Path:
    """The code of the release, as git has it."""
    done = subprocess.run(["git", "archive", RELEASED], cwd=REPOSITORY, capture_output=True, timeout=60, check=False)
    if done.returncode:
        pytest.skip(f"this clone has no tag {RELEASED}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_checkpoints_of_the_released_version_go_on(pipeline: Pipeline, tmp_path: Path) -> None:
    """The jobs `detector` and `incidents` read further topics now; nothing is lost, doubled or begun anew."""
    code, start = released(tmp_path / "released"), (int(time.time()) // 60 - MINUTES) * MINUTE
    checkpoints = pipeline.settings.folder("checkpoints")

    def judged(minute: int) -> bool:
        return any(each["@timestamp"] >= start + minute * MINUTE for each in pipeline.verdicts())

    def incidents() -> set[str]:
        return {json.loads(m.value())["event.id"] for m in pipeline.read(topics.INCIDENTS)}

    send_minutes(pipeline, start, 0, UPDATE)
    with pipeline.log.open("ab") as log:
        words = [sys.executable, "-m", "pipelines.cli.main", "run", *JOBS]
        pipeline.process = subprocess.Popen(words, cwd=code, env=pipeline.environment, stdout=log, stderr=log)
    pipeline.wait("verdicts of the release", lambda: judged(UPDATE - 2))
    pipeline.wait("its incident", lambda: len(incidents()) > 0)
    pipeline.stop()
    before, told, known = pipeline.final(), incidents(), {job: identity(checkpoints / job) for job in JOBS}
    send_minutes(pipeline, start, UPDATE, MINUTES)
    pipeline.start(*JOBS)
    pipeline.wait("verdicts on what came later", lambda: judged(MINUTES - 2))
    pipeline.wait("the next incident", lambda: incidents() > told)
    pipeline.stop()
    after = pipeline.final()
    assert all(after[key] == before[key] for key in before), "what was judged stays as it was"
    assert {job: identity(checkpoints / job) for job in JOBS} == known
    assert not pipeline.read(topics.DEADLETTER)
