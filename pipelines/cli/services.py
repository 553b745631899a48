"""``newnormal services``: starts, stops and shows the embedded servers. ``deploy.embedded`` does the work."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console
from rich.table import Table

from deploy.embedded import services
from deploy.embedded.state_file import Running
from engine.printing import cell, visible
from engine.spec.errors import NewnormalError
from pipelines.cli.hints import hint, remember
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.settings import load

app = typer.Typer(
    help="Start, stop and inspect the embedded servers: a real Kafka broker and a real Elasticsearch node.",
    no_args_is_help=True,
)

StateDir = Annotated[
    Path | None,
    typer.Option(
        callback=remember,
        help="Folder of the servers' data and logs; each folder has its own servers. Default: the setting state_dir.",
    ),
]


@app.command()
def up(
    state_dir: StateDir = None,
    kafka: Annotated[bool, typer.Option(help="Start Kafka.")] = True,
    elasticsearch: Annotated[bool, typer.Option(help="Start Elasticsearch.")] = True,
    kafka_heap: Annotated[str | None, typer.Option(help="Heap of Kafka, e.g. 512m.")] = None,
    elasticsearch_heap: Annotated[str | None, typer.Option(help="Heap of Elasticsearch, e.g. 768m.")] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Address on which they listen, e.g. 0.0.0.0. Default: embedded.address, this machine only."),
    ] = None,
    foreground: Annotated[
        bool,
        typer.Option("--foreground", help="Stay until Ctrl-C or SIGTERM, then stop the servers, e.g. in a container."),
    ] = False,
) -> None:
    """Start the servers in the background and wait until they are ready.

    They listen on this machine only, on the usual ports (9092, 9200) or, if those are taken, on free ones. They run
    until `newnormal services down`; all other commands with the same state directory use them. A server that runs
    already keeps running.
    """
    overrides = {"embedded.kafka_heap": kafka_heap, "embedded.elasticsearch_heap": elasticsearch_heap}
    settings = load(state_dir=state_dir, **overrides, **{"embedded.address": address})
    running = services.up(settings, kafka=kafka, elasticsearch=elasticsearch)
    _show(running, settings.state)
    if foreground:
        services.stay(settings)
        print("stopped")


@app.command()
def down(state_dir: StateDir = None) -> None:
    """Stop the servers; their data are kept."""
    settings = load(state_dir=state_dir)
    stopped = services.down(settings)
    print("stopped" if stopped else visible(f"no server was running for {settings.state}"))


@app.command()
def status(
    state_dir: StateDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
) -> None:
    """Show which servers run, their addresses and how much memory they use. Exit code 3 if none runs."""
    settings = load(state_dir=state_dir)
    running = services.status(settings)
    if as_json:
        print(json.dumps(asdict(running) if running else None))
    elif running:
        _show(running, settings.state)
    else:
        print(visible(f"no server is running for {settings.state}"))
    if not running:
        raise typer.Exit(3)


def _show(running: Running, state: Path) -> None:
    until = hint("`newnormal services down`") if running.owner is None else f"process {running.owner} ends"
    table = Table(
        box=None,
        header_style="dim",
        caption=cell(f"running until {until}; logs in {state / 'logs'}"),
        caption_justify="left",
    )
    for column in ("server", "address", "pid", "memory", "up", "restarts"):
        table.add_column(column, overflow="fold")
    for server in running.servers:
        memory = f"{_memory(server.pid) >> 20} MB"
        up_for = duration(round((time.time() - server.started) * 1000))
        table.add_row(*map(cell, (server.name, server.address, server.pid, memory, up_for, server.restarts)))
    Console().print(table)


def _memory(pid: int) -> int:
    total = 0
    try:
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            total += process.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total


if __name__ == "__main__":
    try:
        app()
    except NewnormalError as error:
        sys.exit(str(error))
