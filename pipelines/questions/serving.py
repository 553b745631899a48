"""Serves the questions over HTTP as the state view is served: local names only, and with its token where it has one."""

from __future__ import annotations

from fastapi import FastAPI
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from pipelines.contracts.access_token import access_token
from pipelines.contracts.settings import ViewSettings
from pipelines.query.view.guard import guarded

PATH = "/mcp"
_REQUEST_BYTES = 100_000


def http_app(server: MCPServer, view: ViewSettings) -> FastAPI:
    """The application, whose path is `PATH`.

    Args:
        server: The MCP server.
        view: The settings of the view: its hosts, its token, and the address that decides who reaches it.

    Raises:
        NewnormalError: ``VIEW_TOKEN`` if the file of its token cannot be read.
    """
    app = guarded("Newnormal", "MCP", view.host, view.hosts.split(","), access_token(view), view.reached)
    inner = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, max_request_body_size=_REQUEST_BYTES,
        # names of hosts are looked at by `guarded`, which knows those of the settings
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )  # fmt: skip
    app.router.lifespan_context = inner.router.lifespan_context
    app.mount("/", inner)
    return app
