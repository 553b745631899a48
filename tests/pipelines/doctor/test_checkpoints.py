"""Doctor finds what would refuse the next start, without a server; each finding is provoked, and nothing is changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from engine.spark.checkpoint_layout import check_layout
from engine.spark.checkpoint_lock import take
from pipelines.contracts.settings import Settings, load
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding
from pipelines.doctor.jobs.checkpoints import layouts, locks
from pipelines.runtime import fingerprint


def begun(settings: Settings) -> Path:
    """Checkpoints of the extractor and the detector as a start with some settings leaves them."""
    folder = settings.folder("checkpoints")
    check_layout(folder, ["extractor", "detector"], settings.engine.shards, "engine.shards")
    fingerprint.check(settings, folder, ["extractor", "detector"])
    for job in ("extractor", "detector"):
        (folder / job / "metadata").write_text('{"id": "x"}')
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def found(settings: Settings) -> dict[str, Finding]:
    return {each.code: each for each in layouts(Context(settings))}


def test_the_checkpoints_of_a_pipeline_that_runs_are_no_finding(tmp_path: Path) -> None:
    """The sink's checkpoint has offsets and no shards."""
    sink = begun(load(state_dir=tmp_path)) / "sink"
    sink.mkdir()
    (sink / "metadata").write_text('{"id": "x"}')
    assert found(load(state_dir=tmp_path)) == {}


def test_a_checkpoint_of_another_window_length_or_number_of_shards_is_found_and_left_alone(tmp_path: Path) -> None:
    before = content(begun(load(state_dir=tmp_path)))
    assert found(load(state_dir=tmp_path)) == {}
    other = found(load(state_dir=tmp_path, **{"window.size": "30s", "engine.shards": 4}))
    assert other.keys() == {"SETTINGS_FIXED", "SHARDS_FIXED"}
    assert "window.size = 30s, but the state of extractor, detector was made with 10s" in other["SETTINGS_FIXED"].what
    assert "engine.shards = 4, but the checkpoint of extractor was made with 2" in other["SHARDS_FIXED"].what
    assert content(tmp_path) == before


def test_a_checkpoint_of_another_release_is_found(tmp_path: Path) -> None:
    folder = begun(load(state_dir=tmp_path))
    (folder / "detector" / "layout.json").write_text('{"shards": 2, "format": 1}')
    assert "of state format 1" in found(load(state_dir=tmp_path))["STATE_FORMAT"].what


ENDING = """
import sys
from pathlib import Path
from engine.spark.checkpoint_lock import take
held = take(Path(sys.argv[1]), "sink")
"""
FORKING = """
import os, sys
from pathlib import Path
from engine.spark.checkpoint_lock import take
held = take(Path(sys.argv[1]), "detector")
if child := os.fork():
    print(child, flush=True)
    os._exit(0)
os.close(1)
sys.stdin.readline()
"""


def test_a_lock_that_a_child_of_a_dead_process_still_has_is_found_with_the_child(settings: Settings) -> None:
    folder = settings.folder("checkpoints")
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdin and parent.stdout
    child = int(parent.stdout.readline())
    parent.wait(60)
    try:
        (finding,) = locks(Context(settings))
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdin.close()
    assert (finding.code, finding.where) == ("LOCKED_BY_DEAD_PROCESS", str(folder / "detector.lock"))
    assert f"process {parent.pid}, which has ended; process {child} still has it" in finding.what


def test_a_lock_of_a_living_process_or_one_that_was_released_is_no_finding(settings: Settings) -> None:
    folder = settings.folder("checkpoints")
    held = take(folder, "detector")
    assert held is not None
    assert locks(Context(settings)) == []
    held.close()
    subprocess.run([sys.executable, "-c", ENDING, str(folder)], check=True)
    assert (folder / "sink.lock").exists()
    assert locks(Context(settings)) == []
