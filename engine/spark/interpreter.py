"""The Python interpreter that a local Spark starts."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

_SCRIPT = """#!/bin/sh
PYTHONPATH="${{PYTHONPATH#"$SPARK_HOME/python/lib/pyspark.zip:"}}"
export PYTHONPATH
exec {python} "$@"
"""


def local_interpreter(folder: Path) -> str:
    """Writes a program that starts this process's Python as Spark does, but with the installed PySpark.

    Spark puts its own ``pyspark.zip`` first on the module path of each Python that it starts. The sources in it are
    compiled anew by each process, which takes half a second of CPU time; those of the installed package are compiled
    already. Spark starts such a process for each stateful query, to ask the operator for its state.

    Args:
        folder: Where the program is put.

    Returns:
        The path of that program; where nothing may be executed in the folder, that of this process's Python.
    """
    program, written = folder / "python", folder / f"python.{os.getpid()}"
    written.write_text(_SCRIPT.format(python=shlex.quote(sys.executable)))
    written.chmod(0o755)
    written.replace(program)  # another process with the same folder may be starting it
    return str(program) if os.access(program, os.X_OK) else sys.executable
