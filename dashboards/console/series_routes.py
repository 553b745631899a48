"""What the console answers about one series and about one machine: the pages of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query

from dashboards.console.belief import NOTHING, Beliefs, asked, completed
from dashboards.console.change_store import MOST
from dashboards.console.filling import forecast
from dashboards.console.machine_series import listed
from dashboards.console.search import Document
from dashboards.console.series_store import INCIDENTS, LINES, LISTED, NEWS
from dashboards.console.sparks import SPARKS, Sparks
from dashboards.console.standing import Remembered
from dashboards.console.store import Store
from engine.clock import now_ms
from pipelines.contracts.bounds import Bounds
from pipelines.contracts.records.novelty import UNTIL_FULL

_HOUR, _DAY = 3_600_000, 86_400_000
_LAST = 4_102_444_800_000  # 2100
_EARLIER = (1, 7)
"""How many days before a time the same hours are shown, too."""
_SMALL = 300
"""Number of points in a small plot."""

FILLING = 8
"""So many series of a machine are listed that will be full next."""

Name = Annotated[str, Query(min_length=1, max_length=512)]
Instant = Annotated[int, Query(ge=0, le=_LAST)]


def series_routes(store: Store, beliefs: Beliefs | None, standing: Remembered, bounds: Bounds, zone: str) -> APIRouter:
    """The paths ``/api/series/page``, ``/api/machine`` and ``/api/changes``.

    Args:
        store: Where novelties and incidents are read.
        beliefs: What the detector believes; ``None``: nobody can be asked.
        standing: Knows what machines run on.
        bounds: The bounds of metrics.
        zone: IANA name of the operator's time zone.
    """
    api = APIRouter(prefix="/api")

    @api.get("/series/page")
    def series(
        entity: Name,
        metric: Name,
        hours: Annotated[int, Query(ge=1, le=168)] = 1,
        end: Annotated[int | None, Query(ge=_DAY * 15, le=_LAST)] = None,
    ) -> dict[str, Any]:
        of = metric.removesuffix(UNTIL_FULL)  # what is told of when a metric is full is shown with its values
        newest = store.one_series.last(entity, of)
        seen, why = asked(beliefs, lambda them: them.series(entity, of), NOTHING)
        windows = seen["windows"]
        ends = [newest["@timestamp"]] if newest else []
        ends += [window["window_end"] for window in windows[-1:]]
        until = end or max(ends, default=now_ms())
        start = until - hours * _HOUR
        points = completed(store.series(entity, of, start, until), windows, start, until)
        axis = (points[0]["@timestamp"], until) if points else (start, until)
        earlier = []
        for days in _EARLIER:
            span = start - days * _DAY, until - days * _DAY
            before = completed(store.series(entity, of, *span, _SMALL), windows, *span)
            earlier += [{"days": days, "span": span, "series": before}] if before else []
        return {
            "now": now_ms(), "zone": zone, "known": bool(ends), "span": (start, until), "axis": axis, "hours": hours,
            "metric_kind": _kind(newest, windows), "series": points, "earlier": earlier,
            "novelties": store.one_series.news(entity, metric, start, until), "most": NEWS,
            "incidents": store.one_series.incidents(entity),
            "full": None if end else forecast(seen["state"], until, bounds),
            "view": {"state": seen["state"], "age": seen["age"], "missing": why,
                     "windows": len(windows), "needed": seen["needed"]},
        }  # fmt: skip

    @api.get("/machine")
    def machine(name: Name, hours: Annotated[int, Query(ge=1, le=720)] = 24) -> dict[str, Any]:
        now, of = now_ms(), store.one_series
        believed, why = asked(beliefs, lambda them: them.machine(name, LISTED), list[dict[str, Any]]())
        ends = [series["windows"][-1]["window_end"] for series in believed if series["windows"]]
        ends += [newest["@timestamp"]] if (newest := of.last(name)) else []
        last = max(ends, default=None)
        end = max(now, last or 0)
        start = end - hours * _HOUR
        begins = [at for it in believed for at in (window["window_end"] for window in it["windows"]) if at >= start]
        begins += [at] if (at := of.first(name, start, end)) else []
        span = min(begins, default=start), max([last or end, *begins])
        sparks = Sparks(*span)
        stored, count = of.of_machine(name, start, end, sparks)
        rows = listed(stored, believed, sparks)
        full = [(each["metric"], forecast(each["state"], last or now, bounds)) for each in believed]
        filling = [{"metric": metric, **found} for metric, found in full if found and found["latest"]]
        return {
            "now": now, "hours": hours, "last": last, "span": span, "missing": why,
            "series": rows[:LISTED], "series_count": max(count, len(rows)), "sparks": SPARKS,
            "filling": sorted(filling, key=lambda each: (each["median"], each["metric"]))[:FILLING],
            "incidents": of.incidents(name), "logs": of.logs(name, start, end),
            "most": {"incidents": INCIDENTS, "logs": LINES},
        }  # fmt: skip

    @api.get("/changes")
    def changes(machine: Name, start: Instant, end: Instant) -> dict[str, Any]:
        above = standing.above(machine)
        return {"changes": store.changes.on([machine, *above], start, end), "above": above, "most": MOST}

    return api


def _kind(newest: Document | None, windows: Sequence[Document]) -> str:
    """The kind of a metric, which decides the unit of its values."""
    kinds = [document.get("metric_kind") for document in ([newest] if newest else []) + list(windows[-1:])]
    return str(next((kind for kind in kinds if kind), "gauge"))
