"""`newnormal label`: what operators say of a novelty afterwards. The work is in `pipelines.query.control_topics`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from deploy.embedded.services import running
from engine.explain.printing import visible
from engine.spec.duration import iso
from pipelines.cli import rows
from pipelines.cli.options import AsJson, Kafka, Namespace, StateDir, overrides
from pipelines.cli.output_files import file_to_write
from pipelines.cli.seen import warn_if_unseen
from pipelines.contracts.records import Label
from pipelines.contracts.records.label import LabelVerdict
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import load
from pipelines.query.control_topics import checked, instant, labels, save, write

app = typer.Typer(
    help="Say what a novelty was; the detector takes it into account at once, and it is kept for evaluation.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_WHEN = "ISO 8601, 'now', or a time from now such as -10m"


@app.command()
def add(
    verdict: Annotated[str, typer.Argument(help=f"What it was: {', '.join(get_args(LabelVerdict))}.")],
    entity: Annotated[str, typer.Argument(help="The machine.")],
    metric: Annotated[str, typer.Argument(help="The metric; _machine is the machine as a whole.")] = JOINED,
    start: Annotated[str, typer.Option("--from", help=f"First instant it speaks of: {_WHEN}.")] = "now",
    end: Annotated[str | None, typer.Option("--until", help=f"Last instant it speaks of: {_WHEN}.")] = None,
    note: Annotated[str, typer.Option(help="In your words.")] = "",
    at: Annotated[str, typer.Option(help=f"Event time at which it is said and takes effect: {_WHEN}.")] = "now",
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Say what a novelty was.

    [bold]false_alarm[/bold]: the evidence of that series is worth less from now on; [bold]true[/bold]: more.

    [bold]expected_change[/bold], [bold]new_normal[/bold]: the present level is typical from now on, and the incident is
    closed; with metric _machine for all metrics of the machine.

    Example: [bold]newnormal label add false_alarm db-1 cpu --from 2026-11-21T10:00:00Z[/bold]
    """
    now = int(time.time() * 1000)
    fields = {
        "entity": entity,
        "metric": metric,
        "start": instant(start, now, "--from"),
        "end": instant(end, now, "--until"),
        "time": instant(at, now, "--at"),
        "verdict": verdict,
        "note": note,
    }
    settings = load(**overrides(kafka, None, state_dir, namespace))
    label = checked(Label, fields, settings, now)
    write(running(settings, elasticsearch=False), label)
    confirm(label)
    warn_if_unseen(settings, label.entity, label.metric)


def confirm(label: Label) -> None:
    """Prints what a label says from when on."""
    what = f"{label.metric} of {label.entity} from {iso(label.start)} on"
    typer.echo(visible(f"{what}: {label.verdict}, in effect from {iso(label.said)}"))


@app.command("list")
def list_(
    out: Annotated[
        Path | None,
        typer.Option(callback=file_to_write, help="Also write them here, JSON lines, for newnormal evaluate."),
    ] = None,
    as_json: AsJson = False,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """List all labels; of several on one novelty the last one said."""
    found = labels(running(load(**overrides(kafka, None, state_dir, namespace)), elasticsearch=False))
    if out is not None:
        save(found, out)
    if as_json:
        for label in found:
            typer.echo(rows.of_record(label))
        return
    show(found)


def show(found: Sequence[Label]) -> None:
    """Prints labels, a block each."""
    for label in found:
        until = "" if label.end is None else f" until {iso(label.end)}"
        about = f"from {iso(label.start)}{until}"
        said = {"verdict": label.verdict, "about": about, "said": iso(label.said), "note": label.note}
        rows.block(f"{label.metric} of {label.entity}", said)
    if not found:
        typer.echo("no labels")
