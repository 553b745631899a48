"""What the console takes from operators: labels, acknowledgements, maintenance."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from dashboards.console.actions import LONGEST_MAINTENANCE
from dashboards.console.speaking import Speaking
from dashboards.console.standing import Remembered
from dashboards.console.store import Store
from engine.clock import now_ms

_LAST = 4_102_444_800_000  # 2100

Name = Annotated[str, Field(min_length=1, max_length=512)]
Note = Annotated[str, Field(max_length=4_096)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Label(_Body):
    entity: Name
    metric: Name
    start: Annotated[int, Field(ge=0, le=_LAST)]
    verdict: Literal["expected_change", "new_normal", "false_alarm", "true"]
    note: Note = ""


class _IncidentLabel(_Body):
    incident: Name
    verdict: Literal["expected_change", "false_alarm", "true"]
    note: Note = ""


class _Acknowledgement(_Body):
    incident: Name
    active: bool = True
    by: Annotated[str, Field(max_length=200)] = ""
    note: Note = ""


class _Maintenance(_Body):
    entity: Name
    minutes: Annotated[int, Field(ge=0, le=LONGEST_MAINTENANCE)]
    note: Note = ""


def action_routes(store: Store, speaking: Speaking, standing: Remembered) -> APIRouter:
    """What operators say, below ``/api``.

    The paths are ``actions``, ``label``, ``incident/label``, ``acknowledgement``, ``maintenance`` and ``answer``.

    Args:
        store: Where the answers of the detector are read.
        speaking: Knows who may say something here.
        standing: Reads what was said before; it reads again after each message.
    """
    api = APIRouter(prefix="/api")

    @api.get("/actions")
    def possible(request: Request) -> dict[str, Any]:
        why = speaking.why_not(request)
        return {"possible": not why, "why": why, "by": speaking.by(request) or None}

    @api.post("/label")
    def label(body: _Label, request: Request) -> dict[str, Any]:
        writer, _ = speaking.writer(request)
        begin = writer.label(body.entity, body.metric, body.start, body.verdict, body.note)
        standing.forget()
        return {"from": begin}

    @api.post("/incident/label")
    def incident_label(body: _IncidentLabel, request: Request) -> dict[str, Any]:
        writer, _ = speaking.writer(request)
        if (incident := store.incidents.one(body.incident)) is None:
            raise HTTPException(404, "there is no such incident")
        rows = store.incidents.rows(incident, now_ms())
        novel = [(row["entity"], row["metric"], row["since"]) for row in rows]
        if not novel:
            raise HTTPException(404, "none of its series is known any more")
        begin = writer.labels(novel, body.verdict, body.note)
        standing.forget()
        return {"from": begin, "series": len(novel)}

    @api.post("/acknowledgement")
    def acknowledgement(body: _Acknowledgement, request: Request) -> dict[str, Any]:
        writer, user = speaking.writer(request)
        writer.acknowledge(body.incident, body.active, user or body.by, body.note)
        standing.forget()
        return {}

    @api.post("/maintenance")
    def maintenance(body: _Maintenance, request: Request) -> dict[str, Any]:
        writer, _ = speaking.writer(request)
        rule, end = writer.maintain(body.entity, body.minutes, body.note)
        standing.forget()
        return {"rule": rule, "until": end}

    @api.get("/answer")
    def answer(
        entity: Annotated[str, Query(min_length=1, max_length=512)],
        metric: Annotated[str, Query(max_length=512)],
        after: Annotated[int, Query(ge=0, le=_LAST)],
    ) -> dict[str, Any]:
        return {"verdict": store.one_series.last(entity, metric, after)}

    return api
