"""`newnormal dashboards`: the dashboards for Kibana as a file, on a Kibana, and tried on an Elasticsearch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from deploy.embedded.services import running
from engine.explain.printing import cell
from engine.spec.duration import duration_ms
from pipelines.cli.options import Namespace, StateDir
from pipelines.cli.output_files import folder_to_write
from pipelines.contracts.settings import load
from pipelines.contracts.version_names import VersionNames

app = typer.Typer(help="Dashboards for Kibana.", no_args_is_help=True, rich_markup_mode="rich")

Space = Annotated[str, typer.Option(help="Id of the Kibana space.")]
Versions = Annotated[str, typer.Option(help="The versions of the chain that Version comparison shows, with commas.")]


@app.command()
def export(
    out: Annotated[Path, typer.Option(help="Folder for the files; it is created.", callback=folder_to_write)] = Path(
        "dashboards"
    ),
    space: Space = "default",
    versions: Versions = "v1,v2",
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Write the dashboards to files, for Kibana's *Stack Management*, *Saved Objects*, *Import*.

    Example: [bold]newnormal dashboards export --out files[/bold]
    """
    from dashboards.kibana.saved_objects import ndjson, saved_objects  # noqa: PLC0415  only where it is needed
    from dashboards.panels import Site  # noqa: PLC0415

    settings = load(namespace=namespace, state_dir=state_dir)
    objects = saved_objects(Site(settings.alias, _names(versions)), space)
    file = out / "kibana.ndjson"
    file.write_text(ndjson(objects), encoding="utf-8")
    typer.echo(f"{len(objects)} objects in {file}")


@app.command()
def check(
    elasticsearch: Annotated[
        str | None,
        typer.Option(help="http://host:port of Elasticsearch. Default: elasticsearch.url, or the embedded one."),
    ] = None,
    since: Annotated[str, typer.Option(help="How far back the time range begins, e.g. 6h.")] = "6h",
    versions: Versions = "v1,v2",
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Ask Elasticsearch what each panel would ask, and say how many rows it would show.

    Example: [bold]newnormal dashboards check --since 1h[/bold]
    """
    from dashboards.kibana.requests import requests  # noqa: PLC0415
    from dashboards.kibana.saved_objects import saved_objects  # noqa: PLC0415
    from dashboards.panels import Site  # noqa: PLC0415
    from dashboards.panels.answer import TimeRange  # noqa: PLC0415
    from dashboards.panels.trial import tried  # noqa: PLC0415

    now = int(time.time() * 1000)
    when = TimeRange(now - duration_ms(since), now)
    overrides = {"elasticsearch.url": elasticsearch, "namespace": namespace, "state_dir": state_dir}
    settings = running(load(**overrides), kafka=False)
    objects = saved_objects(Site(settings.alias, _names(versions)))
    table = Table("dashboard", "panel", "rows")
    for trial in tried(settings.elasticsearch.url or "", requests(objects, when)):
        table.add_row(cell(trial.dashboard), cell(trial.panel), cell(trial.rows, "" if trial.rows else "yellow"))
    Console().print(table)


def _names(versions: str) -> tuple[str, ...]:
    """The names of versions in a list with commas.

    Raises:
        NewnormalError: ``VERSION_INVALID`` if one is no name.
    """
    return tuple(VersionNames(name.strip()).version for name in versions.split(","))
