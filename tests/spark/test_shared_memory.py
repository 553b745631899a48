"""Copies of state in shared memory are read, and never change a result: old and lost ones are not used."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from engine.spark import shared_memory
from engine.spark.shared_memory import SharedMemory, folder_of
from engine.state.segments import LARGE
from engine.testing import TestStream
from engine.windows import Session
from tests.engine.panes import event, job
from tests.spark.one_batch import one_batch

T0 = 1_700_000_000_000
KEYS = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(4_000)]
"""So many that the open sessions of a shard are a large segment, which each micro-batch reads and writes."""
BATCHES = 4
STREAM = TestStream(T0)
for number in range(BATCHES):
    STREAM = STREAM.add(*(event(key, T0 + 1000 * number + 1, float(2**number)) for key in KEYS))
STREAM = STREAM.advance_watermark("30s")


def _kept(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.stat().st_size > LARGE]


@pytest.mark.spark
@pytest.mark.parametrize("fate", ["kept", "of the batch before", "lost"])
def test_results_do_not_depend_on_the_copies(spark: SparkSession, tmp_path: Path, fate: str) -> None:
    counted = job(Session("10s"))
    folder = folder_of(counted.name)
    assert folder is not None
    batches = tmp_path / "batches"
    batches.mkdir()
    shutil.rmtree(folder)
    folder.mkdir()
    rows, seen = [], 0
    for batch in STREAM.batches:
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        rows += one_batch(spark, counted, batches, batch, tmp_path / "checkpoint", begun=False)
        seen += len(_kept(folder))
        if fate == "of the batch before":
            for name, content in before.items():
                (folder / name).write_bytes(content)
        elif fate == "lost":
            shutil.rmtree(folder)
            folder.mkdir()
    assert seen, "there were no copies, so this test shows nothing"
    assert {row["key"]: row["sum"] for row in rows} == dict.fromkeys(KEYS, float(2**BATCHES - 1))
    assert len(rows) == len(KEYS)


@pytest.mark.spark
def test_the_copy_is_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    counted = job(Session("10s"))
    folder = folder_of(counted.name)
    assert folder is not None
    batches = tmp_path / "batches"
    batches.mkdir()
    for batch in STREAM.batches[:-1]:
        one_batch(spark, counted, batches, batch, tmp_path / "checkpoint", begun=False)
    for file in _kept(folder):
        digest = file.read_bytes()[:64]
        file.write_bytes(digest + b"not a table")
    try:
        with pytest.raises(StreamingQueryException):
            one_batch(spark, counted, batches, STREAM.batches[-1], tmp_path / "checkpoint", begun=False)
    finally:
        shutil.rmtree(folder)


def test_an_older_copy_is_not_handed_out_and_not_left_behind_where_there_is_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "_SPARE", 0.0)  # the disk of this machine may be nearly full
    memory = SharedMemory(tmp_path, 3)
    memory.put("slices/1", b"one", "digest of one")
    assert memory.get("slices/1", "digest of one") == b"one"
    assert SharedMemory(tmp_path, 4).get("slices/1", "digest of one") is None
    monkeypatch.setattr(shared_memory, "_SPARE", 1.0)
    memory.put("slices/1", b"two", "digest of two")
    assert memory.get("slices/1", "digest of two") is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_the_rest_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "_MEMORY", tmp_path)
    monkeypatch.setattr(shared_memory, "_root", cache(shared_memory._root.__wrapped__))
    dead = next(pid for pid in range(2**22, 0, -1) if not Path(f"/proc/{pid}").exists())
    killed, alive, other = f"newnormal-{dead}-a", f"newnormal-{os.getppid()}-b", "newnormal-c"
    locked, left = f"newnormal-{dead}-d", f"newnormal-{os.getppid()}-e"
    for name in (killed, alive, other, locked, left):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"copy")
    (tmp_path / left / ".lock").touch()
    with (tmp_path / locked / ".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        made = folder_of("extractor")
    assert made is not None
    assert made.parent.name.startswith(f"newnormal-{os.getpid()}-")
    assert made.parent.stat().st_mode & 0o777 == 0o700
    there = {entry.name for entry in tmp_path.iterdir()}
    assert there == {alive, other, locked, made.parent.name}, "a locked one is of a container with processes of its own"
    sweep = "from engine.spark import shared_memory as m; from pathlib import Path; m._MEMORY = Path({!r}); m._sweep()"
    subprocess.run([sys.executable, "-c", sweep.format(str(tmp_path))], check=True)
    assert made.exists(), "this process lives"
