"""Checks of checkpoints at a start: no other process uses them, and they fit the jobs, as in `newnormal run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import Count, Instant, Job, Record, Stream, Tumbling, run
from engine.spark.checkpoint_layout import check_layout
from engine.spark.checkpoint_lock import taken
from engine.spec.errors import NewnormalError
from pipelines.runtime.ownership import Ownership

NOWHERE = "127.0.0.1:1"
"""No broker is there: a start that asks for one has not been refused before."""
HOLDER = """
import sys, time
from pathlib import Path
from engine.spark.checkpoint_lock import taken
with taken(Path(sys.argv[1]), ["counts"]):
    print("holds", flush=True)
    time.sleep(600)
"""


class Word(Record):
    time: Instant
    word: str


def counting(window: str = "10s", name: str = "counts") -> Job:
    words = Stream.read_json("words", Word, time="time").key_by("word")
    return words.window(Tumbling(window)).aggregate(n=Count()).write(name)


def begun(state: Path, shards: int = 2) -> Path:
    """A state directory whose job has run: what `run` keeps there, and what Spark does."""
    checkpoints = state / "checkpoints" / "default"
    with pytest.raises(NewnormalError, match="KAFKA_UNREACHABLE"):
        start(state, shards=shards)
    (checkpoints / "counts" / "metadata").write_text(json.dumps({"id": "one"}))
    return checkpoints


def start(state: Path, job: Job | None = None, shards: int = 2) -> None:
    run(job or counting(), kafka=NOWHERE, state=state, shards=shards)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that is not refused is over at once: there is no broker to be waited for."""

    def unreachable(*_: object) -> None:
        raise NewnormalError("KAFKA_UNREACHABLE", "nobody is asked here", NOWHERE)

    monkeypatch.setattr("engine.spark.run.make_topics", unreachable)


def test_a_second_run_on_one_checkpoint_is_refused_with_the_process_that_has_it(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints" / "default"
    command = [sys.executable, "-c", HOLDER, str(checkpoints)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "holds\n"
            with pytest.raises(NewnormalError) as refused:
                start(tmp_path)
            assert (refused.value.code, refused.value.what) == (
                "ALREADY_RUNNING",
                f"counts runs in process {other.pid}",
            )
            with pytest.raises(NewnormalError, match="KAFKA_UNREACHABLE"):
                start(tmp_path, counting(name="others"))
        finally:
            other.kill()
    with pytest.raises(NewnormalError, match="KAFKA_UNREACHABLE"):
        start(tmp_path)


def test_a_run_keeps_its_checkpoint_from_a_second_one_of_the_same_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = []

    def again(*_: object) -> None:
        with pytest.raises(NewnormalError) as refused:
            start(tmp_path)
        codes.append(refused.value.code)
        raise NewnormalError("KAFKA_UNREACHABLE", "the first one ends", NOWHERE)

    monkeypatch.setattr("engine.spark.run.make_topics", again)
    with pytest.raises(NewnormalError, match="the first one ends"):
        start(tmp_path)
    assert codes == ["ALREADY_RUNNING"]


def test_newnormal_run_does_not_start_a_job_that_engine_run_has(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints" / "default"
    with taken(checkpoints, ["counts"]), pytest.raises(NewnormalError, match="ALREADY_RUNNING") as refused:
        Ownership(NOWHERE, "", "ledger", checkpoints, ["counts"], take_over=False).__enter__()
    assert refused.value.what == f"counts runs in process {os.getpid()}"


def test_another_number_of_shards_than_that_of_the_checkpoint_is_refused_and_the_old_one_still_starts(
    tmp_path: Path,
) -> None:
    begun(tmp_path, shards=3)
    for _ in range(2):
        with pytest.raises(NewnormalError) as refused:
            start(tmp_path, shards=4)
        assert refused.value.code == "SHARDS_FIXED"
        assert refused.value.what == "shards = 4, but the checkpoint of counts was made with 3"
        assert refused.value.accepted.startswith("3; ")
        assert "`newnormal savepoint restore rescale --shards 4`" in refused.value.accepted
    with pytest.raises(NewnormalError, match="KAFKA_UNREACHABLE"):
        start(tmp_path, shards=3)
    with pytest.raises(NewnormalError, match="KAFKA_UNREACHABLE"):
        start(tmp_path, counting(name="others"), shards=4)


def test_a_job_that_never_ran_may_have_another_number_of_shards(tmp_path: Path) -> None:
    for shards in (2, 4):
        with pytest.raises(NewnormalError, match="KAFKA_UNREACHABLE"):
            start(tmp_path, shards=shards)


def test_other_windows_than_those_of_the_state_are_refused_by_engine_run_too(tmp_path: Path) -> None:
    begun(tmp_path)
    with pytest.raises(NewnormalError, match="JOB_CHANGED") as refused:
        start(tmp_path, counting("20s"))
    assert "20s" in refused.value.what


def test_the_state_of_another_version_is_refused(tmp_path: Path) -> None:
    layout = begun(tmp_path) / "counts" / "layout.json"
    layout.write_text(json.dumps({"shards": 2, "format": 1}))
    with pytest.raises(NewnormalError, match="STATE_FORMAT") as refused:
        start(tmp_path)
    assert "of state format 1" in refused.value.what
    layout.unlink()
    with pytest.raises(NewnormalError, match="STATE_FORMAT") as refused:
        start(tmp_path)
    assert "of an older version" in refused.value.what


def test_the_driver_s_setting_is_named_in_the_driver_s_error(tmp_path: Path) -> None:
    checkpoints = begun(tmp_path)
    with pytest.raises(NewnormalError, match=r"engine\.shards = 5, but"):
        check_layout(checkpoints, ["counts"], 5, "engine.shards")
