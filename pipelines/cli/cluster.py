"""``newnormal cluster``: what the machines of a Spark cluster need that do not have Newnormal. See docs/cluster.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(help="Prepare the machines of a Spark cluster for the jobs.", no_args_is_help=True)


@app.callback()
def cluster() -> None:
    """Prepare the machines of a Spark cluster for the jobs."""


@app.command()
def pack(
    file: Annotated[Path, typer.Argument(help="The archive: a name that ends in .tar.gz, .tgz, or .tar (quicker).")],
) -> None:
    """Pack Newnormal and the packages that it needs, for the setting [bold]spark.packages[/bold].

    Spark sends the archive to each machine and unpacks it there. The machines need Python of the same minor version
    ([bold]spark.python[/bold] names it) and the same kind of processor and system as this one. The compiled models are
    packed, too: a machine with another processor compiles them anew, for a minute, each time it joins.
    """
    from deploy.packing import pack as packed
    from models import kernels
    from pipelines.runtime.compiling import compile_once

    compile_once()
    console = Console(stderr=True)
    with console.status("packing") as shown:
        count = packed(
            file.expanduser(),
            report=lambda name: shown.update(f"packing {name}"),
            also={kernels.NAME: kernels.kept()},
        )
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    typer.echo(f"{file}: {count} files, {file.expanduser().stat().st_size / 1e6:.0f} MB")
    typer.echo(f'for [spark] of newnormal.toml: packages = "{file.expanduser().resolve()}", python = "python{version}"')
