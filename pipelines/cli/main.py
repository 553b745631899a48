"""The `newnormal` command: names its subcommands, and is the entry point of the program."""

from __future__ import annotations

import signal
import sys
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from engine.spark import hadoop_path
from pipelines.cli import log_output
from pipelines.cli.commands import SECTIONS
from pipelines.cli.guard import guarded
from pipelines.cli.lazy import lazy_group

app = typer.Typer(
    name="newnormal",
    cls=lazy_group(SECTIONS),
    help="Streaming novelty detection for machine telemetry: anomalies and new normals, seconds later.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@app.callback()
def newnormal(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda asked: _version() if asked else None, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Streaming novelty detection for machine telemetry: anomalies and new normals, seconds later."""


def _version() -> NoReturn:
    typer.echo(f"newnormal {metadata.version('newnormal')}")
    raise typer.Exit


def main() -> NoReturn:
    """Entry point of the console script."""
    log_output.configure()
    hadoop_path.connect(_store_jars)
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(guarded(app))


def _store_jars(place: str) -> list[Path]:
    from deploy.artifacts import store_jars  # few commands need it

    return store_jars(place)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
