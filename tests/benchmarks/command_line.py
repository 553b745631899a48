"""What the commands of all benchmarks share: how one is run, and options."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Annotated

import typer

from deploy.embedded.external import check_kafka
from engine.spec.errors import NewnormalError
from pipelines.cli.output_files import file_to_write, folder_to_write
from pipelines.contracts.settings import load

app = typer.Typer(help="Measure speed and accuracy; docs/benchmarks.md holds earlier figures.", no_args_is_help=True)
_WITH_OUTPUT_OF_THEIR_OWN = ("nab", "vus", "kinds", "told", "causes", "ablation")


def folder_to_read(path: Path | None) -> Path | None:
    """Checks that a folder of recorded data is there, before a process is started for it.

    Raises:
        NewnormalError: ``FILE_UNUSABLE``.
    """
    if path is not None and not path.is_dir():
        raise NewnormalError("FILE_UNUSABLE", f"{path} is no folder", "option --data", "a folder with the data sets")
    return path


Report = Annotated[Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")]


Data = Annotated[
    Path, typer.Option(callback=folder_to_read, help="Folder of the data sets: nab/, cloud_monitoring/, asd/.")
]
Out = Annotated[
    Path, typer.Option(callback=folder_to_write, help="Folder for results: figures as JSON, plots, scores.")
]


def answering(kafka: str | None, state_dir: Path | None) -> str | None:
    """Checks that the broker of the command line or of the settings answers, if one is named; returns ``kafka``.

    Raises:
        NewnormalError: ``SETTING_INVALID``, or ``KAFKA_UNREACHABLE`` if the broker does not answer.
    """
    bootstrap = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir}).kafka.bootstrap
    if bootstrap:
        check_kafka(bootstrap)
    return kafka


def run_benchmark(name: str, report: Path | None, *arguments: object) -> None:
    """Runs a benchmark; prints and writes the figures of those that have no output of their own.

    Args:
        name: Name of the benchmark's module.
        report: File to which its figures are written.
        arguments: Arguments of its function ``run``.
    """
    figures = importlib.import_module(f"tests.benchmarks.{name}").run(*arguments)
    if name not in _WITH_OUTPUT_OF_THEIR_OWN:
        text = json.dumps(figures, indent=2)
        if report:
            report.write_text(text + "\n", encoding="utf-8")
        typer.echo(text)
