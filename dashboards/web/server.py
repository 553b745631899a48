"""The console is served as all web servers of the project are: see `pipelines.serving.server`."""

from __future__ import annotations

from pipelines.serving.server import WebServer, serve

__all__ = ["WebServer", "serve"]
