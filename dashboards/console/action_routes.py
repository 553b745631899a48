"""What the console takes from operators: labels, acknowledgements, maintenance."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from dashboards.console.access import Access
from dashboards.console.actions import LONGEST_MAINTENANCE, Actions
from dashboards.console.own_page import refused
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


def action_routes(store: Store, actions: Actions | None, access: Access, standing: Remembered) -> APIRouter:
    """What operators say, below ``/api``.

    The paths are ``actions``, ``label``, ``incident/label``, ``acknowledgement``, ``maintenance`` and ``answer``.

    Args:
        store: Where the answers of the detector are read.
        actions: Writes what operators say; ``None``: nothing can be said here.
        access: Knows who asks.
        standing: Reads what was said before; it reads again after each message.
    """
    api = APIRouter(prefix="/api")
    missing = "" if actions else "this console only shows: no pipeline takes messages from it"

    def checked_writer(request: Request) -> tuple[Actions, str]:
        """What writes messages, and the name of the operator if a proxy says it."""
        if actions is None:
            raise refused(missing, "a console of `newnormal run`, `newnormal demo` or `newnormal console`")
        if unnamed(request):
            raise refused(f"no proxy names the operator in {access.header}", f"a request with {access.header}")
        return actions, access.user(request)

    def unnamed(request: Request) -> bool:
        """Whether a proxy should name the operator, and nobody does."""
        return bool(access.header) and not access.user(request) and not access.knows(request)

    @api.get("/actions")
    def possible(request: Request) -> dict[str, Any]:
        why = missing or (f"no proxy names you in {access.header}" if unnamed(request) else "")
        return {"possible": not why, "why": why, "by": access.user(request) or None}

    @api.post("/label")
    def label(body: _Label, request: Request) -> dict[str, Any]:
        writer, _ = checked_writer(request)
        begin = writer.label(body.entity, body.metric, body.start, body.verdict, body.note)
        standing.forget()
        return {"from": begin}

    @api.post("/incident/label")
    def incident_label(body: _IncidentLabel, request: Request) -> dict[str, Any]:
        writer, _ = checked_writer(request)
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
        writer, user = checked_writer(request)
        writer.acknowledge(body.incident, body.active, user or body.by, body.note)
        standing.forget()
        return {}

    @api.post("/maintenance")
    def maintenance(body: _Maintenance, request: Request) -> dict[str, Any]:
        writer, _ = checked_writer(request)
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
