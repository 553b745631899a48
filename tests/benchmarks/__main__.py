"""Runs one benchmark for `newnormal bench`: arguments: name, file for its figures; its options come on stdin."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.guard import guarded

app = typer.Typer()


@app.command()
def bench(name: str, report: Annotated[Path | None, typer.Argument()] = None) -> None:
    """Runs `tests.benchmarks.NAME.run`, and prints and writes the figures of those that have no output of their own."""
    figures = importlib.import_module(f"tests.benchmarks.{name}").run(*pickle.loads(sys.stdin.buffer.read()))
    if name not in ("nab", "vus", "kinds", "told", "causes", "ablation"):
        text = json.dumps(figures, indent=2)
        if report:
            report.write_text(text + "\n", encoding="utf-8")
        typer.echo(text)


if __name__ == "__main__":
    sys.exit(guarded(app))
