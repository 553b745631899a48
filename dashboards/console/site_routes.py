"""What the console answers about all machines together: how many report, which are learned, and their names."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from dashboards.console.belief import Beliefs, asked
from dashboards.console.store import Store
from engine.clock import now_ms

_NAMES = 1_000
"""The most names of machines that are suggested."""

_NOBODY: dict[str, Any] = {"machines": 0, "learning": [], "learning_count": 0, "last": None}


def site_routes(store: Store, beliefs: Beliefs | None) -> APIRouter:
    """The paths ``/api/site`` and ``/api/entities``.

    Args:
        store: Where novelties are read.
        beliefs: What the detector believes; ``None``: nobody can be asked.
    """
    api = APIRouter(prefix="/api")

    @api.get("/site")
    def site() -> dict[str, Any]:
        known, why = asked(beliefs, lambda them: them.site(), _NOBODY)
        last = max((at for at in (known["last"], store.last()) if at is not None), default=None)
        told = {name: known[name] for name in ("machines", "learning", "learning_count")}
        return {"now": now_ms(), **told, "last": last, "missing": why}

    @api.get("/entities")
    def entities() -> dict[str, Any]:
        reporting, _ = asked(beliefs, lambda them: them.machines(_NAMES), list[str]())
        return {"entities": sorted({*store.entities(), *reporting})[:_NAMES]}

    return api
