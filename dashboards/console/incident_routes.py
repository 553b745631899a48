"""What the console answers about incidents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from dashboards.console.clock import now_ms
from dashboards.console.incident_store import IncidentStore


def incident_routes(store: IncidentStore) -> APIRouter:
    """The paths ``/api/incidents`` and ``/api/incident``.

    Args:
        store: Where incidents are read.
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
        return {"now": now, "incident": found, "series": store.series(machines, found["event.start"], end)}

    return api
