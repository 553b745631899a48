"""The models are compiled before the jobs start, once; a user who waits for it is told why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SAID = "compiling the models"


def test_what_has_to_be_compiled_is_said_the_first_time_only(tmp_path: Path) -> None:
    # the formulas then stay Python, which takes no minute; what is kept, and said, is the same
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "NUMBA_DISABLE_JIT": "1"}
    code = "from pipelines.runtime.compiling import compile_once; compile_once(); compile_once()"

    def said() -> int:
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return (run.stdout + run.stderr).count(SAID)

    assert (said(), said()) == (1, 0)
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "elsewhere")
    assert said() == 1
