"""`newnormal replay`: computes results anew from the log, with other settings, beside what runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.clock import now_ms
from pipelines.cli.options import Overrides, with_servers
from pipelines.contracts.settings import load
from pipelines.contracts.version_names import FIRST

_WHEN = "ISO 8601, 'now', or a time from now such as -2h"


@with_servers
def replay(
    overrides: Overrides,
    name: Annotated[str, typer.Option("--as", help="Name of the version that is made, e.g. v2.")],
    start: Annotated[
        str | None, typer.Option("--from", help=f"First event time: {_WHEN}. Default: all that Kafka has.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--until", help=f"Event time at which the version ends: {_WHEN}. Default: it goes on live."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the settings in which the version differs.")
    ] = None,
    job: Annotated[
        str,
        typer.Option(
            help="First job of the version, e.g. normalizer, extractor, detector, sink; it reads what the base version "
            "has written. The version has all jobs from there on, for metrics and for logs."
        ),
    ] = "extractor",
    base: Annotated[str, typer.Option(help="Version that is replayed.")] = FIRST,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="End the process on this machine that runs the version.")
    ] = False,
) -> None:
    """Replay the log into another version: change a setting or the model, compute anew, compare, promote.

    The version has topics, indices and state of its own, so what runs is not touched. It reads the log as fast as it
    goes and then stays live, until Ctrl-C; with --until it ends at that event time. The same command goes on where it
    was interrupted.

    A lower threshold:  [bold]newnormal replay --as v2 --job detector --config sensitive.toml[/bold]

    What if:            [bold]newnormal replay --as whatif --from -6h --until -1h --config sensitive.toml[/bold]

    Then [bold]newnormal compare v1 v2[/bold] shows what differs, and [bold]newnormal promote v2[/bold] makes
    dashboards and the console show it.
    """
    from deploy.embedded.services import embedded
    from pipelines.query.control_topics import instant
    from pipelines.retention.retention import RegularRetention
    from pipelines.versions import replay as replays
    from pipelines.versions.plan import differing, planned
    from pipelines.versions.registry import Registry

    now = now_ms()
    settings, differs = load(**overrides), differing(config)
    begin, stop = instant(start, now, "--from"), instant(end, now, "--until")
    with embedded(settings) as servers:
        registry = Registry(servers.settings(settings))
        asked = planned(name, registry.get(base), job, begin, stop, differs, now)
        asked.load(**overrides)  # refuses wrong settings before the version is stored
        free = not (start or end or config) and job == "extractor" and base == FIRST
        version = replays.registered(registry, asked, free)
        with RegularRetention(servers.settings(settings), registry):
            replays.replay(version, registry, servers.settings, overrides, take_over)
