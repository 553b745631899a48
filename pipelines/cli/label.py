"""`newnormal label`: operators say what a novelty was. `pipelines.query.control_topics` does the work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.options import AsJson, Overrides, with_kafka, with_servers
from pipelines.cli.output_files import file_to_write
from pipelines.cli.past import past
from pipelines.cli.seen import LABEL, warn_if_unseen
from pipelines.contracts.records import Label
from pipelines.contracts.records.label import LabelVerdict
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import load
from pipelines.query.control_topics import all_labels, checked, instant, labels, save, write

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


@app.command("try")
@with_servers
def try_(
    overrides: Overrides,
    verdict: Annotated[str, typer.Argument(help=f"What the novelties were: {', '.join(get_args(LabelVerdict))}.")],
    entity: Annotated[str, typer.Argument(help="The machines, as a glob of * and ?.")] = "",
    metric: Annotated[str, typer.Argument(help="The metrics, as a glob; _machine is the machine as a whole.")] = JOINED,
    incident: Annotated[str, typer.Option(help="Instead of a machine: each series of this incident.")] = "",
    start: Annotated[str, typer.Option("--from", help=f"Try it from this time on: {_WHEN}.")] = "-30d",
    end: Annotated[str, typer.Option("--until", "--to", help=f"Try it until this time: {_WHEN}.")] = "now",
    at: Annotated[
        str | None,
        typer.Option(help=f"When it takes effect: {_WHEN}. Default: --from, or when the incident was first reported."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object with all figures.")] = False,
) -> None:
    """Say what a label would have removed and added, from what is stored; nothing is written.

    The label is tried as if it had been given at --at, beside those that were given.

    Example: [bold]newnormal label try false_alarm 'db-*' cpu --from -7d[/bold]
    """
    from pipelines.cli.rule_trial import label_lines
    from pipelines.evaluation.comparison.reading import spans
    from pipelines.evaluation.label_trial import label_trial
    from pipelines.evaluation.label_trial import tried as labels_tried

    settings, now = load(**overrides), now_ms()
    begin, until = past(start, end, now, "label try")
    when = instant(at, now, "--at")
    if bool(entity) == bool(incident):
        raise NewnormalError("USAGE_INVALID", "label try needs a machine or --incident", "label try", "one of both")
    fields = {"entity": entity or "*", "metric": metric, "start": begin, "time": begin, "verdict": verdict}
    label = checked(Label, fields, settings, now)
    settings = running(settings)
    asked, known = labels_tried(label, incident, begin, until, when, settings)
    said, _ = spans(settings, (), ())
    given = all_labels(settings)
    found = label_trial(asked, begin, until, known, given, said, settings.detector, settings.window.size_ms)
    if as_json:
        typer.echo(json.dumps(found.figures()))
        return
    for line in label_lines(found):
        typer.echo(visible(line))


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
