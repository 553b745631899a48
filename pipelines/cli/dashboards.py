"""`newnormal dashboards`: the dashboards as files, on a Kibana, and tried on an Elasticsearch."""

from __future__ import annotations

import time
from contextlib import closing
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
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import VersionNames

app = typer.Typer(help="Dashboards for Kibana.", no_args_is_help=True, rich_markup_mode="rich")

Space = Annotated[str, typer.Option(help="Id of the Kibana space.")]
Versions = Annotated[str, typer.Option(help="The versions of the chain that Version comparison shows, with commas.")]
Credentials = Annotated[
    Path | None,
    typer.Option(help="File with user:password or an API key, in one line. Default: KIBANA_CREDENTIALS."),
]

DIFFERENT = 1
"""Exit code of `check` if an installation would change something, or leaves something as users changed it."""

_WORDS = {
    "new": "is not there: would be installed",
    "same": "up to date",
    "outdated": "from an earlier installation: would be replaced",
    "changed": "changed by somebody: stays as it is",
}


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
def install(
    kibana: Annotated[str, typer.Option(help="http://host:port of Kibana, with its base path if it has one.")],
    space: Space = "default",
    credentials: Credentials = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also replace dashboards that somebody has changed.")
    ] = False,
    versions: Versions = "v1,v2",
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Install the dashboards on a Kibana; a repetition changes nothing.

    A dashboard that somebody has changed stays as it is. To get the new one, save yours under another name
    first, then say --replace.

    Example: [bold]newnormal dashboards install --kibana http://localhost:5601 --space operations[/bold]
    """
    settings = load(namespace=namespace, state_dir=state_dir)
    _kibana(settings, kibana, space, credentials, versions, install=True, replace=replace)


@app.command()
def check(
    kibana: Annotated[
        str | None, typer.Option(help="http://host:port of a Kibana: say what an installation would change there.")
    ] = None,
    elasticsearch: Annotated[
        str | None,
        typer.Option(help="http://host:port of Elasticsearch. Default: elasticsearch.url, or the embedded one."),
    ] = None,
    since: Annotated[str, typer.Option(help="How far back the time range begins, e.g. 6h.")] = "6h",
    space: Space = "default",
    credentials: Credentials = None,
    versions: Versions = "v1,v2",
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Say what is installed on a Kibana; without --kibana, ask Elasticsearch what each panel would ask.

    With --kibana, nothing is changed, and the exit code is 1 if not everything is up to date. Without, each
    panel is listed with the number of rows that it would show.

    Examples: [bold]newnormal dashboards check --since 1h[/bold], [bold]newnormal dashboards check --kibana
    http://localhost:5601[/bold]
    """
    overrides = {"elasticsearch.url": elasticsearch, "namespace": namespace, "state_dir": state_dir}
    settings = load(**overrides)
    if kibana is not None:
        if not _kibana(settings, kibana, space, credentials, versions, install=False):
            raise typer.Exit(DIFFERENT)
        return
    _try(running(settings, kafka=False), since, versions)


def _kibana(
    settings: Settings,
    url: str,
    space: str,
    credentials: Path | None,
    versions: str,
    *,
    install: bool,
    replace: bool = False,
) -> bool:
    """Compares or installs, and shows each object; true if all were up to date."""
    from dashboards.credentials import authorization  # noqa: PLC0415
    from dashboards.kibana import installation  # noqa: PLC0415
    from dashboards.kibana.saved_objects import saved_objects  # noqa: PLC0415
    from dashboards.kibana.server import Kibana  # noqa: PLC0415
    from dashboards.panels import Site  # noqa: PLC0415

    objects = saved_objects(Site(settings.alias, _names(versions)), space)
    headers = authorization("KIBANA_CREDENTIALS", credentials, "ApiKey")
    with closing(Kibana(url, space, headers)) as server:
        version = server.check()
        found = installation.install(server, objects, replace) if install else installation.compared(server, objects)
    words = dict(_WORDS)
    if install:
        words |= {"new": "installed", "outdated": "replaced by the present one"}
        words |= {"changed": "changed by somebody: replaced"} if replace else {}
    table = Table("object", "installed by", "state", title=f"Kibana {version}, space {space}")
    for each in found:
        table.add_row(cell(each.title), cell(each.version), cell(words[each.status]))
    Console().print(table)
    return all(each.status == "same" for each in found)


def _try(settings: Settings, since: str, versions: str) -> None:
    """Shows how many rows each panel has in an Elasticsearch."""
    from dashboards.kibana.requests import requests  # noqa: PLC0415
    from dashboards.kibana.saved_objects import saved_objects  # noqa: PLC0415
    from dashboards.panels import Site  # noqa: PLC0415
    from dashboards.panels.answer import TimeRange  # noqa: PLC0415
    from dashboards.panels.trial import tried  # noqa: PLC0415

    now = int(time.time() * 1000)
    when = TimeRange(now - duration_ms(since), now)
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
