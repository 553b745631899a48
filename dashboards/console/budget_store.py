"""The queries of the console on its alarm budget: how many incidents were written, and those on labelled machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.console.search import Document, Reader, within

MAX_MACHINES = 1_000
"""The most machines whose incidents are looked at, those that were labelled last."""

MAX_INCIDENTS = 1_000
"""The most incidents on these that are looked at, the newest ones."""

_SHOWN = (
    "event.end", "machines.entity", "machines.since",
    "series.entity", "series.metric", "series.since", "series.end",
)  # fmt: skip


class BudgetStore(Reader):
    """Incidents and novelties in one Elasticsearch."""

    def first_instant(self, now: int) -> int | None:
        """The first instant of what is stored, epoch milliseconds; ``None`` if nothing is.

        Raises:
            NewnormalError: See `Search.answer` (so do all methods).
        """
        aggs = {field: {"min": {"field": field}} for field in ("window_start", "event.start")}
        both = f"{self._novelties},{self._incidents}"
        reply = self._search.answer(both, query=within(lte=now), size=0, aggs=aggs)
        times = [first["value"] for first in reply.get("aggregations", {}).values()]
        return min((int(time) for time in times if time is not None), default=None)

    def written(self, since: int, now: int) -> int:
        """How many incidents were first reported at ``since`` or later, without those merged into others."""
        reply = self._search.answer(self._incidents, query=_opened(since, now), size=0, track_total_hits=True)
        return int(reply["hits"].get("total", {}).get("value", 0))

    def on_machines(self, machines: Sequence[str], since: int, now: int) -> tuple[list[Document], bool]:
        """The incidents of `written` that were on some of the machines, the newest first, and whether these are all."""
        names = list(machines[:MAX_MACHINES])
        on = [{"terms": {field: names}} for field in ("machines.entity", "series.entity")]
        query: Document = {"bool": {"filter": [_opened(since, now), {"bool": {"should": on}}]}}
        shown: dict[str, Any] = {"sort": [{"@timestamp": "desc"}], "size": MAX_INCIDENTS + 1, "source_includes": _SHOWN}
        incidents = self._search.documents(self._incidents, query=query, **shown) if names else []
        return incidents[:MAX_INCIDENTS], len(incidents) <= MAX_INCIDENTS and len(machines) <= MAX_MACHINES


def _opened(since: int, now: int) -> Document:
    merged = {"term": {"incident.state": "merged"}}
    return {"bool": {"filter": [within(gte=since, lte=now)], "must_not": [merged]}}
