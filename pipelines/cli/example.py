"""`newnormal example`: demonstrations of the engine, each with a plot."""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Annotated

import structlog
import typer

from engine.explain.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Kafka, StateDir, overrides
from pipelines.cli.output_files import file_to_write
from pipelines.contracts.settings import load


def example(
    name: Annotated[str, typer.Argument(help="sine, timetravel, cards, stocks, network")],
    out: Annotated[Path | None, typer.Option(callback=file_to_write, help="The plot. Default: NAME.png here.")] = None,
    live: Annotated[bool, typer.Option("--live", help="On Kafka through Spark, in a minute or two.")] = False,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Run a demonstration of the event-time engine and plot it: here, in seconds and without servers; or with --live.

    sine: windows in event and in processing time of a wave sent at different speeds. timetravel: a replay of the past
    gives the same panes. cards: one card at two distant terminals; each payment is answered, a second job counts the
    answers. stocks: merged ticks, statistics, moves, warnings and mentions, joins, correlation. network: sessions of
    traffic with early results.

    --live writes the records to topics of its own, named example.*, and reads the results from others.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  heavy: only for this command

    from engine.examples import NAMES  # noqa: PLC0415  heavy: only for this command

    if name not in NAMES:
        raise NewnormalError("EXAMPLE_UNKNOWN", name, "newnormal example", ", ".join(NAMES), "nothing was run")
    if not live and (kafka or state_dir):
        where = "--kafka, --state-dir"
        raise NewnormalError("USAGE_INVALID", "there is nothing to connect to", where, "with --live", "nothing was run")
    figure = Figure(figsize=(10, 6), layout="constrained")
    path, formats = out or Path(f"{name}.png"), figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        accepted = f"a name that ends in {', '.join(f'.{ending}' for ending in formats)}"
        raise NewnormalError("OUTPUT_NOT_WRITABLE", f"no plot is written as {path.suffix!r}", str(path), accepted)
    module = importlib.import_module(f"engine.examples.{name}")
    module.plot(_live(module, kafka, state_dir) if live else module.compute(), figure)
    figure.savefig(path, dpi=120)
    typer.echo(f"{(module.__doc__ or '').strip()}\nsee {visible(path)}")


def _live(module: ModuleType, kafka: str | None, state_dir: Path | None) -> object:
    """What the example computes on Kafka through Spark."""
    from deploy.artifacts import spark_jars  # noqa: PLC0415  Spark and servers: only for --live
    from deploy.embedded.services import embedded  # noqa: PLC0415  Spark and servers: only for --live
    from deploy.java import java_home  # noqa: PLC0415  Spark and servers: only for --live
    from engine.examples.live import Live  # noqa: PLC0415  Spark and servers: only for --live

    settings = load(**overrides(kafka, None, state_dir, None))
    os.environ["JAVA_HOME"] = str(java_home())
    with embedded(settings, elasticsearch=False) as servers, tempfile.TemporaryDirectory(prefix="newnormal-") as state:
        log = structlog.get_logger()
        return module.compute(Live(servers.bootstrap, Path(state), spark_jars(), log.info))
