"""Disturbs a pipeline of its own under load, and counts what was lost, doubled or different: `newnormal chaos`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from engine.spec.errors import NewnormalError
from pipelines.cli.guard import guarded
from pipelines.cli.output_files import folder_to_write
from pipelines.contracts.settings import Settings, load
from tests.chaos.runs.apart import apart
from tests.chaos.runs.conductor import Conductor
from tests.chaos.runs.display import Display, summary
from tests.chaos.runs.report import plot


def chaos(
    minutes: Annotated[float, typer.Option(min=0.5, help="For how long faults are done.")] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Decides the load, the faults and their lengths.")] = 1,
    speed: Annotated[float, typer.Option(min=0.5, help="Seconds of event time for each second.")] = 5.0,
    out: Annotated[Path, typer.Option(callback=folder_to_write, help="Folder for faults.jsonl and chaos.png.")] = Path(
        "chaos"
    ),
    replay: Annotated[
        bool,
        typer.Option(help="Meanwhile replay into a second version, and promote it and the first one again."),
    ] = True,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore",
            help="The replay begins in the archive; a savepoint is restored; a third version is forked and retired.",
        ),
    ] = False,
    outage: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            help="Instead of random faults, Elasticsearch is away for so many minutes; footprint.jsonl has the memory "
            "and the open files of the pipeline meanwhile.",
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the scratch directory: logs, topics, state. It is always kept after an error."
        ),
    ] = False,
) -> None:
    """Kill, stop and starve a pipeline under load, and count what is lost, doubled or different.

    The command starts servers and a pipeline of its own in a scratch directory; nothing else is touched. At random
    times, which the seed decides, it kills or stops the driver, Spark's JVM, Python workers, Kafka or Elasticsearch,
    fills disks, slows Kafka down, and upgrades the pipeline. At the end it processes the same input again without
    faults, and compares. It ends with 1 if anything is lost, doubled or different, or if the pipeline did not recover.
    """
    out, console = out.absolute(), Console(stderr=True)
    for name in ("faults.jsonl", "footprint.jsonl"):
        (out / name).unlink(missing_ok=True)
    with _scratch(keep) as state, Display(console) as display:
        display.say(f"scratch directory {state}")
        with apart(state):
            archive = {"archive.path": state / "archive"} if restore else {}
            own = {"window.allowed_lateness": "3m", "console.port": 0, **archive}
            settings: Settings = load(state_dir=state, **own)
            told = display.say, display.done
            course = Conductor(settings, out, seed, minutes, speed, replay, restore, outage, *told).run()
    plot(course.disturbances, course.documents, out / "chaos.png")
    console.print(summary(course.disturbances))
    tally, stalled = course.tally, sum(each.stalled for each in course.disturbances)
    console.print("compared: " + ", ".join(f"{count:,} {what}" for what, count in tally.compared.items()))
    for finding in tally.findings:
        console.print(f"  {finding}", highlight=False, markup=False)
    counts = {wrong: tally.count(wrong) for wrong in ("lost", "doubled", "different")}
    verdict = ", ".join(f"{count} {wrong}" for wrong, count in counts.items())
    faults = sum(not each.operation for each in course.disturbances)
    typer.echo(f"{verdict} after {faults} faults; {stalled} without recovery")
    if tally.findings or stalled:
        raise typer.Exit(1)


@contextmanager
def _scratch(keep: bool) -> Iterator[Path]:
    state = Path(tempfile.mkdtemp(prefix="newnormal-chaos-"))
    try:
        yield state
    except NewnormalError:
        keep = True  # the error names a log in there
        raise
    finally:
        if not keep:
            shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    newnormal = typer.Typer()
    newnormal.command()(chaos)
    newnormal.callback()(lambda: None)
    sys.exit(guarded(newnormal, ["chaos", *sys.argv[1:]]))
