"""What is kept unpacked is what was put, or nothing: also if its holder is killed while it changes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from engine.state import kept_arrays
from engine.state.kept_arrays import KeptArrays
from engine.state.segments import DictSegments, ShardState

KINDS = {"changed": np.dtype(np.int64), "replaced": np.dtype(np.int64)}
KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np, polars as pl
from engine.state import kept_arrays
from engine.state.kept_arrays import KeptArrays

kept_arrays._SPARE = 0.0
KINDS = {"changed": np.dtype(np.int64), "replaced": np.dtype(np.int64)}

def change(folder, last):
    first = KeptArrays(folder)
    first.put("v1", dict.fromkeys(KINDS, np.zeros(1000, np.int64)), {"keys": pl.DataFrame({"key": [0] * 1000})})
    first.close()
    steps = 0

    def step(event, _):
        nonlocal steps
        if event in ("open", "os.rename", "os.remove", "half"):
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(step)
    kept = KeptArrays(folder)
    changed = kept.take("v1", KINDS)["changed"]
    changed[:500] = 2
    sys.audit("half")
    changed[500:] = 2
    kept.put("v2", {"changed": changed, "replaced": np.full(1000, 2)}, {"keys": pl.DataFrame({"key": [2] * 1000})})
    kept.close()
    os._exit(0)

for last in range(1, 100):
    folder = Path(sys.argv[1], str(last))
    worker = os.fork()
    if not worker:
        change(folder, last)
    _, status = os.waitpid(worker, 0)
    print(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)
    if not status:
        break
"""
"""Kills a process at the first of its steps, another one at the second, and so on until one lives to its end."""


@pytest.fixture(autouse=True)
def _space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_arrays, "_SPARE", 0.0)  # the disk of this machine may be nearly full


def test_what_a_killed_process_has_changed_in_part_is_never_taken_for_a_version(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    assert not done.returncode, done.stderr
    *killed, last = [int(code) for code in done.stdout.split()]
    assert set(killed) == {-signal.SIGKILL}
    assert last == 0
    versions = []
    for number in range(1, len(killed) + 2):
        kept = KeptArrays(tmp_path / str(number))  # the lock ended with its holder
        mark = kept.folder / "version"
        version = mark.read_text() if mark.exists() else ""
        versions.append(version)
        if version:
            arrays, expected = kept.take(version, KINDS), {"v1": 0, "v2": 2}[version]
            assert arrays is not None
            values = [*arrays.values(), kept.frame("keys")["key"].to_numpy()]
            assert all((array == expected).all() and len(array) == 1000 for array in values), (number, version)
        for wrong in {"v1", "v2"} - {version}:
            assert kept.take(wrong, KINDS) is None
        kept.close()
    assert versions[-1] == "v2"
    assert versions == sorted(versions, key=["v1", "", "v2"].index)
    assert versions.count("") >= 5, "it was not killed in the middle, so this test shows little"


def _kept(state: ShardState) -> KeptArrays:
    assert state.kept is not None
    return KeptArrays(state.kept)


def test_each_scope_of_a_state_keeps_its_own(tmp_path: Path) -> None:
    """Only the folder of the job is there, as that of a shard is made by whoever keeps something first."""
    whole, contents = ShardState(DictSegments(tmp_path / "3")), []
    states = [whole.scope("0"), whole.scope("1"), whole]
    for number, state in enumerate(states):
        kept = _kept(state)
        kept.put("v", {"x": np.array([number])}, {})
        kept.close()
    for state in states:
        kept = _kept(state)
        arrays = kept.take("v", {"x": np.dtype(np.int64)})
        assert arrays is not None
        contents.append(arrays["x"].tolist())
        kept.close()
    assert contents == [[0], [1], [2]]
    assert ShardState(DictSegments()).scope("0").kept is None


def test_a_frame_that_was_read_stays_as_it_is_when_another_is_put(tmp_path: Path) -> None:
    first = KeptArrays(tmp_path / "shard")
    first.put("v1", {}, {"keys": pl.DataFrame({"key": ["a", "b"]})})
    assert first.take("v1", {}) == {}
    frame = first.frame("keys")
    first.put("v2", {}, {"keys": pl.DataFrame({"key": ["c"]})})
    assert frame["key"].to_list() == ["a", "b"]
    assert first.take("v2", {}) == {}
    assert first.frame("keys")["key"].to_list() == ["c"]
    first.close()
