"""Runs a benchmark: ``python -m tests.benchmarks NAME OPTIONS``, which is what `newnormal bench` does."""

from __future__ import annotations

import sys

import typer

from pipelines.cli.guard import guarded
from tests.benchmarks.commands import app

if __name__ == "__main__":
    newnormal = typer.Typer()
    newnormal.add_typer(app, name="bench")
    sys.exit(guarded(newnormal, ["bench", *sys.argv[1:]]))
