"""The `newnormal` command: puts its subcommands together, and is the entry point of the program."""

from __future__ import annotations

import signal
import sys
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from engine.spark import hadoop_path
from pipelines.cli import (
    acls,
    bench,
    chaos,
    cluster,
    compare,
    console,
    dashboards,
    datagen,
    deadletter,
    decode,
    demo,
    docs,
    doctor,
    evaluate,
    example,
    explain,
    gateway,
    incidents,
    label,
    log_output,
    notify,
    plan,
    play,
    query,
    replay,
    retention,
    rule,
    run,
    savepoint,
    score,
    services,
    sql,
    stack,
    status,
    tail,
    topology,
    versions,
    view,
)
from pipelines.cli.guard import guarded

app = typer.Typer(
    name="newnormal",
    help="Streaming novelty detection for machine telemetry: anomalies and new normals, seconds later.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@app.callback()
def newnormal(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda asked: _version() if asked else None, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Streaming novelty detection for machine telemetry: anomalies and new normals, seconds later."""


def _version() -> NoReturn:
    typer.echo(f"newnormal {metadata.version('newnormal')}")
    raise typer.Exit


app.command()(demo.demo)
app.command()(run.run)
app.command()(replay.replay)
app.command()(versions.versions)
app.command()(versions.promote)
app.command()(versions.retire)
app.command()(retention.retention)
app.command()(status.status)
app.command()(doctor.doctor)
app.command()(score.score)
app.command()(evaluate.evaluate)
app.command()(compare.compare)
app.command()(datagen.simulate)
app.command()(datagen.agent)
app.command()(play.play)
app.command()(gateway.gateway)
app.command()(tail.tail)
app.command()(decode.decode)
app.command()(explain.explain_job)
app.command()(example.example)
app.command()(sql.sql)
app.command()(console.console)
app.command()(view.view)
app.add_typer(query.app, name="query")
app.add_typer(dashboards.app, name="dashboards")
app.add_typer(incidents.app, name="incidents")
app.add_typer(notify.app, name="notify")
app.add_typer(rule.app, name="rule")
app.add_typer(label.app, name="label")
app.add_typer(topology.app, name="topology")
app.add_typer(savepoint.app, name="savepoint")
app.add_typer(deadletter.app, name="deadletter")
app.add_typer(services.app, name="services")
app.add_typer(stack.app, name="stack")
app.add_typer(cluster.app, name="cluster")
app.add_typer(bench.app, name="bench")
app.command()(acls.acls)
app.command()(plan.plan)
app.command()(chaos.chaos)
app.command()(docs.docs)


def main() -> NoReturn:
    """Entry point of the console script."""
    log_output.configure()
    hadoop_path.connect(_store_jars)
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(guarded(app))


def _store_jars(place: str) -> list[Path]:
    from deploy.artifacts import store_jars  # noqa: PLC0415  few commands need it

    return store_jars(place)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
