"""The queries of the console about how many incidents were written, and which of them operators have labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.console.search import Document, Reader, within

NAMES = 1_000
"""The most machines whose incidents are looked at, those that were labelled last."""

READ = 1_000
"""The most incidents on these that are looked at, the newest ones."""

_SHOWN = (
    "event.end", "machines.entity", "machines.since",
    "series.entity", "series.metric", "series.since", "series.end",
)  # fmt: skip


class BudgetStore(Reader):
    """Incidents and novelties in one Elasticsearch."""

    def first(self, now: int) -> int | None:
        """The first instant of what is stored, epoch milliseconds; ``None`` if nothing is.

        Raises:
            NewnormalError: See `Search.answer` (so do all methods).
        """
        aggs = {field: {"min": {"field": field}} for field in ("window_start", "event.start")}
        both = f"{self._novelties},{self._incidents}"
        reply = self._search.answer(both, query=within(lte=now), size=0, aggs=aggs)
        found = [each["value"] for each in reply.get("aggregations", {}).values()]
        return min((int(each) for each in found if each is not None), default=None)

    def written(self, since: int, now: int) -> int:
        """How many incidents were first reported at ``since`` or later; parts of other ones do not count."""
        reply = self._search.answer(self._incidents, query=_opened(since, now), size=0, track_total_hits=True)
        return int(reply["hits"].get("total", {}).get("value", 0))

    def on(self, machines: Sequence[str], since: int, now: int) -> tuple[list[Document], bool]:
        """Those of them that were on some of the machines, the newest first, and whether these are all."""
        names = list(machines[:NAMES])
        some = [{"terms": {field: names}} for field in ("machines.entity", "series.entity")]
        query: Document = {"bool": {"filter": [_opened(since, now), {"bool": {"should": some}}]}}
        shown: dict[str, Any] = {"sort": [{"@timestamp": "desc"}], "size": READ + 1, "source_includes": _SHOWN}
        found = self._search.documents(self._incidents, query=query, **shown) if names else []
        return found[:READ], len(found) <= READ and len(machines) <= NAMES


def _opened(since: int, now: int) -> Document:
    merged = {"term": {"incident.state": "merged"}}
    return {"bool": {"filter": [within(gte=since, lte=now)], "must_not": [merged]}}
