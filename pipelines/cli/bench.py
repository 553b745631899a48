"""`newnormal bench`: speed and accuracy, measured from a checkout (tests/benchmarks)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import typer

from engine.spec.errors import NewnormalError

_CHECKOUT = Path(__file__).parents[2]


def bench(context: typer.Context) -> None:
    """Measure speed and accuracy; docs/benchmarks.md holds earlier figures.

    The benchmarks are part of a checkout only. [bold]newnormal bench --help[/bold] lists them there.
    """
    if not (_CHECKOUT / "tests" / "benchmarks" / "__main__.py").exists():
        what = f"the benchmarks are not in {_CHECKOUT}"
        raise NewnormalError("BENCH_ABSENT", what, "newnormal bench", "a checkout")
    path = os.pathsep.join(filter(None, [str(_CHECKOUT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "tests.benchmarks", *context.args]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:  # Ctrl-C has reached the benchmark too
            code = process.wait()
    if code:
        raise typer.Exit(code)
