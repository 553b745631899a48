"""Compares dashboards with those on a Grafana, and installs what is new or outdated; what users changed stays."""

from __future__ import annotations

from dashboards.grafana.models import dashboards, data_sources
from dashboards.grafana.server import Grafana, Model
from dashboards.marks import Compared, Mark, content_hash, status, this_version
from dashboards.panels import Site

_OF_THE_SERVER = ("id", "version", "description")


def compared(grafana: Grafana, site: Site, source: str) -> list[Compared]:
    """How all data sources and dashboards differ from those on the server; changes nothing.

    A data source that is there is `same`: users add accounts and certificates to it.
    """
    found = [
        Compared(each["name"], "same" if grafana.data_source(each["uid"]) else "new")
        for each in data_sources(site, source)
    ]
    return [*found, *(_one(grafana, each) for each in dashboards(site))]


def install(
    grafana: Grafana,
    site: Site,
    source: str,
    folder: str,
    replace: bool = False,
    account: tuple[str, str] | None = None,
) -> list[Compared]:
    """Installs what is new or outdated, and what users changed if they want this.

    Args:
        grafana: The server.
        site: The installation.
        source: Address of Elasticsearch as Grafana reaches it.
        folder: Uid of the folder for new dashboards; it is created. One that users moved elsewhere stays there.
        replace: Whether dashboards that users changed are replaced; else they stay.
        account: User and password with which new data sources ask Elasticsearch; ``None``: it wants none.

    Returns:
        How they differed before.
    """
    before = {each.title: each for each in compared(grafana, site, source)}
    if not grafana.folder(folder):
        grafana.make_folder(folder, folder)
    for model in data_sources(site, source):
        if before[model["name"]].status == "new":
            grafana.make_data_source(model | _login(account))
    for model in dashboards(site):
        one = before[model["title"]]
        if one.is_replaced(replace):
            _put(grafana, model, folder if one.status == "new" else one.folder)
    return list(before.values())


def _login(account: tuple[str, str] | None) -> Model:
    """What a data source with a login has beside the others; Grafana shows nobody what stands in ``secureJsonData``."""
    if account is None:
        return {}
    user, password = account
    return {"basicAuth": True, "basicAuthUser": user, "secureJsonData": {"basicAuthPassword": password}}


def _one(grafana: Grafana, rendered: Model) -> Compared:
    found = grafana.dashboard(rendered["uid"])
    if found is None:
        return Compared(rendered["title"], "new")
    held, folder = found
    mark = Mark.of(held.get("description", ""))
    stands = status(mark, content_hash(_content(held)), content_hash(_content(rendered)))
    return Compared(rendered["title"], stands, mark.version if mark else "", folder)


def _put(grafana: Grafana, model: Model, folder: str) -> None:
    message = f"newnormal {this_version()}"
    grafana.put_dashboard(_marked(model, _content(model)), folder, message)
    found = grafana.dashboard(model["uid"])
    if found and _content(found[0]) != _content(model):  # Grafana added defaults: the mark says what it holds
        grafana.put_dashboard(_marked(model, _content(found[0])), folder, message)


def _content(model: Model) -> Model:
    return {name: value for name, value in model.items() if name not in _OF_THE_SERVER}


def _marked(model: Model, held: Model) -> Model:
    mark = Mark(this_version(), content_hash(_content(model)), content_hash(held))
    return {**model, "description": mark.after(model["description"])}
