"""A minute of `newnormal chaos`: nothing is lost, doubled or different, and each fault is in the log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_minute_of_chaos_loses_doubles_and_changes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.cli.main", "chaos", "--minutes", "1", "--seed", "1", "--no-replay"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    faults = [json.loads(line) for line in (tmp_path / "faults.jsonl").read_text().splitlines()]
    assert f"0 lost, 0 doubled, 0 different after {len(faults)} faults; 0 without recovery" in done.stdout
    assert faults
    assert all(fault["recovery"] is not None for fault in faults if fault["waited"])
    assert (tmp_path / "chaos.png").stat().st_size > 10_000


@pytest.mark.long
def test_an_outage_of_elasticsearch_loses_nothing_and_leaves_the_pipeline_as_small_as_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.cli.main", "chaos", "--outage", "5", "--no-replay"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert "0 lost, 0 doubled, 0 different after 1 faults; 0 without recovery" in done.stdout
    (fault,) = [json.loads(line) for line in (tmp_path / "faults.jsonl").read_text().splitlines()]
    assert fault["restarts"] == 0, "the pipeline waits, it does not end"
    looks = [json.loads(line) for line in (tmp_path / "footprint.jsonl").read_text().splitlines()]
    half = len(looks) // 2
    assert half >= 4
    for part in ("driver", "jvm", "workers"):
        files = [look[part]["files"] for look in looks]
        assert max(files[half:]) < 1.5 * max(files[:half]), "connections are not left open"
