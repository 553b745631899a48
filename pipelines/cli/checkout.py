"""`newnormal bench` and `newnormal chaos`: they run what only a checkout has, below tests/."""

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
    _run("bench", Path("tests", "benchmarks"), context.args)


def chaos(context: typer.Context) -> None:
    """Kill, stop and starve a pipeline under load, and count what is lost, doubled or different.

    The disturbances are part of a checkout only. [bold]newnormal chaos --help[/bold] lists the options there.
    """
    _run("chaos", Path("tests", "chaos", "runs"), context.args)


def _run(command: str, folder: Path, words: list[str]) -> None:
    """Runs the package in ``folder`` in a process of its own, and ends as it ends."""
    if not (_CHECKOUT / folder / "__main__.py").exists():
        raise NewnormalError("CHECKOUT_ABSENT", f"{_CHECKOUT} has no {folder}", f"newnormal {command}", "a checkout")
    path = os.pathsep.join(filter(None, [str(_CHECKOUT), os.environ.get("PYTHONPATH")]))
    line = [sys.executable, "-m", ".".join(folder.parts), *words]
    with subprocess.Popen(line, env=os.environ | {"PYTHONPATH": path}) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:  # Ctrl-C has reached the other process too
            code = process.wait()
    if code:
        raise typer.Exit(code)
