"""What the console answers about the alarm budget: what was promised, and what labels say so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from dashboards.console.budget import SPAN, Labelled, Promises, alarms, counts, said_last
from dashboards.console.budget_store import BudgetStore
from dashboards.console.standing import Remembered
from engine.clock import now_ms

_JUDGES = "detector"
"""The job whose keys are the series that are judged."""


def budget_routes(
    store: BudgetStore, standing: Remembered, promises: Promises | None, status: Callable[[], dict[str, Any]]
) -> APIRouter:
    """The path ``/api/budget``.

    Args:
        store: Where incidents are counted.
        standing: What operators have said.
        promises: What was promised; ``None``: nothing, as where no incidents are stored.
        status: The pipeline's status, asked at each request; empty where no pipeline runs in this process.
    """
    api = APIRouter(prefix="/api")

    @api.get("/budget")
    def budget() -> dict[str, Any]:
        now = now_ms()
        if promises is None or (first := store.first_instant(now)) is None:
            return {"now": now, "promised": promises and asdict(promises), "since": None}
        since, (labels, missing) = max(first, now - SPAN), standing.labels()
        last = said_last(labels)
        machines = list(dict.fromkeys(each["host.name"] for each in last))
        incidents, whole = store.on_machines(machines, since, now)
        said = Labelled(last, now)
        judged = next((job["keys"] for job in status().get("jobs", ()) if job["name"] == _JUDGES), None)
        return {
            "now": now, "since": since, "full": since == now - SPAN, "missing": missing,
            "promised": asdict(promises),
            "incidents": {"written": store.written(since, now), "all_read": whole,
                          **counts([said.verdicts(each) for each in incidents])},
            "alarms": alarms(last, since, now), "judged": judged,
        }  # fmt: skip

    return api
