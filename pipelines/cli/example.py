"""`newnormal example`: demonstrations of the engine, each of which draws a plot."""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Annotated

import structlog
import typer

from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Kafka, StateDir
from pipelines.cli.output_files import file_to_write
from pipelines.contracts.settings import load


def example(
    name: Annotated[str, typer.Argument(help="sine, timetravel, cards, stocks, network")],
    out: Annotated[
        Path | None,
        typer.Option(callback=file_to_write, help="File of the plot. Default: NAME.png in the working directory."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Run on Kafka through Spark; this takes a minute or two.")
    ] = False,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Run a demonstration of the event-time engine and plot its results: in seconds without servers, or with --live.

    sine: a wave is sent at different speeds, and counted in windows of event time and of processing time. timetravel: a
    replay of the past gives the same results. cards: a job finds cards that are used at two distant terminals and
    answers each payment; a second job counts the answers. stocks: merged prices, statistics, moves, warnings, mentions,
    joins, correlation. network: sessions of network traffic with early results.

    --live writes the records to topics named example.*, and reads the results from such topics.
    """
    from matplotlib.figure import Figure

    from engine.examples import NAMES

    if name not in NAMES:
        raise NewnormalError("EXAMPLE_UNKNOWN", name, "newnormal example", ", ".join(NAMES), "nothing was run")
    if not live and (kafka or state_dir):
        where = "--kafka, --state-dir"
        what, accepted = "the example runs without servers", "these options only together with --live"
        raise NewnormalError("USAGE_INVALID", what, where, accepted, "nothing was run")
    figure = Figure(figsize=(10, 6), layout="constrained")
    path, formats = out or Path(f"{name}.png"), figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        accepted = f"a name that ends in {', '.join(f'.{ending}' for ending in formats)}"
        raise NewnormalError("OUTPUT_NOT_WRITABLE", f"a plot cannot be a {path.suffix!r} file", str(path), accepted)
    module = importlib.import_module(f"engine.examples.{name}")
    module.plot(_live(module, kafka, state_dir) if live else module.compute(), figure)
    figure.savefig(path, dpi=120)
    typer.echo(f"{(module.__doc__ or '').strip()}\nsee {visible(path)}")


def _live(module: ModuleType, kafka: str | None, state_dir: Path | None) -> object:
    """The results that the example computes on Kafka through Spark."""
    from deploy.artifacts import spark_jars  # Spark and servers: only for --live
    from deploy.embedded.services import embedded  # Spark and servers: only for --live
    from deploy.java import java_home  # Spark and servers: only for --live
    from engine.examples.live import Live  # Spark and servers: only for --live

    settings = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir})
    os.environ["JAVA_HOME"] = str(java_home())
    with embedded(settings, elasticsearch=False) as servers, tempfile.TemporaryDirectory(prefix="newnormal-") as state:
        log = structlog.get_logger()
        return module.compute(Live(servers.bootstrap, Path(state), spark_jars(), log.info))
