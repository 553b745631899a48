"""The Python that a local Spark starts takes PySpark from the installed package, where its modules are compiled."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine.spark.interpreter import local_interpreter


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """A folder of Spark whose two archives hold a module each."""
    folder = tmp_path / "spark's home" / "python" / "lib"
    folder.mkdir(parents=True)
    for archive, module in (("pyspark.zip", "in_zip"), ("py4j-src.zip", "in_py4j")):
        with zipfile.ZipFile(folder / archive, "w") as file:
            file.writestr(f"{module}.py", "")
    return tmp_path / "spark's home"


def test_it_leaves_out_the_archive_of_pyspark_alone(spark_home: Path, tmp_path: Path) -> None:
    lib = spark_home / "python" / "lib"
    path = f"{lib}/pyspark.zip:{lib}/py4j-src.zip:{tmp_path}"
    asked = "import sys, in_py4j, importlib.util as found; print(found.find_spec('in_zip'), *sys.argv[1:])"
    environment = {"SPARK_HOME": str(spark_home), "PYTHONPATH": path}
    for program, first in ((sys.executable, "ModuleSpec"), (local_interpreter(tmp_path), "None one 'two  three'")):
        command = [program, "-c", asked, "one", "'two  three'"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(first)


def test_where_nothing_may_be_executed_it_is_the_python_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # what the kernel says of a file system without exec
    assert local_interpreter(tmp_path) == sys.executable
