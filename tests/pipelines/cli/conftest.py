"""Commands as a user runs them, in this process: exit code, output, errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings file of this directory; a narrow terminal; a state directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEWNORMAL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `newnormal` with arguments; returns exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["newnormal", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.main()
        shown = capsys.readouterr()
        code = ended.value.code
        return code if isinstance(code, int) else 0, shown.out, shown.err

    return run
