"""`newnormal run`: the jobs, all in one driver or one alone."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import Elasticsearch, Kafka, Namespace, StateDir, overrides
from pipelines.contracts.settings import load


def run(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(
            help="normalizer, extractor, detector; log_normalizer, templates, log_detector; sink. Default: all."
        ),
    ] = None,
    kafka: Kafka = None,
    elasticsearch: Elasticsearch = None,
    state_dir: StateDir = None,
    namespace: Namespace = None,
    write_again: Annotated[
        bool,
        typer.Option("--write-again", help="Start though output is there that no checkpoint knows of: it is doubled."),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="End the process of this machine that has the jobs; fence one elsewhere."),
    ] = False,
) -> None:
    """Run jobs until Ctrl-C; a second start goes on where the first stopped.

    [bold]newnormal run[/bold] runs all jobs in one driver. [bold]newnormal run extractor[/bold] runs one alone: each
    has its own checkpoint and topic. Servers that no setting names are started, and stopped at the end.
    """
    from deploy.embedded.services import embedded  # noqa: PLC0415  Spark and servers: only for this command
    from pipelines.runtime.driver import ALL, Driver  # noqa: PLC0415  Spark and servers: only for this command
    from pipelines.runtime.watch import watching  # noqa: PLC0415  Spark and servers: only for this command

    names = jobs or list(ALL)
    settings = load(**overrides(kafka, elasticsearch, state_dir, namespace))
    with embedded(settings) as servers:
        driver = Driver(servers.settings(settings), names, write_again=write_again, take_over=take_over)
        with watching(driver) as watch:
            watch.until(lambda: False)
