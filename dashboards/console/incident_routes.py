"""What the console answers about incidents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from dashboards.console.clock import now_ms
from dashboards.console.incident_store import IncidentStore
from dashboards.console.sparks import SPARKS

_BEFORE = 600_000
"""How much of a series before an incident its small plot shows at least, milliseconds."""


def incident_routes(store: IncidentStore, heat: Callable[[int, int], dict[str, Any]]) -> APIRouter:
    """The paths ``/api/incidents``, ``/api/incident`` and ``/api/heat``.

    Args:
        store: Where incidents are read.
        heat: See `dashboards.console.heat_store.HeatStore.heat`.
    """
    api = APIRouter(prefix="/api")

    @api.get("/incidents")
    def incidents(limit: Annotated[int, Query(ge=1, le=500)] = 100) -> dict[str, Any]:
        return {"now": now_ms(), "open": store.listed(limit=limit), "resolved": store.resolved()}

    @api.get("/incident")
    def incident(id: Annotated[str, Query(min_length=1, max_length=512)]) -> dict[str, Any]:
        found = store.one(id)
        if found is None:
            raise HTTPException(404, "there is no such incident")
        now, machines = now_ms(), [each["entity"] for each in found.get("machines", ())]
        end = found.get("event.end") or max(now, found["updated"])
        start = found["event.start"]
        begin = start - max(_BEFORE, (end - start) // 4)
        listed = store.with_sparks(store.series(machines, start, end), begin, end)
        return {"now": now, "incident": found, "series": listed, "sparks": SPARKS, "span": (begin, end)}

    @api.get("/heat")
    def machines(hours: Annotated[int, Query(ge=1, le=168)] = 6) -> dict[str, Any]:
        now = now_ms()
        return {"now": now, "hours": hours, **heat(now, hours)}

    return api
