"""Spark's Python workers find the modules that the process finds which starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.spark.module_path import share_module_path


def test_a_process_that_is_started_later_finds_the_modules_of_a_folder_that_was_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "jobs", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "a_file_of_jobs.py").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # so that it is put back after the test
    share_module_path(folder)
    share_module_path(folder)
    assert sys.path.count(str(folder)) == 1
    subprocess.run([sys.executable, "-c", "import a_file_of_jobs, engine"], cwd=elsewhere, check=True)
