"""`newnormal demo`: starts everything that is needed to see live novelties, with one command."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.clock import now_ms
from engine.spec.duration import END_OF_TIME, duration_ms
from pipelines.cli.hints import command, hint
from pipelines.cli.options import Overrides, with_servers
from pipelines.cli.output_files import file_to_write
from pipelines.contracts import site
from pipelines.contracts.preferred import prefer
from pipelines.contracts.settings import Settings, load

if TYPE_CHECKING:
    from engine.spark.session import StartingSpark

_PATIENCE_SECONDS = 5.0
"""How long the demo waits after Ctrl-C for records already sent to be processed; the next start processes the rest."""
_PREFERRED = {
    "detector.emit": "all",  # the site is small, and all of it can be looked at
    "watermark.idle_after": "2s",  # most topics are silent, and all senders have the same clock
    "engine.jvm_optimizes": "never",  # the first novelty comes sooner, and the load is small
}

_NEXT = {
    "newnormal demo": "goes on where this run stopped",
    "newnormal services up": "starts its Kafka and Elasticsearch again; the commands below need them",
    "newnormal incidents list": "what happened; `newnormal incidents show ID` says where it may have begun",
    "newnormal console": "the same in a browser",
    "newnormal notify test NAME": "sends a test message to a channel that you have set: docs/notifications.md",
    "newnormal replay --as v2 --job detector --config FILE --until now": "what would other settings have found? "
    "`newnormal compare v1 v2` says it",
    "newnormal --help": "everything else",
}


@with_servers
def demo(
    overrides: Overrides,
    duration: Annotated[
        str | None, typer.Option(help="Stop after this time, e.g. 120s. Default: until Ctrl-C.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write a summary to this JSON file at the end.")
    ] = None,
) -> None:
    """Watch this machine and a simulated site, with embedded Kafka, Spark and Elasticsearch.

    The demo sends 45 minutes of history of 24 simulated machines, then live samples of them and of this machine. The
    terminal shows the incidents; the address in its title is a web console with a plot of each novelty. Ctrl-C stops
    cleanly; the next start continues from there.
    """
    from pipelines.runtime.starting import starting_spark

    limit = duration_ms(duration, "--duration") / 1000 if duration else None
    prefer(overrides, _PREFERRED)
    # a partition with few senders would hold back the windows of the others
    chosen = load(**overrides)
    site.begin(chosen, partitions=1, shards=1, jvm_optimizes=chosen.engine.jvm_optimizes)
    settings = load(**overrides)
    with starting_spark(settings) as starting:
        result = _demo(settings, overrides, starting, limit)
    text = json.dumps(result, indent=2)
    if summary:
        summary.write_text(text + "\n")
    typer.echo(text)
    typer.echo(what_next(), err=True)


def what_next() -> str:
    """Commands to try after the demo, each with what it does below it."""
    lines = (f"  {command(line)}\n      {hint(text)}" for line, text in _NEXT.items())
    return "\n".join(["", "What to try next:", *lines])


def _demo(settings: Settings, overrides: Overrides, starting: StartingSpark, limit: float | None) -> dict[str, Any]:
    """Runs the demo for some seconds, or until Ctrl-C; returns its summary."""
    from deploy.embedded.services import embedded
    from pipelines.cli.console_parts import console_parts
    from pipelines.query.control_topics import write
    from pipelines.runtime.demo import Inputs, summarize
    from pipelines.runtime.driver import Driver
    from pipelines.runtime.watch import watching
    from pipelines.versions.registry import Registry
    from pipelines.versions.used import note

    with embedded(settings) as servers:
        settings = servers.settings(settings)
        driver = Driver(settings, starting=starting)
        with watching(driver, **console_parts(overrides)) as watch:
            inputs = Inputs(settings, now_ms())
            driver.status.live_from = END_OF_TIME
            window, delay = duration_ms(settings.window.size), duration_ms(settings.watermark.out_of_orderness)

            def done() -> bool:
                moment = now_ms()
                begins = driver.status.live_from == END_OF_TIME and not driver.later.names
                if begins and driver.status.caught_up(moment, 2 * window + delay):
                    driver.status.live_from = moment
                return time.monotonic() >= end or inputs.failure is not None

            if inputs.pause:
                write(settings, *inputs.pause)
            inputs.start()
            note(Registry(settings), settings, driver.program.names, driver.status.started)
            end = time.monotonic() + limit if limit else float("inf")
            try:
                watch.until(done)
                patience = 90.0
            except KeyboardInterrupt:
                if limit or driver.servers.away():
                    raise
                patience = _PATIENCE_SECONDS
            inputs.stop()
            watch.drain(patience)
            result = summarize(driver, inputs)
        if inputs.failure is not None:
            raise inputs.failure
    return result
