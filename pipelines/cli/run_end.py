"""What `newnormal run --until now` says at its end: what each job has read and written, and where the results are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from dashboards.status import JobStatus
from engine.clock import now_ms
from engine.explain.printing import cell
from engine.spec.duration import iso
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.contracts.explanations.quantities import duration
from pipelines.contracts.version_names import FIRST
from pipelines.jobs.sink.partition import Partition

if TYPE_CHECKING:
    from pipelines.runtime.driver import Driver

_LONGEST = 1_000
"""Columns that a line may have at most."""


def show(driver: Driver, servers_stopped: bool) -> None:
    """Prints it.

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
