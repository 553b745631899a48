"""Two runs of pytest that take turns run each test once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.taking_turns import taken

FILE = """
import os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def once():
    yield 1
    done("end")

def done(name):
    with open("done", "a") as file:
        file.write(f"{os.environ['RUN']} {Path(__file__).stem} {name}\\n")

@pytest.mark.parametrize("n", [1, 2])
def test_without(once, n):
    time.sleep(0.1)
    done(n)

def test_that_fails(once):
    done("fails")
    assert '_3_' not in Path(__file__).stem
"""


def test_two_runs_take_each_file_once_and_tear_it_down_before_the_next(tmp_path: Path) -> None:
    names = [f"test_{n}" for n in range(6)]
    for place in (tmp_path, tmp_path / "below", tmp_path / "beside"):
        place.mkdir(exist_ok=True)
        for name in names[:: 2 if place != tmp_path else 1]:
            (place / f"{name}_{place.name[:3]}.py").write_text(FILE)
    (tmp_path / "taken").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.taking_turns", "--taken=taken"]
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    runs = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "RUN": run},
            stdout=subprocess.PIPE,
            text=True,
        )
        for run in ("first", "second")
    ]
    said = [run.communicate(timeout=60)[0] for run in runs]
    lines = [line.split() for line in (tmp_path / "done").read_text().splitlines()]
    files = {line[1] for line in lines}
    assert len(files) == 12
    assert Counter((file, what) for _, file, what in lines) == Counter(
        (file, what) for file in files for what in ("1", "2", "fails", "end")
    ), said
    assert {run for run, _, _ in lines} == {"first", "second"}, "neither does all the work"
    assert sorted(run.returncode for run in runs) in ([0, 1], [1, 1]), "a test that fails fails its run"


def test_the_tests_of_a_file_that_stand_apart_are_run_by_the_run_that_took_it(tmp_path: Path) -> None:
    """So they stand with --ff, which puts those first that failed last."""
    items = cast(list[Any], [SimpleNamespace(path=path) for path in ("a", "b", "a", "c", "b")])
    assert list(taken(items, tmp_path)) == items
    assert list(taken(items, tmp_path)) == [], "another run finds all of them taken"
