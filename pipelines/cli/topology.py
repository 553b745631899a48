"""`newnormal topology`: operators say what machines run on and depend on. `pipelines.query.topology` does the work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.options import AsJson, Overrides, with_kafka
from pipelines.cli.seen import warn_if_unseen
from pipelines.contracts.records import InferredPlacement, Placement
from pipelines.contracts.settings import Settings, load
from pipelines.query import topology as stored

app = typer.Typer(
    help="Say which machine runs on which, such as VMs on hosts, and which service calls which. A host that takes its "
    "VMs down is then one incident with them, and is named first; see docs/incidents.md.",
    no_args_is_help=True,
)

Machines = Annotated[list[str], typer.Argument(help="Names of machines, as in host.name.", show_default=False)]


@app.command()
@with_kafka
def place(
    overrides: Overrides,
    machines: Machines,
    on: Annotated[
        str | None, typer.Option("--on", help="What they run on, such as a host.", show_default=False)
    ] = None,
    needs: Annotated[
        list[str] | None,
        typer.Option("--needs", help="What else they depend on, such as a service they call; repeatable."),
    ] = None,
) -> None:
    """Say what machines run on, and what else they depend on; each replaces what was said of that before.

    VMs on a host:         [bold]newnormal topology place vm-00001 vm-00002 --on host-000[/bold]

    Hosts below a switch:  [bold]newnormal topology place host-000 host-001 --on switch-7[/bold]

    A service that calls others: [bold]newnormal topology place web --needs cart --needs payment[/bold]

    It holds at once, also for incidents that are open. A machine runs on one other, which may run on one itself, and
    may depend on many, also in a circle. These need not send any metrics.
    """
    if on is None and not needs:
        raise typer.BadParameter("say what they run on or depend on", param_hint="--on, --needs")
    settings = _settings(overrides)
    said = stored.Place((on,) if on is not None else None, tuple(needs) if needs else None)
    tell(stored.place(settings, dict.fromkeys(machines, said), now_ms()))
    for machine in machines:
        warn_if_unseen(settings, machine, "*")


@app.command("import")
@with_kafka
def import_(
    overrides: Overrides,
    file: Annotated[
        Path, typer.Argument(help="A CSV file with the columns machine, parent and depends_on.", show_default=False)
    ],
) -> None:
    """Say what many machines run on and depend on, as a CSV file has it, for example one that your inventory exports.

    The first line names the columns: [bold]machine[/bold], and [bold]parent[/bold], [bold]depends_on[/bold] or both;
    others are ignored. A machine that depends on several has a line for each:

      machine,parent,depends_on

      vm-00001,host-000,vm-00003

      vm-00001,host-000,vm-00004

      vm-00002,,

    A machine without a parent and dependencies has no place any more; what the file does not name, a machine or one of
    the two columns, stays as it is. Of a file with a wrong line nothing is taken. What is known already is not written
    again: import a file as often as you like.
    """
    settings = _settings(overrides)
    found = stored.from_csv(file)
    made = stored.place(settings, found, now_ms())
    gone = sum(not each.above for each in made)
    typer.echo(f"{len(made) - gone} machines placed, {gone} removed, {len(found) - len(made)} as before")


@app.command("list")
@with_kafka
def list_(overrides: Overrides, as_json: AsJson = False) -> None:
    """List the machines that have a place, what they run on, what else they depend on, and who says so.

    What a person says of a machine counts before what telemetry tells of it, until it is taken back.
    """
    settings = _settings(overrides)
    found = [*stored.topology(settings), *stored.inferred(settings)]
    if not as_json:
        show(found)
    for each in found if as_json else ():
        typer.echo(rows.line({**each.model_dump(mode="json", exclude_none=True), "source": _source(each)}))


def _source(placement: Placement) -> str:
    return "telemetry" if isinstance(placement, InferredPlacement) else "a person"


def show(placements: Sequence[Placement]) -> None:
    """Prints a topology."""
    if placements:
        names = ("machine", "runs on", "depends on", "replica of", "source", "time")
        columns = {name: False for name in names if name != "replica of" or any(each.workload for each in placements)}
        table = [
            [each.entity, each.parent, ", ".join(each.depends_on), each.workload, _source(each), each.time]
            for each in placements
        ]
        wanted = [at for at, name in enumerate(names) if name in columns]
        rows.show(columns, [[row[at] for at in wanted] for row in table])
    else:
        typer.echo(hint("no machine has a place; `newnormal topology place` gives it one"))


@app.command()
@with_kafka
def remove(overrides: Overrides, machines: Machines) -> None:
    """Take the place of machines away, for example of VMs that were deleted."""
    tell(stored.remove(_settings(overrides), machines, now_ms()))


def tell(placements: Sequence[Placement]) -> None:
    """Prints what was just written."""
    for each in placements:
        on = [f"runs on {each.parent}"] if each.parent else []
        on += [f"depends on {', '.join(each.depends_on)}"] if each.depends_on else []
        typer.echo(visible(f"{each.entity} {' and '.join(on) or 'has no place'}"))
    if not placements:
        typer.echo("nothing changed: that was known already")


def _settings(overrides: Overrides) -> Settings:
    return running(load(**overrides), elasticsearch=False)
