"""`newnormal bench` and `newnormal chaos` run what a checkout has in a process of its own, or say that it is absent."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from pipelines.cli import checkout
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


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (("--help",), 0, "Usage: newnormal chaos"),
        (("--minutes", "many"), 2, "USAGE_INVALID"),
        (("--out", "/dev/null"), 2, "/dev/null"),
        (("more",), 2, "USAGE_INVALID"),
    ],
)
def test_help_and_wrong_command_lines_are_those_of_chaos_runs(
    words: tuple[str, ...], code: int, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert guarded(app, ["chaos", *words]) == code
    captured = capfd.readouterr()
    assert shown in captured.out + captured.err


@pytest.mark.parametrize("command", ["bench", "chaos"])
def test_outside_of_a_checkout_there_is_neither(
    command: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "_CHECKOUT", tmp_path)
    code, _, shown = run(command, "--help")
    assert code == 2 and shown.startswith("CHECKOUT_ABSENT")


@pytest.mark.parametrize(
    "name", [command.name or command.callback.__name__ for command in benchmarks.registered_commands]
)  # type: ignore[union-attr]
def test_each_benchmark_has_what_it_imports(name: str) -> None:
    assert callable(importlib.import_module(f"tests.benchmarks.{name}").run)
