"""`newnormal console`: serves the web console for a running Elasticsearch, without running jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.spec.duration import duration_ms
from pipelines.cli.options import Overrides, with_namespace
from pipelines.cli.state_view import beliefs
from pipelines.contracts.access_token import access_token
from pipelines.contracts.bounds import Bounds
from pipelines.contracts.settings import load


@with_namespace
def console(
    overrides: Overrides,
    elasticsearch: Annotated[
        str | None,
        typer.Option(help="http://host:port of Elasticsearch. Default: elasticsearch.url, or the embedded one."),
    ] = None,
    index: Annotated[
        str | None, typer.Option(help="Alias to read, without the namespace. Default: elasticsearch.index.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: console.host.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port; if it is taken, the next free one. Default: console.port.")
    ] = None,
) -> None:
    """Serve the web console until Ctrl-C; it shows the incidents and novelties in Elasticsearch."""
    from dashboards.console import Access, Promises, Store, create_app  # the web server is heavy: only for this command
    from pipelines.cli.console_trials import ConsoleTrials
    from pipelines.cli.console_versions import ConsoleVersions
    from pipelines.query.operator import Operator
    from pipelines.serving.server import serve

    overrides |= {
        "elasticsearch.url": elasticsearch,
        "elasticsearch.index": index,
        "console.host": host,
        "console.port": port,
    }
    settings = running(load(**overrides), kafka=False)
    store = Store(settings.elasticsearch.url or "", settings.alias, settings.incident_alias, settings.change_alias)
    shown = settings.console
    view = beliefs(settings, lambda: running(settings), "console")  # it begins when the console is there
    app = create_app(
        store,
        zone=settings.detector.timezone,
        listening=shown.host,
        hosts=shown.hosts.split(","),
        actions=Operator(lambda: running(settings, elasticsearch=False), now_ms),
        access=Access(shown.reached, access_token(shown), shown.user_header, shown.proxies.split(",")),
        beliefs=view,
        versions=ConsoleVersions(lambda: running(settings), overrides),
        quiet=duration_ms(settings.incidents.quiet),
        promises=Promises.of(settings),
        trials=ConsoleTrials(lambda: running(settings), overrides),
        bounds=Bounds(settings.detector.bounds),
    )
    server = serve(app, shown.host, shown.port)
    typer.echo(f"console at {server.url} (Ctrl-C ends it)")
    try:
        with view:
            server.join()
    except KeyboardInterrupt:
        server.stop()
        store.close()
