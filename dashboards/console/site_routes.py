"""What the console answers about the whole site and the pipeline: machines, status, health, metrics, alarm budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from dashboards.console.belief import Beliefs, asked
from dashboards.console.budget import SPAN, Labelled, Promises, alarms, counts, last_labels
from dashboards.console.filling import forecast
from dashboards.console.metrics import metrics_text
from dashboards.console.standing import Remembered
from dashboards.console.store import Store
from engine.clock import now_ms
from engine.columns.replicas import replicas_of
from pipelines.contracts.bounds import Bounds

_NAMES = 1_000
"""The most names of machines and workloads that are suggested."""

_FULL = 8
"""So many series are listed that will be full next."""

_NOBODY: dict[str, Any] = {"machines": 0, "learning": [], "learning_count": 0, "last": None}

_JUDGES = "detector"
"""The job whose keys are the series that are judged."""


def site_routes(
    store: Store,
    beliefs: Beliefs | None,
    standing: Remembered,
    bounds: Bounds,
    promises: Promises | None,
    status: Callable[[], dict[str, Any]],
) -> APIRouter:
    """The paths ``/health``, ``/metrics``; under ``/api``: ``site``, ``full``, ``entities``, ``status``, ``budget``.

    Args:
        store: Where novelties and incidents are read; if it cannot be reached, the console is not healthy.
        beliefs: What the detector believes; ``None``: nobody can be asked.
        standing: What operators have said.
        bounds: The bounds of metrics.
        promises: How few false alarms were promised; ``None``: nothing was, as where no incidents are stored.
        status: The pipeline's status, asked at each request; empty where no pipeline runs in this process.
    """
    routes = APIRouter()

    @routes.get("/api/site")
    def site() -> dict[str, Any]:
        believed, why = asked(beliefs, lambda them: them.site(), _NOBODY)
        last = max((at for at in (believed["last"], store.last()) if at is not None), default=None)
        learned = {name: believed[name] for name in ("machines", "learning", "learning_count")}
        return {"now": now_ms(), **learned, "last": last, "missing": why}

    @routes.get("/api/full")
    def full() -> dict[str, Any]:
        states, why = asked(beliefs, lambda them: them.full(_FULL), list[dict[str, Any]]())
        now = now_ms()
        return {"now": now, "series": [it | {"full": forecast(it, now, bounds)} for it in states], "missing": why}

    @routes.get("/api/entities")
    def entities() -> dict[str, Any]:
        reporting, _ = asked(beliefs, lambda them: them.machines(_NAMES), list[str]())
        names = {replicas_of(name) or name for name in (*store.entities(), *reporting)}  # a part of a name finds all
        return {"entities": sorted(names)[:_NAMES]}

    @routes.get("/api/status")
    def pipeline_status() -> dict[str, Any]:
        return {"now": now_ms(), "pipeline": status()}

    @routes.get("/api/budget")
    def budget() -> dict[str, Any]:
        now = now_ms()
        if promises is None or (first := store.budget.first_instant(now)) is None:
            return {"now": now, "promised": promises and asdict(promises), "since": None}
        since, (labels, missing) = max(first, now - SPAN), standing.labels()
        last = last_labels(labels)
        machines = list(dict.fromkeys(label["host.name"] for label in last))
        incidents, whole = store.budget.on_machines(machines, since, now)
        labelled = Labelled(last, now)
        series = next((job["keys"] for job in status().get("jobs", ()) if job["name"] == _JUDGES), None)
        return {
            "now": now, "since": since, "full": since == now - SPAN, "missing": missing,
            "promised": asdict(promises),
            "incidents": {"written": store.budget.written(since, now), "all_read": whole,
                          **counts([labelled.verdicts(incident) for incident in incidents])},
            "alarms": alarms(last, since, now), "judged": series,
        }  # fmt: skip

    @routes.get("/health")
    def health() -> JSONResponse:
        if problems := status().get("problems"):
            return JSONResponse({"status": "unavailable", "reasons": problems}, status_code=503)
        store.counts()  # unreachable: 503, by the app's handler of errors
        return JSONResponse({"status": "ok"})

    @routes.get("/metrics")
    def metrics() -> Response:
        return Response(metrics_text(status), media_type=CONTENT_TYPE_LATEST)

    return routes
