"""What the console takes from operators: labels, acknowledgements, maintenance."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from dashboards.console.actions import LONGEST_MAINTENANCE, Actions
from dashboards.console.hosts import is_loopback
from dashboards.console.store import Store
from engine.spec.errors import NewnormalError

HEADER = "X-Newnormal"
"""A page of another site cannot send this header, as the console never allows it to."""

_SAME = frozenset({"same-origin", "none"})
_LAST = 4_102_444_800_000  # 2100

Name = Annotated[str, Field(min_length=1, max_length=512)]
Note = Annotated[str, Field(max_length=4_096)]


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Label(_Said):
    entity: Name
    metric: Name
    start: Annotated[int, Field(ge=0, le=_LAST)]
    verdict: Literal["expected_change", "new_normal", "false_alarm", "true"]
    note: Note = ""


class _Acknowledgement(_Said):
    incident: Name
    active: bool = True
    by: Annotated[str, Field(max_length=200)] = ""
    note: Note = ""


class _Maintenance(_Said):
    entity: Name
    minutes: Annotated[int, Field(ge=0, le=LONGEST_MAINTENANCE)]
    note: Note = ""


def action_routes(store: Store, actions: Actions | None, listening: str, user_header: str) -> APIRouter:
    """The paths ``/api/actions``, ``/api/label``, ``/api/acknowledgement``, ``/api/maintenance`` and ``/api/answer``.

    Args:
        store: Where the answers of the detector are read.
        actions: Writes what operators say; ``None``: nothing can be said here.
        listening: The address that the console listens on.
        user_header: The header in which a proxy names the operator who has logged in; empty: there is no such proxy.
    """
    api = APIRouter(prefix="/api")
    missing = _missing(actions, listening, user_header)

    def said(request: Request) -> tuple[Actions, str]:
        """What writes messages, and the name of the operator if a proxy says it."""
        if actions is None or missing:
            raise _refusal(missing, "a console of `newnormal run`, `newnormal demo` or `newnormal console`")
        _same_page(request)
        user = request.headers.get(user_header, "")[:200] if user_header else ""
        if user_header and not user:
            raise _refusal(f"the proxy names no operator in {user_header}", f"a request with the header {user_header}")
        return actions, user

    @api.get("/actions")
    def possible(request: Request) -> dict[str, Any]:
        return {
            "possible": not missing,
            "why": missing,
            "by": request.headers.get(user_header) if user_header else None,
        }

    @api.post("/label")
    def label(told: _Label, request: Request) -> dict[str, Any]:
        writer, _ = said(request)
        return {"from": writer.label(told.entity, told.metric, told.start, told.verdict, told.note)}

    @api.post("/acknowledgement")
    def acknowledgement(told: _Acknowledgement, request: Request) -> dict[str, Any]:
        writer, user = said(request)
        writer.acknowledge(told.incident, told.active, user or told.by, told.note)
        return {}

    @api.post("/maintenance")
    def maintenance(told: _Maintenance, request: Request) -> dict[str, Any]:
        writer, _ = said(request)
        rule, end = writer.maintain(told.entity, told.minutes, told.note)
        return {"rule": rule, "until": end}

    @api.get("/answer")
    def answer(
        entity: Annotated[str, Query(min_length=1, max_length=512)],
        metric: Annotated[str, Query(max_length=512)],
        after: Annotated[int, Query(ge=0, le=_LAST)],
    ) -> dict[str, Any]:
        return {"verdict": store.after(entity, metric, after)}

    return api


def _missing(actions: Actions | None, listening: str, user_header: str) -> str:
    """Why operators can say nothing here; empty if they can."""
    if actions is None:
        return "this console only shows: no pipeline takes messages from it"
    if not is_loopback(listening) and not user_header:
        return f"it listens at {listening}, where anybody may ask, and no proxy says who asks (console.user_header)"
    return ""


def _same_page(request: Request) -> None:
    """Refuses a request that another page than ours may have sent: cross-site request forgery."""
    headers, host = request.headers, request.headers.get("host", "")
    origin = headers.get("origin")
    alien = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    if alien or headers.get("sec-fetch-site", "same-origin") not in _SAME:
        raise _refusal("the request comes from a page of another site", "a request from the console's own page")
    if headers.get(HEADER) != "console":
        raise _refusal(f"the header {HEADER} is missing", f"{HEADER}: console")


def _refusal(what: str, accepted: str) -> NewnormalError:
    return NewnormalError("ACTION_REFUSED", what, "console", accepted, "nothing was written")
