"""What the console answers about all machines together."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from dashboards.console.clock import now_ms
from dashboards.console.store import Store


def site_routes(store: Store) -> APIRouter:
    """The path ``/api/site``: how many machines report and which are learned, where that is known, and the last data.

    Args:
        store: Where novelties are read.
    """
    api = APIRouter(prefix="/api")

    @api.get("/site")
    def site() -> dict[str, Any]:
        newest = store.newest(limit=1)
        last = newest[0]["@timestamp"] if newest else None
        return {"now": now_ms(), "machines": 0, "learning": [], "learning_count": 0, "last": last, "missing": "no view"}

    return api
