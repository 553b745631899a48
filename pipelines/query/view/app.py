"""The HTTP interface of the view: states, last windows, the most abnormal series, counts; described by OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import RedirectResponse

from engine.spec.errors import NewnormalError
from pipelines.query.view.answers import NEEDED, Answers
from pipelines.query.view.client import MOST
from pipelines.query.view.guard import cursor, decoded, following, guarded
from pipelines.query.view.scores.scraped import score_routes

_ABOUT = (
    "What the detector believes of each series, and the last windows of each. Names in a path are percent-encoded, "
    "a slash as %2F; they may be in the query instead (/state?entity=..&metric=..). `age` says how old an answer is."
)
Entity = Annotated[str, Query(description="the machine")]
Metric = Annotated[str, Query(description="the metric; _machine: all metrics of the machine together")]
Number = Annotated[int, Query(ge=1, le=MOST, description="how many windows at most")]


def create_app(
    view: Answers,
    promoted: Callable[[], str | None] = lambda: None,
    peers: Sequence[str] = (),
    listening: str = "127.0.0.1",
    hosts: Collection[str] = (),
    token: str = "",
    reached: str = "127.0.0.1",
    folder: Path | None = None,
) -> FastAPI:
    """The application.

    Args:
        view: What answers.
        promoted: Gives the name of the version that readers see; ``None``: not known.
        peers: The URLs of the processes of all parts, in order; empty: not known.
        listening: The address that it listens on.
        hosts: Further names that it is reached by, see `pipelines.serving.hosts`.
        token: What who asks must know; empty: nothing, so that nobody is answered where others reach the view.
        reached: The address that decides who reaches it.
        folder: The folder of the view's part, which says how far scores were pushed; ``None``: they are not.
    """
    app = guarded("Newnormal state view", _ABOUT, listening, hosts, token, reached)
    app.include_router(score_routes(view, folder))

    def answered(answer: dict[str, Any], entity: str | None = None) -> Response:
        shown = promoted()
        age: dict[str, Any] = view.age(entity) | {"version": view.settings.version}
        if shown and shown != view.settings.version:
            age |= {"promoted": shown, "restart": f"readers see {shown} now: restart the view"}
        whole = orjson.dumps({**answer, "age": age, "part": str(view.part)})
        return Response(whole, media_type="application/json")

    def elsewhere(entity: str, request: Request) -> Response | None:
        """The answer for a machine that another process owns."""
        partition = view.partition(entity)
        if view.part.owns(partition):
            return None
        owner = partition % view.part.of
        if len(peers) == view.part.of:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(peers[owner].rstrip("/") + request.scope["path"] + query, 307)
        what = f"part {owner + 1}/{view.part.of} has this machine; this process has part {view.part}"
        raise NewnormalError("VIEW_ELSEWHERE", what, "newnormal view --peer", "the URL of that part")

    def state_of(entity: str, metric: str, request: Request) -> Response:
        if answer := elsewhere(entity, request):
            return answer
        state = view.state(entity, metric)
        if state is None:
            raise _unknown(entity, metric)
        return answered({"state": state}, entity)

    def windows_of(entity: str, metric: str, n: int, request: Request) -> Response:
        if answer := elsewhere(entity, request):
            return answer
        windows = view.windows(entity, metric, n)
        if not windows:
            raise _unknown(entity, metric)
        return answered({"windows": windows, "needed": NEEDED}, entity)

    @app.get("/state/{entity}/{metric}", summary="what is believed of a series")
    async def state(entity: str, metric: str, request: Request) -> Response:
        return state_of(decoded(entity), decoded(metric), request)

    @app.get("/state", summary="the same, with names in the query")
    async def state_by_query(entity: Entity, metric: Metric, request: Request) -> Response:
        return state_of(entity, metric, request)

    @app.get("/windows/{entity}/{metric}", summary="the last windows of a series, with the verdicts known on them")
    async def windows(entity: str, metric: str, request: Request, n: Number = 60) -> Response:
        return windows_of(decoded(entity), decoded(metric), n, request)

    @app.get("/windows", summary="the same, with names in the query")
    async def windows_by_query(entity: Entity, metric: Metric, request: Request, n: Number = 60) -> Response:
        return windows_of(entity, metric, n, request)

    @app.get("/states", summary="the states of a machine's series, or of machines whose names begin with a text")
    async def states(
        request: Request,
        entity: Annotated[str, Query(description="exactly this machine")] = "",
        prefix: Annotated[str, Query(description="machines whose names begin so; empty: all")] = "",
        after: Annotated[str, Query(description="`next` of the page before")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> Response:
        if entity and (answer := elsewhere(entity, request)):
            return answer
        states, end = view.range(entity or prefix, bool(entity), cursor(after), limit)
        return answered({"states": states, "next": following(end)}, entity or None)

    @app.get("/top", summary="the most abnormal series now, the highest score first")
    async def top(k: Annotated[int, Query(ge=1, le=MOST)] = 10) -> Response:
        return answered({"states": view.top(k)})

    @app.get("/full", summary="the series that will be full, the next first")
    async def full(k: Annotated[int, Query(ge=1, le=MOST)] = 10) -> Response:
        return answered({"states": view.full(k)})

    @app.get("/counts", summary="how many series there are, by kind of their last verdict")
    async def counts() -> Response:
        return answered({"counts": view.counts()})

    @app.get("/site", summary="how many machines report, which are still learned, and until when there are data")
    async def site() -> Response:
        return answered(view.site())

    @app.get("/machines", summary="names of the machines")
    async def machines(limit: Annotated[int, Query(ge=1, le=MOST)] = 1_000) -> Response:
        return answered({"machines": view.machines(limit)})

    @app.get("/machine", summary="the series of a machine, each with its last state and its last windows")
    async def machine(entity: Entity, request: Request, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> Response:
        if answer := elsewhere(entity, request):
            return answer
        return answered({"series": view.machine(entity, limit)}, entity)

    @app.get("/health", summary="how far the view has read, and whether it must be restarted")
    async def health() -> Response:
        beat = view.heartbeat()
        read = {"messages": beat.messages, "refused": beat.refused}
        return answered({"partitions": view.own_partitions(), "of": view.partitions, **read})

    return app


def _unknown(entity: str, metric: str) -> NewnormalError:
    what = f"nothing is known of metric {metric!r} of {entity!r}"
    return NewnormalError(
        "VIEW_SERIES_UNKNOWN", what, "view", "a series that the detector has judged; /states lists them"
    )
