"""`newnormal example`: demonstrations of the engine, each with a plot."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated

import typer

from engine.explain.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.cli.output import file_to_write


def example(
    name: Annotated[str, typer.Argument(help="sine, timetravel, cards, stocks, network")],
    out: Annotated[Path | None, typer.Option(callback=file_to_write, help="The plot. Default: NAME.png here.")] = None,
) -> None:
    """Run a demonstration of the event-time engine on this machine, in seconds and without servers, and plot it.

    sine: windows in event and in processing time of a wave sent at different speeds. timetravel: a replay of the past
    gives the same panes. cards: one card at two distant terminals. stocks: merged ticks, windows, joins, correlation.
    network: sessions of traffic with early results.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  heavy: only for this command

    from engine.examples import NAMES  # noqa: PLC0415  heavy: only for this command

    if name not in NAMES:
        raise NewnormalError("EXAMPLE_UNKNOWN", name, "newnormal example", ", ".join(NAMES), "nothing was run")
    figure = Figure(figsize=(10, 6), layout="constrained")
    path, formats = out or Path(f"{name}.png"), figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        accepted = f"a name that ends in {', '.join(f'.{ending}' for ending in formats)}"
        raise NewnormalError("OUTPUT_NOT_WRITABLE", f"no plot is written as {path.suffix!r}", str(path), accepted)
    module = importlib.import_module(f"engine.examples.{name}")
    module.plot(module.compute(), figure)
    figure.savefig(path, dpi=120)
    typer.echo(f"{(module.__doc__ or '').strip()}\nsee {visible(path)}")
