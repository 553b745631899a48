"""`newnormal mcp`: answers the questions of programs that speak MCP, over stdio or HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pipelines.cli.options import Overrides, ShownVersion, with_servers
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import FIRST


@with_servers
def mcp(
    overrides: Overrides,
    version: ShownVersion = None,
    view: Annotated[
        list[str] | None, typer.Option(help="URL of the state view, once for each part. Default: view.host, view.port.")
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Answer over HTTP until Ctrl-C, not over stdio.")] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on with --http. Default: view.host.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; if it is taken, the next free one.")] = 8_897,
) -> None:
    """Answer questions in words: a server of the Model Context Protocol, for assistants that speak it. Read-only.

    Over stdio, an assistant starts it itself; with --http it listens as [bold]newnormal view[/bold] does, with the
    token of the view. Which questions there are: docs/ask-in-words.md.
    """
    from deploy.embedded.services import running
    from pipelines.cli.console_versions import ConsoleVersions
    from pipelines.query.view.client import ViewClient
    from pipelines.questions.answers import Answers, Sources
    from pipelines.questions.server import mcp_server
    from pipelines.questions.serving import PATH, http_app
    from pipelines.serving.server import WebServer, address, listening
    from pipelines.versions.promotion import shown_version
    from pipelines.versions.registry import Registry

    overrides |= {"view.host": host}

    def there() -> Settings:
        return running(load(**overrides), elasticsearch=version is None)

    def shown() -> Settings:
        settings = there()
        return settings.of(Registry(settings).get(version or shown_version(settings) or FIRST).names)

    shown()  # refuses wrong settings, and says which server does not answer
    settings = load(**overrides)
    compared = ConsoleVersions(there, dict(overrides)).compared
    options = _options(overrides, version, view or ())
    server = mcp_server(Answers(Sources(shown, ViewClient.of(settings.view, view), compared, options)))
    if not http:
        server.run("stdio")
        return
    app = http_app(server, settings.view)
    listener = listening(settings.view.host, port, "view")
    served = WebServer(app, listener)
    typer.echo(f"answers at {address(listener)}{PATH} (Ctrl-C ends it)")
    try:
        served.join()
    finally:
        served.stop()


_FLAGS = {
    "namespace": "--namespace", "state_dir": "--state-dir", "kafka.bootstrap": "--kafka",
    "elasticsearch.url": "--elasticsearch",
}  # fmt: skip


def _options(overrides: Overrides, version: str | None, view: Sequence[str]) -> dict[str, list[str]]:
    """The options with which commands ask what this one asks, by the first word of a command; no password is in them.

    >>> _options({"state_dir": "/x", "elasticsearch.url": "http://me:secret@es"}, "v2", ["http://v"])["query"]
    ['--state-dir=/x', '--view=http://v']
    >>> _options({"state_dir": "/x", "elasticsearch.url": "http://me:secret@es"}, "v2", [])["prove"]
    ['--state-dir=/x', '--as=v2']
    """
    given = {flag: str(overrides[name]) for name, flag in _FLAGS.items() if overrides.get(name) is not None}
    words = {flag: f"{flag}={value}" for flag, value in given.items() if "@" not in value}
    servers, of = list(words.values()), [f"--as={version}"] if version else []
    return {
        "incidents": [*servers, *of],
        "why-not": [*servers, *of],
        "prove": [*servers, *of],
        "compare": servers,
        "sql": [word for flag, word in words.items() if flag != "--elasticsearch"],
        "query": [*(word for flag, word in words.items() if flag == "--state-dir"), *(f"--view={url}" for url in view)],
    }
