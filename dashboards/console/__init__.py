"""The web console: the newest novelties, why each was reported, and how the pipeline is doing."""

from dashboards.console.actions import Actions
from dashboards.console.app import create_app
from dashboards.console.belief import AskView
from dashboards.console.server import ConsoleServer, serve
from dashboards.console.store import Store

__all__ = ["Actions", "AskView", "ConsoleServer", "Store", "create_app", "serve"]
