"""`newnormal console`: serves the web console of a running Elasticsearch, without a pipeline."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.embedded.services import running
from pipelines.cli.options import Namespace, StateDir
from pipelines.contracts.settings import load


def console(
    elasticsearch: Annotated[
        str | None, typer.Option(help="http://host:port. Default: elasticsearch.url, or the one that runs.")
    ] = None,
    index: Annotated[
        str | None, typer.Option(help="Alias to read, without the namespace; default: elasticsearch.index.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: console.host.")] = None,
    namespace: Namespace = None,
    port: Annotated[int | None, typer.Option(help="Port; the next free one when taken. Default: console.port.")] = None,
    state_dir: StateDir = None,
) -> None:
    """Serve the web console of the Elasticsearch that runs for the state directory, until Ctrl-C."""
    from dashboards.console import Store, create_app, serve  # noqa: PLC0415  the web server is heavy: only for this command

    overrides = {
        "elasticsearch.url": elasticsearch,
        "elasticsearch.index": index,
        "namespace": namespace,
        "console.host": host,
        "console.port": port,
        "state_dir": state_dir,
    }
    settings = load(**overrides)
    settings = running(settings, kafka=False)
    store = Store(settings.elasticsearch.url or "", settings.index)
    shown = settings.console
    app = create_app(store, zone=settings.detector.timezone, listening=shown.host, hosts=shown.hosts.split(","))
    server = serve(app, shown.host, shown.port)
    typer.echo(f"console at {server.url} (Ctrl-C ends it)")
    try:
        server.join()
    except KeyboardInterrupt:
        server.stop()
        store.close()
