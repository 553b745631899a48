"""The routes of the console's API on incidents, and on the heat map of alarms above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from dashboards.console.bands import step
from dashboards.console.heat_store import HeatStore
from dashboards.console.incident_series import over_since
from dashboards.console.incident_store import IncidentStore, around
from dashboards.console.search import Document
from dashboards.console.similar_store import SimilarStore
from dashboards.console.standing import Remembered
from engine.clock import now_ms

QUIET = 300_000
"""How long nothing is novel before an incident is resolved, milliseconds, unless the settings say otherwise."""

_LAST = 4_102_444_800_000  # 2100

Name = Annotated[str, Query(min_length=1, max_length=512)]


def incident_routes(
    store: IncidentStore,
    similar: SimilarStore,
    heat: HeatStore,
    status: Callable[[], dict[str, Any]],
    standing: Remembered,
    quiet: int = QUIET,
) -> APIRouter:
    """The paths ``/api/incidents``, ``/api/incident`` with ``/around`` and ``/answer``, and ``/api/heat``.

    Args:
        store: Where incidents are read.
        similar: Where earlier incidents are found.
        heat: Where alarms of machines over time are read.
        status: The pipeline's status, asked at each request; empty where no pipeline runs in this process.
        standing: What operators have said.
        quiet: How long nothing is novel before an incident is resolved, milliseconds.
    """
    api = APIRouter(prefix="/api")

    def with_series(identity: str) -> tuple[Document, list[Document]]:
        """The document of an incident, and its series."""
        incident = store.one(identity)
        if incident is None:
            raise HTTPException(404, "there is no such incident")
        return incident, store.rows(incident, now_ms())

    @api.get("/incidents")
    def incidents(limit: Annotated[int, Query(ge=1, le=500)] = 100) -> dict[str, Any]:
        now = now_ms()
        ongoing = store.carded(store.listed(limit=limit), now)
        return {"now": now, "quiet": quiet, "open": ongoing, "resolved": store.resolved()}

    @api.get("/incident")
    def incident(id: Name) -> dict[str, Any]:
        document, rows = with_series(id)
        now = now_ms()
        begin, end = around(document, max(now, document["updated"]))
        return {
            "now": now, "quiet": quiet, "incident": document, "span": (begin, end), "step": step(begin, end),
            "over": over_since(document), "series": store.plotted(rows, begin, end),
            "similar": similar.similar(document),
        }  # fmt: skip

    @api.get("/incident/around")
    def around_it(id: Name) -> dict[str, Any]:
        if (document := store.one(id)) is None:
            raise HTTPException(404, "there is no such incident")
        return standing.around(document, now_ms())

    @api.get("/incident/answer")
    def answer(id: Name, after: Annotated[int, Query(ge=0, le=_LAST)]) -> dict[str, Any]:
        document, rows = with_series(id)
        judged = store.judged_after(rows, after)
        return {"state": document["incident.state"], "revision": document["revision"], **judged}

    @api.get("/heat")
    def heat_map(
        minutes: Annotated[int | None, Query(ge=1, le=43_200)] = None,
        workload: Annotated[str, Query(max_length=512)] = "",
    ) -> dict[str, Any]:
        now = now_ms()
        marks = [job["watermark"] for job in status().get("jobs", ()) if job["watermark"] is not None]
        machines = [machine for one in store.listed() for machine in one.get("machines", ())]
        ongoing = list(dict.fromkeys((machine["entity"], machine.get("workload")) for machine in machines))
        length = minutes and minutes * 60_000
        return {"now": now, **heat.heat(now, length, ongoing, min(marks, default=0), workload)}

    return api
