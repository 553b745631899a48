"""What the console answers about novelties, and about the series and machines around them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from dashboards.console.belief import NOTHING, Beliefs, asked, completed
from dashboards.console.filling import forecast
from dashboards.console.search import Document
from dashboards.console.store import POINTS, Store
from dashboards.console.words import change
from engine.clock import now_ms
from pipelines.contracts.bounds import Bounds
from pipelines.contracts.explanations import explain
from pipelines.contracts.records.novelty import UNTIL_FULL, NoveltyKind

_BEFORE, _AFTER = 90, 30  # windows shown around a novelty
_QUIET = 60  # windows shown before its onset
_LONG = 1_000  # windows: an onset that is longer ago is not shown
_FILLING = 120_000
"""Distance of the windows as if they were so far apart where it is shown how something fills, milliseconds."""
_LAST = 4_102_444_800_000  # 2100
_LONGEST = 3_660 * 86_400_000  # ten years

Name = Annotated[str, Query(min_length=1, max_length=512)]
Time = Annotated[int, Query(ge=0, le=_LAST)]


def novelty_routes(store: Store, beliefs: Beliefs | None, bounds: Bounds, zone: str) -> APIRouter:
    """The paths ``/api/novelties``, ``/api/novelty`` and ``/api/series``.

    Args:
        store: Where novelties are read.
        beliefs: What the detector believes; ``None``: nobody can be asked.
        bounds: The bounds of metrics.
        zone: IANA name of the time zone in which explanations tell instants.
    """
    api = APIRouter(prefix="/api")

    @api.get("/novelties")
    def novelties(
        kind: Annotated[list[NoveltyKind] | None, Query()] = None,
        entity: Annotated[str, Query(max_length=512)] = "",
        min_score: Annotated[float, Query(ge=0, le=100)] = 0.0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> dict[str, Any]:
        newest = [it | {"what": change(it)} for it in store.newest(kind or (), entity, min_score, limit)]
        return {"now": now_ms(), "novelties": newest, "counts": store.counts(entity, min_score)}

    @api.get("/novelty")
    def novelty(
        id: Annotated[str, Query(max_length=512)], zoom: Annotated[int, Query(ge=1, le=256)] = 1
    ) -> dict[str, Any]:
        shown = store.one(id)
        if shown is None:
            raise HTTPException(404, "there is no such novelty")
        end, place = shown["@timestamp"], (shown["host.name"], shown["metric"].removesuffix(UNTIL_FULL))
        full = forecast(shown | {"metric": place[1]}, end, bounds)
        width = max(1, end - shown["window_start"], store.pace(*place, end), _FILLING if full else 0)
        start = end - _BEFORE * width * zoom
        if end - _LONG * width < (onset := shown.get("since") or end):
            start = min(start, onset - (_QUIET + 1) * width)
        span = max(0, start), min(_LAST, end + _AFTER * width * zoom)
        points = store.series(*place, *span)
        if place[1] != shown["metric"]:  # of its own it has no windows but those in which something was told
            seen, _ = asked(beliefs, lambda them: them.series(*place), NOTHING)
            points = _with(completed(points, seen["windows"], *span), shown)
        answer = {"novelty": shown, "explanation": explain(shown, zone), "span": span, "series": points, "zone": zone}
        return {"now": now_ms(), "full": full, **answer}

    @api.get("/series")
    def series(
        entity: Name, metric: Name, start: Time, end: Time, limit: Annotated[int, Query(ge=1, le=POINTS)] = POINTS
    ) -> dict[str, Any]:
        if not 0 <= end - start <= _LONGEST:
            raise HTTPException(422, "start lies after end, or more than ten years before it")
        return {"series": store.series(entity, metric, start, end, limit)}

    return api


def _with(points: list[Document], shown: Document) -> list[Document]:
    """Windows of a series, and among them that of a verdict, with its kind."""
    others = [point for point in points if point["@timestamp"] != shown["@timestamp"]]
    mine = {name: shown.get(name) for name in ("@timestamp", "actual", "kind", "record_score")}
    known = next((point for point in points if point["@timestamp"] == shown["@timestamp"]), {})
    return sorted([*others, known | mine], key=lambda point: point["@timestamp"])
