"""The HTTP interface of a view of topics that jobs of one's own write; described by OpenAPI."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Response

from engine.spec.errors import NewnormalError
from pipelines.query.view.client import MOST
from pipelines.query.view.guard import cursor, decoded, following, guarded
from pipelines.query.view.rows import Rows

_ABOUT = (
    "The last row of each key of topics that jobs write. Names in a path are percent-encoded, a slash as %2F; they may "
    "be in the query instead (/row?topic=..&key=..). `age` says how old an answer is."
)


def create_rows_app(
    rows: Rows,
    topics: Collection[str],
    listening: str = "127.0.0.1",
    hosts: Collection[str] = (),
    token: str = "",
    reached: str = "127.0.0.1",
) -> FastAPI:
    """The application.

    Args:
        rows: What answers.
        topics: The names of the topics.
        listening: The address that it listens on.
        hosts: Further names that it is reached by, see `pipelines.serving.hosts`.
        token: What who asks must know; empty: nothing, so that nobody is answered where others reach the view.
        reached: The address that decides who reaches it.
    """
    app = guarded("Newnormal view of topics", _ABOUT, listening, hosts, token, reached)

    def answered(answer: dict[str, Any]) -> Response:
        return Response(orjson.dumps({**answer, "age": rows.age()}), media_type="application/json")

    def row_of(topic: str, key: str) -> Response:
        found = rows.row(topic, key)
        if found is None:
            what = f"topic {topic!r} has no row of the key {key!r}"
            raise NewnormalError("VIEW_ROW_UNKNOWN", what, "view", f"a key of {', '.join(topics)}")
        return answered({"row": found})

    @app.get("/rows/{topic}/{key}", summary="the last row of a key")
    async def row(topic: str, key: str) -> Response:
        return row_of(decoded(topic), decoded(key))

    @app.get("/row", summary="the same, with names in the query")
    async def row_by_query(topic: str, key: str) -> Response:
        return row_of(topic, key)

    @app.get("/rows/{topic}", summary="the last rows of all keys, or of those that begin with a text")
    async def page(
        topic: str,
        prefix: Annotated[str, Query(description="keys that begin so; empty: all")] = "",
        after: Annotated[str, Query(description="`next` of the page before")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> Response:
        found, end = rows.page(decoded(topic), prefix, cursor(after), limit)
        return answered({"rows": found, "next": following(end)})

    @app.get("/health", summary="how far the view has read")
    async def health() -> Response:
        beat = rows.heartbeat()
        return answered({"topics": list(topics), "messages": beat.messages, "refused": beat.refused})

    return app
