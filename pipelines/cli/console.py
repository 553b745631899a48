"""`newnormal console`: serves the web console of a running Elasticsearch, without a pipeline."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.errors import NewnormalError
from pipelines.cli.options import Namespace
from pipelines.settings import load


def console(
    elasticsearch: Annotated[str | None, typer.Option(help="http://host:port; default: elasticsearch.url.")] = None,
    index: Annotated[
        str | None, typer.Option(help="Alias to read, without the namespace; default: elasticsearch.index.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: console.host.")] = None,
    namespace: Namespace = None,
    port: Annotated[int | None, typer.Option(help="Port; the next free one when taken. Default: console.port.")] = None,
) -> None:
    """Serve the web console of a running Elasticsearch, until Ctrl-C."""
    from dashboards.console import Store, create_app, serve

    overrides = {
        "elasticsearch.url": elasticsearch,
        "elasticsearch.index": index,
        "namespace": namespace,
        "console.host": host,
        "console.port": port,
    }
    settings = load(**overrides)
    url = settings.elasticsearch.url
    if not url:
        raise NewnormalError(
            "ELASTICSEARCH_NOT_GIVEN",
            "the console needs to know where Elasticsearch is",
            "--elasticsearch, elasticsearch.url or NEWNORMAL_ELASTICSEARCH__URL",
            "http://host:port; `newnormal run` starts a console of its own",
        )
    store = Store(url, settings.index)
    server = serve(create_app(store), settings.console.host, settings.console.port)
    typer.echo(f"console at {server.url} (Ctrl-C ends it)")
    try:
        server.join()
    except KeyboardInterrupt:
        server.stop()
        store.close()
