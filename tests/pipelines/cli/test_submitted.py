"""The file for spark-submit runs as a file, not as a module, and is then the command `newnormal`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_file_for_spark_submit_is_the_command(tmp_path: Path) -> None:
    file = ROOT / "pipelines/cli/submit/newnormal_main.py"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NEWNORMAL_SPARK__MASTER": "local[2]"}
    # `services` imports the package dashboards, which has the name of a command's file
    done = subprocess.run(
        [sys.executable, str(file), "services", "status"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "SETTING_INVALID: spark.master = 'local[2]'" in done.stderr
