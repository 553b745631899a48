"""``newnormal stack``: starts, watches and stops the compose stack. ``deploy.compose`` does the work."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from engine.printing import cell, visible, visible_lines
from engine.spec.duration import duration_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deploy.compose.containers import Container
    from deploy.compose.project import Stack

app = typer.Typer(
    help="Start, watch and stop Newnormal with Kafka and Elasticsearch in containers (docs/compose.md).",
    no_args_is_help=True,
)

WELL, UNWELL, NOTHING = 0, 1, 3
"""Exit codes of `status` and `doctor`: all is well; something is not; nothing runs."""
_PLACES = {
    "pipeline": "console",
    "kibana": "Kibana",
    "grafana": "Grafana",
    "elasticsearch": "Elasticsearch",
    "kafka": "Kafka",
}

Profile = Annotated[
    list[str] | None,
    typer.Option("--profile", help="Also this part: dashboards or load; again for several. Default: those of .env."),
]
Embedded = Annotated[
    bool, typer.Option("--embedded", help="Kafka and Elasticsearch out of our own image: needs no image registry.")
]


@app.command()
def up(
    profile: Profile = None,
    embedded: Embedded = False,
    build: Annotated[
        bool | None,
        typer.Option("--build/--no-build", help="Build our image. Default: if the engine does not have it."),
    ] = None,
    timeout: Annotated[str, typer.Option(help="Longest time until all is well, without the build.")] = "10m",
) -> None:
    """Start the stack in the background and wait until all of its services are well.

    Before that it checks the engine, ports, memory and `vm.max_map_count`. A repetition changes only what differs.
    """
    from deploy.compose import starting  # Docker's SDK: only for this command
    from deploy.compose.containers import engine

    stack, say = _stack(profile, embedded), Console(stderr=True, highlight=False)
    seconds = duration_ms(timeout, "--timeout") / 1000
    with engine() as found:
        _show(starting.up(stack, found, lambda text: say.print(cell(text)), seconds, build))


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False) -> None:
    """Show the services of the stack, their health and their ports.

    Exit code 0 if all are well, 1 if one is not, 3 if none runs.
    """
    from deploy.compose.containers import engine

    with engine() as docker:
        containers = docker.containers()
    if as_json:
        typer.echo(json.dumps([{**asdict(container), "well": container.well} for container in containers]))
    elif containers:
        _show(containers)
    else:
        typer.echo("the stack does not run")
    well = all(container.well for container in containers)
    raise typer.Exit(NOTHING if not containers else WELL if well else UNWELL)


@app.command()
def logs(
    services: Annotated[list[str] | None, typer.Argument(help="Names of services. Default: all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    tail: Annotated[int, typer.Option(help="How many of the last lines of each service.", min=0)] = 100,
) -> None:
    """Show what the services have written."""
    from deploy.compose.containers import engine

    with engine() as found:
        found.require()
    more = ["--follow"] if follow else []
    done = _everything().run("logs", "--timestamps", "--tail", str(tail), *more, *(services or ()))
    raise typer.Exit(done.returncode)


@app.command()
def down(
    volumes: Annotated[bool, typer.Option("--volumes", help="Also delete all data.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Stop the stack: micro-batches are completed first. The data stay in Docker's volumes."""
    from deploy.compose.containers import engine
    from pipelines.cli.options import ask

    with engine() as found:
        if not volumes:  # these may be left of an earlier run
            found.require()
    if volumes:
        ask("Delete all telemetry, verdicts, checkpoints and dashboards of the stack?", yes)
    done = _everything().run("down", "--remove-orphans", *(["--volumes"] if volumes else []))
    raise typer.Exit(done.returncode)


@app.command()
def doctor(profile: Profile = None, embedded: Embedded = False) -> None:
    """Say what would keep the stack from starting, and what to do. It changes nothing.

    Exit code 0 if nothing would, 1 if something would.
    """
    from deploy.compose import starting  # Docker's SDK: only for this command
    from deploy.compose.containers import engine

    stack = _stack(profile, embedded)
    with engine() as found:
        problems = starting.check(stack, found)
        about = f"Docker {found.version}, {found.memory / 2**30:.1f} GB of memory"
        ill = [each for each in found.containers() if each.failed]
        ill_words = [f"{each.service}: {each.words}; {found.last_lines(each.service)}" for each in ill]
    for problem in problems:
        typer.echo(visible_lines(str(problem)))
    for words in ill_words:
        typer.echo(visible(f"STACK_FAILED: {words}"))
    if problems or ill:
        raise typer.Exit(UNWELL)
    typer.echo(f"{about}: the stack can start")


def _stack(profiles: Sequence[str] | None, embedded: bool) -> Stack:
    from deploy.compose.project import PROFILES, Stack

    for name in profiles or ():
        if name not in PROFILES:
            raise typer.BadParameter(f"{name!r} is no profile: {' or '.join(PROFILES)}")
    return Stack(tuple(profiles or ()), embedded)


def _everything() -> Stack:
    """The stack with all that may run, whichever parts were chosen at its start."""
    from deploy.compose.project import ALL, Stack

    return Stack(ALL, embedded=True)


def _show(containers: Sequence[Container]) -> None:
    table = Table("service", "state", "address", box=None, header_style="dim")
    for each in containers:
        place = _PLACES.get(each.service, "")
        scheme = "" if each.service == "kafka" else "http://"
        address = " ".join(f"{place} {scheme}localhost:{port}" for port in each.ports)
        table.add_row(cell(each.service), cell(each.words, "" if each.well else "bold red"), cell(address))
    Console().print(table)
