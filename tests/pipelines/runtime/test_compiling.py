"""The models are compiled before the jobs start, once; a user who waits for it is told why."""

from __future__ import annotations

import os
import shutil
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


def test_what_was_compiled_is_loaded_where_it_lies_beside_the_same_models_in_another_folder(tmp_path: Path) -> None:
    # each executor of a cluster unpacks the packages into a folder of its own; it must not compile for a minute
    code = """
import models.kernels as kernels
kernels.within(3.0, 0.0, 1.0)
print(kernels.__file__, kernels.kept(), kernels.NAME, *kernels.within.stats.cache_hits.values())
"""
    here, there, cache = tmp_path / "here", tmp_path / "there", tmp_path / "cache"
    for folder in (here, there):
        for package in ("engine", "models"):
            mine = Path(__file__).parents[3] / package
            shutil.copytree(mine, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        # so that no place on this machine has what is compiled of it
        (folder / "models/of_this_test.py").write_text(f"# {tmp_path}\n")

    def run(folder: Path, **environment: str) -> list[str]:
        environment |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    file, kept, name, *loaded = run(here, NUMBA_CACHE_DIR=str(cache))
    assert (file, kept, loaded) == (str(here / "models/kernels.py"), str(cache), [])
    shutil.copytree(cache, there / name)
    file, kept, _, *loaded = run(there)
    assert (file, kept) == (str(there / "models/kernels.py"), str(there / name))
    assert loaded == ["1"]
