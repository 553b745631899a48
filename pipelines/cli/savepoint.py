"""`newnormal savepoint`: named copies of the state of jobs, to go back to, to fork a version from, or to rescale."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console

from engine.clock import now_ms
from engine.printing import cell, visible
from engine.spec.duration import NEVER, iso
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.option_set import option_set
from pipelines.cli.options import As, AsJson, File, Overrides, Yes, ask, with_kafka, with_servers
from pipelines.contracts.quantities.cells import size
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import FIRST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.runtime.program import Program
    from pipelines.savepoints.catalogue import Catalogue
    from pipelines.savepoints.inspection import ShardView
    from pipelines.savepoints.restoring import Plan
    from pipelines.savepoints.savepoint import SavedJob

app = typer.Typer(
    no_args_is_help=True,
    help="Keep the state of jobs under a name; go back to it, fork a version from it, change the number of shards.",
)

Name = Annotated[str, typer.Argument(help="Name of the savepoint.")]
Jobs = Annotated[
    list[str] | None, typer.Option("--job", help="Only this job; may be given several times. Default: all of them.")
]
Shards = Annotated[
    int | None, typer.Option(help="Number of shards from now on; a divisor of kafka.partitions. Default: as before.")
]


class Opened(NamedTuple):
    """The settings of a version, and its savepoints."""

    settings: Settings
    catalogue: Catalogue


def _opened(overrides: Overrides, version: str) -> Opened:
    """Opens the savepoints of a version; only versions other than the first must be looked up in Kafka."""
    from deploy.embedded.services import running
    from pipelines.savepoints.catalogue import Catalogue
    from pipelines.versions.registry import Registry

    settings = load(**overrides)
    if version != FIRST:
        settings = Registry(running(settings, elasticsearch=False)).get(version).load(**overrides)
    return Opened(settings, Catalogue(settings))


@with_kafka
def _of_version(overrides: Overrides, version: As = FIRST) -> Opened:
    return _opened(overrides, version)


_with_savepoints = option_set("opened", _of_version)


@app.command()
@_with_savepoints
def create(opened: Opened, name: Name, jobs: Jobs = None, file: File = None) -> None:
    """Copy the state of the jobs, each after its last completed micro-batch. The jobs may run; they are not disturbed.

    The copy shares its files with the checkpoints as long as these have them.
    """
    catalogue = opened.catalogue
    names = _names(_program(file), jobs)
    began = time.monotonic()
    made = catalogue.create(name, names, now_ms())
    took = time.monotonic() - began
    typer.echo(f"savepoint {name}: {', '.join(made.jobs)}, {size(made.bytes)}, {took:.1f} s, in {catalogue.folder}")


@app.command("list")
@_with_savepoints
def list_(opened: Opened, as_json: AsJson = False) -> None:
    """List the savepoints of a version, the oldest first."""
    catalogue = opened.catalogue
    savepoints = catalogue.all()
    if as_json:
        for saved in savepoints:
            typer.echo(saved.model_dump_json())
        return
    cells = []
    for saved in savepoints:
        shards = ", ".join(map(str, sorted({job.shards for job in saved.jobs.values() if job.shards})))
        name, jobs = cell(saved.name, "bold"), ", ".join(saved.jobs)
        cells.append((name, iso(saved.created), saved.program, jobs, shards, size(saved.bytes)))
    table = rows.table(("name", "created", "release", "jobs", "shards", "size"), cells)
    Console(highlight=False).print(table if cells else f"no savepoints in {catalogue.folder}")


@app.command()
@_with_savepoints
def show(
    opened: Opened,
    name: Name,
    series: Annotated[
        str | None, typer.Option(help="MACHINE/METRIC, or MACHINE: show in words what the jobs know of it.")
    ] = None,
    jobs: Jobs = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Show of each job of a savepoint: its last micro-batch, event time, keys and size; or what it knows of a series.

    The state is read from the savepoint's files, without Spark. --json has a line for each shard; with --series, all
    rows of the state of the series.
    """
    from pipelines.savepoints.inspection import of_series, rows_as_dicts, shard_view  # the models
    from pipelines.savepoints.series_words import in_words

    settings, catalogue = opened
    savepoint = catalogue.get(name)
    program = _program(file)
    parts = series.split("/", 1) if series else []
    views: dict[str, list[ShardView]] = {}
    any_state = False
    for job in savepoint.chosen(jobs, program.names):
        definition = program.job(job, settings)
        states = (
            _states(catalogue.job_folder(savepoint, job), savepoint.jobs[job].shards, settings) if definition else []
        )
        if not parts:
            views[job] = [
                shard_view(definition, shard, segments) for shard, segments in enumerate(states) if definition
            ]
            continue
        tables = [
            each for segments in states if definition
            for each in of_series(definition, segments, dict(zip(definition.key, parts, strict=False)))
        ]  # fmt: skip
        any_state = any_state or bool(tables)
        if as_json:
            for title, table in tables:
                typer.echo(json.dumps({"table": title, "rows": rows_as_dicts(table)}, default=str))
        else:
            for line in in_words(job, tables):
                typer.echo(visible(line))
    if parts and not any_state:
        what = f"no job of savepoint {name} has state of {series}"
        raise NewnormalError("SERIES_UNKNOWN", what, "--series", "MACHINE/METRIC as in the topic telemetry")
    if parts:
        return
    if as_json:
        for job, shards in views.items():
            for view in shards:
                saved = savepoint.jobs[job]
                typer.echo(json.dumps({**asdict(view), "batch": saved.batch, "offsets": saved.offsets}))
        return
    lines = [_job_line(job, savepoint.jobs[job], shards) for job, shards in views.items()]
    columns = {"job": False, "batch": True, "event time": False, "keys": True, "shards": True, "size": True}
    rows.show(columns, lines, f"savepoint {name} of {iso(savepoint.created)}")


def _job_line(job: str, saved: SavedJob, shards: list[ShardView]) -> tuple[str, ...]:
    """The line of a job in the table: the event time of its slowest shard, the keys of all shards."""
    reached = min((view.watermark for view in shards), default=NEVER)
    time_ = f"{iso(reached)[:19]}Z" if reached > NEVER else "none yet" if shards else "–"
    keys = f"{sum(view.keys for view in shards):,}" if shards else "–"
    return job, f"{saved.batch:,}", time_, keys, str(len(shards) or "–"), size(saved.bytes)


def _states(folder: Path, shards: int, settings: Settings) -> list[dict[str, bytes]]:
    """The state of each shard of a job, from its files; through Spark where these are not as they are expected."""
    from engine.spark.checkpoint_files import OtherFormatError, states  # RocksDB: only for `show`

    try:
        return states(folder, shards)
    except OtherFormatError as error:
        from engine.spark.checkpoint_state import shard_states  # Spark: only if it is needed

        typer.echo(visible(f"{folder.name} is read with Spark, which takes longer: {error}"), err=True)
        with _spark(settings) as spark:
            return shard_states(spark, folder, shards)


@app.command()
@_with_savepoints
def restore(
    opened: Opened,
    name: Name,
    jobs: Jobs = None,
    shards: Shards = None,
    file: File = None,
    yes: Yes = False,
) -> None:
    """Put the jobs, which must not run, back to a savepoint; with --shards, divide their state anew.

    What they have written since then they compute and write again: verdicts with the same identity replace the old
    ones in Elasticsearch, and in Kafka the topics have both. Without --job, the normalizers go on where they are, as
    samples that are written again would count twice.
    """
    from pipelines.savepoints.restoring import Plan

    settings, catalogue = opened
    savepoint = catalogue.get(name)
    program = _program(file)
    names = savepoint.chosen(jobs, program.names)
    before = max((savepoint.jobs[job].shards for job in names), default=0) or 1
    plan = Plan(catalogue, savepoint, names, settings, shards or before, program)
    if not jobs and (staying := plan.staying()) and len(staying) < len(names):
        names = tuple(job for job in names if job not in staying)
        plan = replace(plan, jobs=names)
        go = f"{', '.join(staying)} will go on where {'it is' if len(staying) == 1 else 'they are'}"
        typer.echo(f"{go}: what was written since the savepoint would be counted twice (--job restores it, too)")
    plan.check()
    if again := plan.again():
        told = ", ".join(f"{job} {messages:,}" for job, messages in again.items())
        typer.echo(f"messages since the savepoint, which will be read again, and their results written again: {told}")
        if doubled := plan.doubled():
            typer.echo(f"warning: {doubled}", err=True)
    ask(f"Replace the checkpoints of {', '.join(names)} in {plan.checkpoints}?", yes)
    _restore(plan, settings)
    typer.echo(f"{', '.join(names)} will go on from savepoint {name}")
    _say_shards(settings, plan.shards)


@app.command()
@with_servers
def fork(
    overrides: Overrides,
    name: Name,
    new: Annotated[str, typer.Option("--as", help="Name of the version that is made, e.g. v2.")],
    job: Annotated[
        str, typer.Option(help="First job of the version; it reads what the base version writes.")
    ] = "detector",
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the settings in which the version differs.")
    ] = None,
    base: Annotated[str, typer.Option(help="Version of the savepoint.")] = FIRST,
    shards: Shards = None,
) -> None:
    """Make a version whose jobs go on from a savepoint, with other settings, beside what runs.

    It needs no replay: it has learned what the base had learned. [bold]newnormal run --as v2[/bold] runs it.
    """
    from deploy.embedded.services import running
    from pipelines.savepoints.restoring import forked
    from pipelines.versions.plan import differing, planned
    from pipelines.versions.registry import Registry

    settings, catalogue = _opened(overrides, base)
    savepoint, registry = catalogue.get(name), Registry(running(settings, elasticsearch=False))
    version = planned(new, registry.get(base), job, None, None, differing(config), now_ms())
    if new in registry.all():
        accepted = f"another name, or `newnormal retire {new}` first"
        raise NewnormalError("VERSION_EXISTS", f"there is a version {new}", "--as", accepted, "nothing was changed")
    plan = forked(catalogue, savepoint, version, version.load(**overrides), shards)
    plan.check()
    _restore(plan, settings)
    registry.put(version.model_copy(update={"forked": savepoint.name}))
    runs = hint(f"`newnormal run --as {new}` runs it from savepoint {name} on")
    typer.echo(f"{new}: {', '.join(version.jobs)}; {runs}")
    _say_shards(settings, plan.shards)


@app.command()
@_with_savepoints
def delete(opened: Opened, name: Name, yes: Yes = False) -> None:
    """Delete a savepoint. Checkpoints, and versions that were forked from it, do not need it."""
    catalogue = opened.catalogue
    savepoint = catalogue.get(name)
    ask(f"Delete savepoint {name} of {iso(savepoint.created)}, {size(savepoint.bytes)}?", yes)
    catalogue.delete(savepoint)
    typer.echo(f"savepoint {name} is deleted")


def _program(file: str | None) -> Program:
    """The jobs of a user's file, or the production chain."""
    from pipelines.runtime.own_jobs import load_jobs
    from pipelines.runtime.program import CHAIN

    return load_jobs([file]) if file else CHAIN


def _names(program: Program, jobs: list[str] | None) -> list[str]:
    """The jobs that were asked for, in the order in which data flow."""
    known = program.names
    if unknown := [job for job in jobs or () if job not in known]:
        raise NewnormalError("JOB_UNKNOWN", ", ".join(unknown), "--job", ", ".join(known), "nothing was changed")
    return [name for name in known if not jobs or name in jobs]


def _restore(plan: Plan, settings: Settings) -> None:
    from pipelines.savepoints.restoring import restore as put_back

    with _spark(settings) as spark:
        put_back(plan, spark)


@contextmanager
def _spark(settings: Settings) -> Iterator[SparkSession]:
    """A small Spark of this process, which reads the state."""
    from engine.spark.session import end
    from pipelines.runtime.starting import start_reader

    spark = start_reader(settings).session(2)
    try:
        yield spark
    finally:
        end(spark)


def _say_shards(settings: Settings, shards: int) -> None:
    if shards != settings.engine.shards:
        typer.echo(f"set engine.shards = {shards} before the next start; it is {settings.engine.shards} now")
