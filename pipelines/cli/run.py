"""`newnormal run`: runs the production jobs, all in one driver or only some of them, or the jobs of a user's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Literal

import structlog
import typer
from rich.console import Console
from rich.table import Table

from dashboards.status import JobStatus
from engine.clock import now_ms
from engine.printing import cell
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.options import As, Overrides, is_file, with_servers
from pipelines.contracts import site
from pipelines.contracts.preferred import SMALL, prefer
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import FIRST
from pipelines.jobs.sink.partition import Partition

if TYPE_CHECKING:
    from pipelines.runtime.driver import Driver

log = structlog.get_logger()
_LONGEST = 1_000
"""Columns that a line may have at most."""


@with_servers
def run(
    overrides: Overrides,
    jobs: Annotated[
        list[str] | None,
        typer.Argument(
            help="normalizer, extractor, detector; log_normalizer, templates, log_detector; calls, places, incidents; "
            "sink, archive. Default: all. Or a file of your own jobs: my_jobs.py, or one job in it: my_jobs.py:words."
        ),
    ] = None,
    version: As = FIRST,
    until: Annotated[
        Literal["now"] | None,
        typer.Option(help="[bold]now[/bold]: end when the jobs have read what is in their topics now (batch use)."),
    ] = None,
    write_again: Annotated[
        bool,
        typer.Option(
            "--write-again",
            help="Start even if a job's checkpoint is missing or older than its output; writes records twice.",
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="End the process on this machine that runs the jobs; one on another machine can write no more.",
        ),
    ] = False,
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="Take less than 2 GB of memory, for up to about a thousand series; see docs/memory.md."
        ),
    ] = False,
) -> None:
    """Run jobs until Ctrl-C; the next start continues where this one stopped.

    [bold]newnormal run[/bold] runs all jobs in one driver. [bold]newnormal run extractor[/bold] runs one job alone:
    each job has its own checkpoint and topic. [bold]newnormal run my_jobs.py[/bold] runs the jobs that a Python file
    defines. If the settings name no server, an embedded one is started, and stopped at the end.

    [bold]newnormal run --until now[/bold] ends when all that is in the topics has been processed, and says what each
    job has done; the next run goes on there. Windows that are still open then stay open until more records come.
    """
    from pipelines.runtime.starting import starting_spark

    files = [job for job in jobs or () if is_file(job)]
    if files and len(files) < len(jobs or ()):
        what = f"{', '.join(files)} together with production jobs"
        accepted = "either files of jobs or production jobs; start `newnormal run` once for each"
        raise NewnormalError("JOBS_FILE", what, "newnormal run", accepted, "nothing was started")
    if small:
        log.info("small: settings that were not chosen", **prefer(overrides, SMALL))
        site.begin(load(**overrides), partitions=1, shards=1)
    settings: Settings = load(**overrides)
    with ExitStack() as stack:
        # Spark's JVM starts while the rest is imported; not if settings are in Kafka or modules in a user's file
        early = version == FIRST and not files
        starting = stack.enter_context(starting_spark(settings)) if early else None
        from deploy.embedded.services import embedded, status
        from pipelines.cli.console_parts import console_parts
        from pipelines.retention.retention import RegularRetention
        from pipelines.runtime.bounded import BoundedRun
        from pipelines.runtime.driver import Driver
        from pipelines.runtime.own_jobs import load_jobs
        from pipelines.runtime.program import Program
        from pipelines.runtime.watch import watching
        from pipelines.versions.program import VersionProgram
        from pipelines.versions.registry import Registry
        from pipelines.versions.used import note

        program: Program
        servers = stack.enter_context(embedded(settings, elasticsearch=not files))
        if files:
            program, jobs = load_jobs(files), None
        else:
            known = Registry(servers.settings(settings)).get(version)
            program, settings = VersionProgram(known), known.load(**overrides)
            if known.end is not None:
                log.warning("records from the version's end on are left out", version=version, end=iso(known.end))
        found = servers.settings(settings)
        how: dict[str, Any] = {
            "write_again": write_again,
            "take_over": take_over,
            "at_once": bool(until),
            "steady": bool(until),
        }
        driver = Driver(found, jobs, program=program, starting=starting, **how)
        bounded = BoundedRun(driver) if until else None
        asked = {} if files else console_parts(overrides)
        watch = stack.enter_context(watching(driver, **asked))
        if not files:
            note(Registry(driver.settings), driver.settings, driver.names, driver.status.started)
            stack.enter_context(RegularRetention(driver.settings, Registry(driver.settings)))
        watch.until(bounded.done if bounded else lambda: False)
    if until:
        named = settings.kafka.bootstrap and (files or settings.elasticsearch.url)
        show_end(driver, servers_stopped=not named and status(settings) is None)


def show_end(driver: Driver, servers_stopped: bool) -> None:
    """Prints what `--until now` says at its end: what each job has read and written, and where the results are.

    Args:
        driver: The driver, whose jobs have ended.
        servers_stopped: True if servers that ran for the jobs have stopped with them.
    """
    console, status = Console(highlight=False), driver.status.status({}, ())
    took = duration(now_ms() - status.started)
    table = _table(status.jobs)
    whole = console.measure(table, options=console.options.update(max_width=_LONGEST)).maximum
    console.width = max(console.width, whole)  # a log file counts as 80 columns wide, and cuts nothing
    console.print(f"All that was in the topics has been processed, in {took}.", table, sep="\n")
    for line in _places(driver, status.jobs):
        console.print(cell(hint(line)), soft_wrap=True)
    if servers_stopped:
        console.print(hint("The servers have stopped, too: `newnormal services up` starts them again."), soft_wrap=True)
    console.print("The next run goes on here. Windows that end later than the event time stay open.", soft_wrap=True)


def _table(jobs: Sequence[JobStatus]) -> Table:
    cells: list[list[object]] = []
    for job in jobs:
        figures = [f"{n:,}" for n in (job.records_in, job.records_out, job.late, job.dead_lettered)]
        time = "–" if job.watermark is None else f"{iso(job.watermark)[:19]}Z"
        cells.append([cell(job.name, "bold"), *figures, time])
    names = ("job", "read", "written", "late", "refused", "event time")
    return rows.table(names, cells, names[1:])


def _places(driver: Driver, jobs: Sequence[JobStatus]) -> Iterator[str]:
    """Where the results and what was refused are, a line each."""
    program, settings = driver.program, driver.settings
    written = [topics[0] for name in driver.names if (topics := program.writes(name, settings))]
    read = {topic for name in driver.names for topic in program.reads(name, settings)}
    for topic in written:
        if topic not in read and topic.startswith(settings.namespace):
            yield f"Results: `newnormal tail {topic.removeprefix(settings.namespace)}`"
    if "sink" in driver.names:
        if settings.version == FIRST:
            yield f"Results: `newnormal incidents list`; `newnormal console`; in Elasticsearch {settings.alias}"
        else:
            indices = ",".join(Partition(settings.index, 0).patterns)
            yield f"Results: `newnormal incidents list --as {settings.version}`; in Elasticsearch {indices}"
    if any(job.dead_lettered for job in jobs):
        yield "What was refused, and why: `newnormal deadletter list`"
