"""Runs of pytest that take turns run each test once, and those with servers first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.all_at_once import NOTHING_SELECTED, ended
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
        file.write(f"{os.getpid()} {Path(__file__).stem} {name}\\n")

@pytest.mark.parametrize("n", [1, 2])
def test_without(once, n):
    time.sleep(0.1)
    done(n)

@pytest.mark.servers
def test_with_servers():
    time.sleep(0.1)
    done("servers")

@pytest.mark.slow
def test_that_is_slow():
    done("slow")

def test_that_fails(once):
    done("fails")
    assert '_3_' not in Path(__file__).stem
"""


def at_once(folder: Path) -> subprocess.CompletedProcess[str]:
    """``make test``, of the tests in a folder."""
    command = [sys.executable, "-m", "tests.all_at_once"]
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_each_file_is_taken_once_and_torn_down_before_the_next_and_those_with_servers_begin(tmp_path: Path) -> None:
    names = [f"test_{n}" for n in range(6)]
    for place in (tmp_path, tmp_path / "below", tmp_path / "beside"):
        place.mkdir(exist_ok=True)
        for name in names[:: 2 if place != tmp_path else 1]:
            (place / f"{name}_{place.name[:3]}.py").write_text(FILE)
    marks = "markers =\n  servers\n  slow"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = --import-mode=importlib -q\n{marks}\n")
    said = at_once(tmp_path)
    lines = [line.split() for line in (tmp_path / "done").read_text().splitlines()]
    files = {line[1] for line in lines}
    assert len(files) == 12
    assert Counter((file, what) for _, file, what in lines) == Counter(
        (file, what) for file in files for what in ("1", "2", "fails", "end", "servers")
    ), said
    runs = {run: [what for each, _, what in lines if each == run] for run, _, _ in lines}
    assert len(runs) > 1, "no run does all the work"
    for done in runs.values():
        first = [place for place, what in enumerate(done) if what == "servers"]
        assert first == list(range(len(first)))
    assert said.returncode == 1, "a test that fails fails its run"
    assert "test_3_" in said.stdout


def test_runs_of_which_one_has_tests_end_as_it_does_and_with_none_at_all_that_is_told() -> None:
    assert ended([NOTHING_SELECTED, 0, NOTHING_SELECTED]) == 0
    assert ended([0, NOTHING_SELECTED, 1]) == 1
    assert ended([-9, 0, 0]) == -9, "a run that was killed"
    assert ended([NOTHING_SELECTED] * 3) == NOTHING_SELECTED, "a misspelt -k is noticed"


def test_the_tests_of_a_file_that_stand_apart_are_run_by_the_run_that_took_it(tmp_path: Path) -> None:
    """So they stand with --ff, which puts those first that failed last."""

    def item(path: str) -> Any:
        return SimpleNamespace(path=path, get_closest_marker=lambda _: None)

    items = cast(list[Any], [item(path) for path in ("a", "b", "a", "c", "b")])
    assert list(taken(items, tmp_path)) == items
    assert list(taken(items, tmp_path)) == [], "another run finds all of them taken"
