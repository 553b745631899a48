"""Serves the questions over HTTP as the state view is served: local names only, and with its token where it has one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers

from pipelines.contracts.access_token import access_token
from pipelines.contracts.settings import ViewSettings
from pipelines.query.view.guard import guarded
from pipelines.serving.hosts import allowed

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
    hosts = view.hosts.split(",")
    app = guarded("Newnormal", "MCP", view.host, hosts, access_token(view), view.reached)
    app.add_middleware(_OwnPages, listening=view.host, hosts=hosts)
    inner = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, max_request_body_size=_REQUEST_BYTES,
        # names of hosts and pages are looked at here, where those of the settings are known
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )  # fmt: skip
    app.router.lifespan_context = inner.router.lifespan_context
    app.mount("/", inner)
    return app


class _OwnPages:
    """Refuses requests of web pages of other hosts, as the specification of MCP demands ("Security Warning")."""

    def __init__(self, app: Callable[..., Awaitable[None]], listening: str, hosts: Collection[str]) -> None:
        self._app, self._listening, self._hosts = app, listening, hosts

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        origin = Headers(scope=scope).get("origin") if scope["type"] == "http" else None
        if origin is None or allowed(origin.partition("://")[2], self._listening, self._hosts):
            await self._app(scope, receive, send)
            return
        detail = f"a page of {origin[:300]!r} asks; accepted: pages of localhost, or view.hosts"
        refused = JSONResponse({"code": "VIEW_HOST_REFUSED", "detail": detail}, HTTPStatus.FORBIDDEN)
        await refused(scope, receive, send)
