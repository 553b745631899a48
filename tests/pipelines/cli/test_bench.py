"""`newnormal bench` runs a benchmark in a process of its own and says it where there is no checkout."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from pipelines.cli import bench
from pipelines.cli.guard import guarded
from pipelines.cli.main import app
from tests.benchmarks.commands import app as benchmarks
from tests.pipelines.cli.conftest import Run


def test_a_benchmark_writes_its_figures_and_leaves_the_modules_of_this_process_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, out = list(sys.path), tmp_path / "figures.json"
    code = guarded(app, ["bench", "model", "--series", "20", "--seconds", "0.05", "--out", str(out)])
    assert code == 0
    assert json.loads(out.read_text()) == json.loads(capfd.readouterr().out)
    assert sys.path == path


def test_the_error_of_a_benchmark_is_the_error_of_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = guarded(app, ["bench", "vus", "--data", str(tmp_path), "--out", str(tmp_path / "out")])
    shown = capfd.readouterr().err
    assert code not in (0, None) and "Traceback" not in shown and str(tmp_path) in shown


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        ((), 2, "vus"),
        (("--help",), 0, "vus"),
        (("model", "--help"), 0, "Usage: newnormal bench model"),
        (("model", "--series", "many"), 2, "USAGE_INVALID"),
        (("nosuch",), 2, "USAGE_INVALID"),
        (("--series",), 2, "USAGE_INVALID"),
    ],
)
def test_help_and_wrong_command_lines_are_those_of_the_benchmarks(
    words: tuple[str, ...], code: int, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert guarded(app, ["bench", *words]) == code
    captured = capfd.readouterr()
    assert shown in captured.out + captured.err


def test_outside_of_a_checkout_there_is_no_benchmark(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_CHECKOUT", tmp_path)
    code, _, shown = run("bench", "model")
    assert code == 2 and shown.startswith("BENCH_ABSENT")


@pytest.mark.parametrize(
    "name", [command.name or command.callback.__name__ for command in benchmarks.registered_commands]
)  # type: ignore[union-attr]
def test_each_benchmark_has_what_it_imports(name: str) -> None:
    assert callable(importlib.import_module(f"tests.benchmarks.{name}").run)
