"""`newnormal dashboards`: the dashboards as files, on a Kibana or a Grafana, and tried on an Elasticsearch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import cell
from engine.spec.duration import duration_ms
from pipelines.cli import rows
from pipelines.cli.options import Overrides, with_namespace
from pipelines.cli.output_files import folder_to_write
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import VersionNames

if TYPE_CHECKING:
    from dashboards.marks import Compared
    from dashboards.panels import Site

app = typer.Typer(help="Dashboards for Kibana and Grafana.", no_args_is_help=True)

Space = Annotated[str, typer.Option(help="Id of the Kibana space.")]
Versions = Annotated[str, typer.Option(help="The versions of the chain that Version comparison shows, with commas.")]
Credentials = Annotated[
    Path | None,
    typer.Option(
        help="File with user:password or a key, in one line. Default: KIBANA_CREDENTIALS or GRAFANA_CREDENTIALS."
    ),
]

Grafana = Annotated[str | None, typer.Option(help="http://host:port of a Grafana, with its path if it has one.")]
Source = Annotated[str, typer.Option(help="For Grafana: address of Elasticsearch as Grafana reaches it.")]
SourceCredentials = Annotated[
    Path | None,
    typer.Option(help="For Grafana: file with user:password, with which it asks Elasticsearch, in one line."),
]

_FOLDER = "newnormal"
_SOURCE = "http://localhost:9200"

DIFFERENT = 1
"""Exit code of `check` if an installation would change something, or leaves something as users changed it."""

_WORDS = {
    "new": "is not there: would be installed",
    "same": "up to date",
    "outdated": "from an earlier installation: would be replaced",
    "changed": "changed by somebody: stays as it is",
}


@app.command()
@with_namespace
def export(
    overrides: Overrides,
    out: Annotated[Path, typer.Option(help="Folder for the files; it is created.", callback=folder_to_write)] = Path(
        "dashboards"
    ),
    space: Space = "default",
    source: Source = _SOURCE,
    versions: Versions = "v1,v2",
) -> None:
    """Write the dashboards to files, for the imports of Kibana (*Saved Objects*) and of Grafana (*Import dashboard*).

    Example: [bold]newnormal dashboards export --out files[/bold]
    """
    from dashboards.grafana.models import dashboards, data_sources
    from dashboards.kibana.saved_objects import ndjson, saved_objects

    settings = load(**overrides)
    site = _site(settings, versions)
    objects = saved_objects(site, space)
    file = out / "kibana.ndjson"
    file.write_text(ndjson(objects), encoding="utf-8")
    typer.echo(f"{len(objects)} objects in {file}")
    folder = folder_to_write(out / "grafana") or out
    boards = {each["title"]: each for each in dashboards(site)}
    for title, board in boards.items():
        name = title.split("] ")[1].lower().replace(" ", "-")
        (folder / f"{name}.json").write_text(json.dumps(board, indent=1) + "\n", encoding="utf-8")
    (folder / "data-sources.json").write_text(json.dumps(data_sources(site, source), indent=1) + "\n", encoding="utf-8")
    typer.echo(f"{len(boards)} dashboards and their data sources in {folder}")


@app.command()
@with_namespace
def install(
    overrides: Overrides,
    kibana: Annotated[
        str | None, typer.Option(help="http://host:port of a Kibana, with its base path if it has one.")
    ] = None,
    grafana: Grafana = None,
    space: Space = "default",
    folder: Annotated[str, typer.Option(help="Uid of the Grafana folder for new dashboards; it is created.")] = _FOLDER,
    source: Source = _SOURCE,
    source_credentials: SourceCredentials = None,
    credentials: Credentials = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also replace dashboards that somebody has changed.")
    ] = False,
    versions: Versions = "v1,v2",
) -> None:
    """Install the dashboards on a Kibana or a Grafana; a repetition changes nothing.

    A dashboard that somebody has changed stays as it is. To get the new one, save yours under another name
    first, then say --replace.

    Example: [bold]newnormal dashboards install --kibana http://localhost:5601 --space operations[/bold]
    """
    settings = load(**overrides)
    if (kibana is None) == (grafana is None):
        raise typer.BadParameter("say either --kibana or --grafana")
    if grafana is not None:
        asking = (source, source_credentials)
        _grafana(settings, grafana, asking, credentials, versions, folder=folder, replace=replace)
    else:
        _kibana(settings, kibana or "", space, credentials, versions, install=True, replace=replace)


@app.command()
@with_namespace
def check(
    overrides: Overrides,
    kibana: Annotated[
        str | None, typer.Option(help="http://host:port of a Kibana: say what an installation would change there.")
    ] = None,
    grafana: Grafana = None,
    elasticsearch: Annotated[
        str | None,
        typer.Option(help="http://host:port of Elasticsearch. Default: elasticsearch.url, or the embedded one."),
    ] = None,
    since: Annotated[str, typer.Option(help="How far back the time range begins, e.g. 6h.")] = "6h",
    space: Space = "default",
    credentials: Credentials = None,
    versions: Versions = "v1,v2",
) -> None:
    """Say what is installed on a Kibana or a Grafana; without one, ask Elasticsearch what each panel would ask.

    With a server, nothing is changed, and the exit code is 1 if not everything is up to date. Without, each
    panel is listed with the number of rows that it would show.

    Examples: [bold]newnormal dashboards check --since 1h[/bold], [bold]newnormal dashboards check --kibana
    http://localhost:5601[/bold]
    """
    settings = load(**overrides | {"elasticsearch.url": elasticsearch})
    if grafana is not None:
        if not _grafana(settings, grafana, (_SOURCE, None), credentials, versions):
            raise typer.Exit(DIFFERENT)
        return
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
    from dashboards.credentials import authorization
    from dashboards.kibana import installation
    from dashboards.kibana.saved_objects import saved_objects
    from dashboards.kibana.server import Kibana

    objects = saved_objects(_site(settings, versions), space)
    headers = authorization("KIBANA_CREDENTIALS", credentials, "ApiKey")
    with closing(Kibana(url, space, headers)) as server:
        version = server.check()
        found = installation.install(server, objects, replace) if install else installation.compared(server, objects)
    return _shown(found, f"Kibana {version}, space {space}", install, replace)


def _grafana(
    settings: Settings,
    url: str,
    source: tuple[str, Path | None],
    credentials: Path | None,
    versions: str,
    *,
    folder: str | None = None,
    replace: bool = False,
) -> bool:
    """Compares, or installs if a folder is given, and shows each object; true if all were up to date."""
    from dashboards.credentials import account, authorization
    from dashboards.grafana import installation
    from dashboards.grafana.server import Grafana as Server

    site = _site(settings, versions)
    headers, (elasticsearch, asking) = authorization("GRAFANA_CREDENTIALS", credentials, "Bearer"), source
    with closing(Server(url, headers)) as server:
        version = server.check()
        if folder is None:
            found = installation.compared(server, site, elasticsearch)
        else:
            found = installation.install(server, site, elasticsearch, folder, replace, account(asking))
    return _shown(found, f"Grafana {version}", folder is not None, replace)


def _shown(objects: Sequence[Compared], title: str, installed: bool, replaced: bool) -> bool:
    """Shows title, version and status of each object; true if all were up to date."""
    words = dict(_WORDS)
    if installed:
        words |= {"new": "installed", "outdated": "replaced by the present one"}
        words |= {"changed": "changed by somebody: replaced"} if replaced else {}
    cells = [(it.title, it.version, words[it.status]) for it in objects]
    Console().print(rows.table(("object", "installed by", "state"), cells, title=title))
    return all(it.status == "same" for it in objects)


def _try(settings: Settings, since: str, versions: str) -> None:
    """Shows how many rows each panel has in an Elasticsearch."""
    from dashboards.kibana.requests import requests
    from dashboards.kibana.saved_objects import saved_objects
    from dashboards.panels.answer import TimeRange
    from dashboards.panels.trial import tried

    now = now_ms()
    when = TimeRange(now - duration_ms(since), now)
    objects = saved_objects(_site(settings, versions))
    trials = tried(settings.elasticsearch.url or "", requests(objects, when))
    cells = [(it.dashboard, it.panel, cell(it.rows, "" if it.rows else "yellow")) for it in trials]
    Console().print(rows.table(("dashboard", "panel", "rows"), cells, title=None))


def _site(settings: Settings, versions: str) -> Site:
    from dashboards.panels import Site

    step = settings.window.step_ms
    window = f"{step}ms" if step % 1000 else f"{step // 1000}s"
    return Site(settings.alias, _names(versions), settings.incident_alias, window, settings.change_alias)


def _names(versions: str) -> tuple[str, ...]:
    """The names of versions in a list with commas.

    Raises:
        NewnormalError: ``VERSION_INVALID`` if one is no name.
    """
    return tuple(VersionNames(name.strip()).version for name in versions.split(","))
