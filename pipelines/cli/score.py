"""`newnormal score`: scores recorded files with the production detector."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from engine.printing import cell, visible_lines
from pipelines.cli.csv_options import ReadingOptions, reads_files
from pipelines.cli.output_files import file_to_write
from pipelines.contracts import settings
from pipelines.evaluation import show

PARTLY = 3
"""Exit code if verdicts were written, but something in the files could not be used."""


@reads_files
def score(
    how: ReadingOptions,
    files: Annotated[
        list[Path], typer.Argument(help="CSV files, or folders of them, with a column of times and columns of values")
    ],
    out: Annotated[Path, typer.Option(callback=file_to_write, help="CSV to write the verdicts to")],
    threshold: Annotated[float | None, typer.Option(help="record_score from which a value is an anomaly")] = None,
) -> None:
    """Score recorded files with the production detector, strictly online: later values do not influence a verdict.

    Each file is a machine, unless a column names machines. The detector learns by the hour of day in the time zone
    --timezone. Exit code 0 if everything was used, 3 if lines or files were skipped, 2 if nothing was written.

    For example:

      newnormal score cpu.csv --out verdicts.csv

      newnormal score export/ --time-column Zeit --decimal , --timezone Europe/Berlin --out verdicts.csv
    """
    gc.set_threshold(50_000)  # a start makes 300,000 objects, and nearly all of them stay
    overrides = {"detector.threshold": threshold, "detector.timezone": how.timezone}
    from pipelines.evaluation.score import score_files, write_csv  # it loads the models

    with show.bar("scoring", "values") as progress:
        verdicts, reports = score_files(files, settings.load(**overrides).detector, how.reading, progress)
    write_csv(verdicts, out)
    console = Console(stderr=True, soft_wrap=True)
    for report in reports:
        console.print(visible_lines(str(report)), markup=False, highlight=False)
    console.print(_table(verdicts))
    console.print(cell(f"{verdicts.height} verdicts written to {out}"))
    if not all(report.whole for report in reports):
        raise typer.Exit(PARTLY)


def _table(verdicts: pl.DataFrame) -> Table:
    table = Table("machine", "metric", "values", "anomalies", "highest score", "at", title="Verdicts")
    for (entity, metric), own in verdicts.group_by("entity", "metric", maintain_order=True):
        highest = own.sort("record_score", descending=True, nulls_last=True).row(0, named=True)
        when = pl.Series([highest["time"]]).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S")[0]
        counts = own["actual"].count(), (own["kind"] == "anomaly").sum(), f"{highest['record_score']:.1f}"
        table.add_row(*map(cell, (entity, metric, *counts, when)))
    return table
