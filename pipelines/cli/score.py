"""`newnormal score`: the production detector over a recorded file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from datagen.series import SeriesReport
from engine.errors import NewnormalError
from pipelines import settings
from pipelines.score import score_file, write_csv

app = typer.Typer()


@app.command()
def score(
    file: Annotated[Path, typer.Argument(help="CSV with a time column and one or more columns of values")],
    out: Annotated[Path, typer.Option(help="CSV to write the verdicts to")],
    threshold: Annotated[float | None, typer.Option(help="record_score from which a value is an anomaly")] = None,
    timezone: Annotated[str | None, typer.Option(help="IANA name of the time zone of the hours of the day")] = None,
) -> None:
    """Score a recorded file with the production detector, strictly online: no value is judged by later ones."""
    overrides = {"detector.threshold": threshold, "detector.timezone": timezone}
    verdicts, report = score_file(file, settings.load(**overrides).detector)
    try:
        write_csv(verdicts, out)
    except OSError as error:
        accepted = "a file in a directory that exists and may be written to"
        raise NewnormalError("OUTPUT_NOT_WRITABLE", str(error), "--out", accepted, "nothing was written") from None
    console = Console(stderr=True)
    console.print(_input_table(report))
    console.print(_verdict_table(verdicts))
    console.print(f"{verdicts.height} verdicts written to {out}")


def _input_table(report: SeriesReport) -> Table:
    table = Table("what", "count", title=f"Input {report.path}")
    counts = {
        "rows": report.rows,
        "rows skipped: no time": report.bad_times,
        "values missing: a row without a score": report.missing,
        "rows out of order: sorted": report.unsorted,
        "duplicate times: judged in the order of the file": report.duplicates,
        "irregular steps": report.irregular,
        "usual step, seconds": f"{report.step_ms / 1000:g}",
    }
    for what, count in counts.items():
        table.add_row(what, str(count))
    return table


def _verdict_table(verdicts: pl.DataFrame) -> Table:
    table = Table("metric", "values", "anomalies", "highest score", "at", title="Verdicts")
    for (metric,), own in verdicts.group_by("metric", maintain_order=True):
        highest = own.sort("record_score", descending=True).row(0, named=True)
        when = pl.Series([highest["time"]]).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S")[0]
        anomalies = int((own["kind"] == "anomaly").sum())
        table.add_row(str(metric), str(own.height), str(anomalies), f"{highest['record_score']:.1f}", when)
    return table
