"""`newnormal label`: operators say what a novelty was. `pipelines.query.control_topics` does the work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from pipelines.cli import rows
from pipelines.cli.options import AsJson, Overrides, with_kafka
from pipelines.cli.output_files import file_to_write
from pipelines.cli.seen import LABEL, warn_if_unseen
from pipelines.contracts.records import Label
from pipelines.contracts.records.label import LabelVerdict
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import load
from pipelines.query.control_topics import checked, instant, labels, save, write

app = typer.Typer(
    help="Say what a novelty was. The detector uses the label at once; `newnormal evaluate` uses it later.",
    no_args_is_help=True,
)

_WHEN = "ISO 8601, 'now', or a time from now such as -10m"


@app.command()
@with_kafka
def add(
    overrides: Overrides,
    verdict: Annotated[str, typer.Argument(help=f"What the novelty was: {', '.join(get_args(LabelVerdict))}.")],
    entity: Annotated[str, typer.Argument(help="The machine.")],
    metric: Annotated[str, typer.Argument(help="The metric; _machine is the machine as a whole.")] = JOINED,
    start: Annotated[str, typer.Option("--from", help=f"First instant of the novelty: {_WHEN}.")] = "now",
    end: Annotated[str | None, typer.Option("--until", help=f"Last instant of the novelty: {_WHEN}.")] = None,
    note: Annotated[str, typer.Option(help="A remark of yours.")] = "",
    at: Annotated[str, typer.Option(help=f"Event time from which on the label takes effect: {_WHEN}.")] = "now",
) -> None:
    """Say what a novelty was.

    [bold]false_alarm[/bold]: from now on, evidence of that series counts less; [bold]true[/bold]: it counts more.

    [bold]expected_change[/bold], [bold]new_normal[/bold]: the present level is typical from now on, and the incident is
    closed; with the metric _machine this applies to all metrics of the machine.

    Example: [bold]newnormal label add false_alarm db-1 cpu --from 2026-11-21T10:00:00Z[/bold]
    """
    now = now_ms()
    fields = {
        "entity": entity,
        "metric": metric,
        "start": instant(start, now, "--from"),
        "end": instant(end, now, "--until"),
        "time": instant(at, now, "--at"),
        "verdict": verdict,
        "note": note,
    }
    settings = load(**overrides)
    label = checked(Label, fields, settings, now)
    write(running(settings, elasticsearch=False), label)
    confirm(label)
    warn_if_unseen(settings, label.entity, label.metric, LABEL)


def confirm(label: Label) -> None:
    """Prints a label that was just written."""
    what = f"{label.metric} of {label.entity} from {iso(label.start)} on"
    typer.echo(visible(f"{what}: {label.verdict}, in effect from {iso(label.effective_from)}"))


@app.command("list")
@with_kafka
def list_(
    overrides: Overrides,
    out: Annotated[
        Path | None,
        typer.Option(callback=file_to_write, help="Also write the labels to this file, for newnormal evaluate."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the labels; if a novelty has several, only the last one."""
    found = labels(running(load(**overrides), elasticsearch=False))
    if out is not None:
        save(found, out)
    rows.echo_records(found, as_json, show)


def show(shown: Sequence[Label]) -> None:
    """Prints labels, each as a block of lines."""
    for label in shown:
        until = "" if label.end is None else f" until {iso(label.end)}"
        about = f"from {iso(label.start)}{until}"
        fields = {"verdict": label.verdict, "about": about, "in effect": iso(label.effective_from), "note": label.note}
        rows.block(f"{label.metric} of {label.entity}", fields)
    if not shown:
        typer.echo("no labels")
