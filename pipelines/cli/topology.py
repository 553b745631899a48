"""`newnormal topology`: operators say which machine runs on which. `pipelines.query.topology` does the work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deploy.embedded.services import running
from engine.explain.printing import visible
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.options import AsJson, Kafka, Namespace, StateDir, overrides
from pipelines.cli.seen import warn_if_unseen
from pipelines.contracts.records import Placement
from pipelines.contracts.settings import Settings, load
from pipelines.query import topology as stored

app = typer.Typer(
    help="Say which machine runs on which, such as VMs on hosts. A host that takes its VMs down is then one incident "
    "with them, and is named first; see docs/incidents.md.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Machines = Annotated[list[str], typer.Argument(help="Names of machines, as in host.name.", show_default=False)]


@app.command()
def place(
    machines: Machines,
    on: Annotated[
        str, typer.Option("--on", help="What they run on: a host, or what else they depend on.", show_default=False)
    ],
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Say what machines run on, or depend on; this replaces what was said of them before.

    VMs on a host:         [bold]newnormal topology place vm-00001 vm-00002 --on host-000[/bold]

    Hosts below a switch:  [bold]newnormal topology place host-000 host-001 --on switch-7[/bold]

    It holds at once, also for incidents that are open. A machine has one parent, which may have a parent itself; the
    parent need not send any metrics.
    """
    settings = _settings(kafka, namespace, state_dir)
    tell(stored.place(settings, dict.fromkeys(machines, on), _now()))
    for machine in machines:
        warn_if_unseen(settings, machine, "*")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file with the columns machine and parent.", show_default=False)],
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Say what many machines run on, as a CSV file has it, for example one that your inventory exports.

    The first line names the columns; others than [bold]machine[/bold] and [bold]parent[/bold] are ignored:

      machine,parent

      vm-00001,host-000

      vm-00002,

    A machine without a parent has no place any more; what the file does not name stays as it is. Of a file with a wrong
    line nothing is taken. What is known already is not written again: import a file as often as you like.
    """
    settings = _settings(kafka, namespace, state_dir)
    found = stored.from_csv(file)
    made = stored.place(settings, found, _now())
    gone = sum(each.parent is None for each in made)
    typer.echo(f"{len(made) - gone} machines placed, {gone} removed, {len(found) - len(made)} as before")


@app.command("list")
def list_(
    as_json: AsJson = False, kafka: Kafka = None, namespace: Namespace = None, state_dir: StateDir = None
) -> None:
    """List the machines that have a place, and what they run on."""
    found = stored.topology(_settings(kafka, namespace, state_dir))
    if as_json:
        for each in found:
            typer.echo(rows.of_record(each))
        return
    show(found)


def show(found: Sequence[Placement]) -> None:
    """Prints a topology."""
    if found:
        columns = {"machine": False, "runs on": False, "time": False}
        rows.show(columns, [[each.entity, each.parent, each.time] for each in found])
    else:
        typer.echo(hint("no machine has a place; `newnormal topology place` gives it one"))


@app.command()
def remove(
    machines: Machines,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Take the place of machines away, for example of VMs that were deleted."""
    tell(stored.remove(_settings(kafka, namespace, state_dir), machines, _now()))


def tell(made: Sequence[Placement]) -> None:
    """Prints what was just written."""
    for each in made:
        typer.echo(visible(f"{each.entity} runs on {each.parent}" if each.parent else f"{each.entity} has no place"))
    if not made:
        typer.echo("nothing changed: that was known already")


def _settings(kafka: str | None, namespace: str | None, state_dir: Path | None) -> Settings:
    return running(load(**overrides(kafka, None, state_dir, namespace)), elasticsearch=False)


def _now() -> int:
    return int(time.time() * 1000)
