"""What the console answers about one series and about one machine: the pages of both."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from dashboards.console.belief import AskView, asked, completed
from dashboards.console.clock import now_ms
from dashboards.console.series_store import INCIDENTS, LINES, NEWS
from dashboards.console.sparks import SPARKS
from dashboards.console.store import Store

_HOUR, _DAY = 3_600_000, 86_400_000
_LAST = 4_102_444_800_000  # 2100
_EARLIER = (1, 7)
"""How many days before a time the same hours are shown, too."""
_SMALL = 300
"""Number of points in a small plot."""

Name = Annotated[str, Query(min_length=1, max_length=512)]


def series_routes(store: Store, view: AskView | None, zone: str) -> APIRouter:
    """The paths ``/api/series/page`` and ``/api/machine``.

    Args:
        store: Where novelties and incidents are read.
        view: Asks the state view; ``None``: nobody does.
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
        newest = store.one_series.last(entity, metric)
        seen, why = asked(view, entity, metric)
        windows, kind = seen["windows"], (newest or {}).get("metric_kind", "gauge")
        ends = [newest["@timestamp"]] if newest else []
        ends += [each["window_end"] for each in windows[-1:]]
        until = end or max(ends, default=now_ms())
        start = until - hours * _HOUR
        stored = store.series(entity, metric, start, until)
        earlier = []
        for days in _EARLIER:
            span = start - days * _DAY, until - days * _DAY
            points = completed(store.series(entity, metric, *span, _SMALL), windows, *span, kind)
            earlier.append({"days": days, "span": span, "series": points})
        return {
            "now": now_ms(), "zone": zone, "known": bool(ends), "span": (start, until), "hours": hours,
            "series": completed(stored, windows, start, until, kind), "earlier": earlier,
            "novelties": store.one_series.news(entity, metric, start, until), "most": NEWS,
            "incidents": store.one_series.incidents(entity),
            "view": {"state": seen["state"], "age": seen["age"], "missing": why},
        }  # fmt: skip

    @api.get("/machine")
    def machine(name: Name, hours: Annotated[int, Query(ge=1, le=720)] = 24) -> dict[str, Any]:
        now, of = now_ms(), store.one_series
        newest = of.last(name)
        end = max(now, newest["@timestamp"]) if newest else now
        start = end - hours * _HOUR
        listed, count = of.of_machine(name, start, end)
        return {
            "now": now, "hours": hours, "last": newest and newest["@timestamp"],
            "series": listed, "series_count": count, "sparks": SPARKS,
            "incidents": of.incidents(name), "logs": of.logs(name, start, end),
            "most": {"incidents": INCIDENTS, "logs": LINES},
        }  # fmt: skip

    return api
