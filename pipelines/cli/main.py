"""The `newnormal` command: mounts the commands, and shows errors as what to do instead of a stack trace."""

from __future__ import annotations

import logging
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import structlog
import typer
from rich.console import Console

from engine.errors import NewnormalError
from pipelines.cli import (
    bench,
    console,
    datagen,
    demo,
    docs,
    evaluate,
    example,
    explain,
    label,
    rule,
    run,
    score,
    services,
    sql,
    tail,
)

app = typer.Typer(
    name="newnormal",
    help="Streaming novelty detection for machine telemetry: anomalies and new normals, seconds later.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(run.run)
app.command()(score.score)
app.command()(evaluate.evaluate)
app.command()(datagen.simulate)
app.command()(datagen.agent)
app.command()(datagen.play)
app.command()(tail.tail)
app.command()(explain.explain_job)
app.command()(example.example)
app.command()(sql.sql)
app.command()(console.console)
app.add_typer(rule.app, name="rule")
app.add_typer(label.app, name="label")
app.add_typer(services.app, name="services")
app.add_typer(bench.app, name="bench")
app.command()(docs.docs)


def main() -> NoReturn:
    """Entry point of the console script."""
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except NewnormalError as error:
        if os.environ.get("NEWNORMAL_DEBUG"):
            raise
        Console(stderr=True, soft_wrap=True).print(str(error), style="bold red", markup=False, highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
