"""The queries of the console to Elasticsearch, which read through the alias only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from dashboards.console.budget_store import BudgetStore
from dashboards.console.change_store import ChangeStore
from dashboards.console.heat_store import HeatStore
from dashboards.console.incident_store import IncidentStore
from dashboards.console.search import Document, Search, within
from dashboards.console.series_store import SeriesStore
from dashboards.console.similar_store import SimilarStore

POINTS = 1_500
"""Number of points in a plot; a longer series is summarised to about this number."""

_RECENT = 30
_SHOWN = ("@timestamp", "actual", "typical", "lower", "upper", "record_score", "kind")


class Store:
    """The novelties in one Elasticsearch.

    Args:
        url: ``http://host:port``; empty: there is none, as where own jobs run, and nothing is found.
        index: The alias they are read through.
        incidents: The alias that incidents are read through.
        changes: The alias that changes of the site are read through.
    """

    def __init__(
        self, url: str, index: str = "novelties", incidents: str = "incidents", changes: str = "changes"
    ) -> None:
        self._connection = Search(url)
        self._index = index
        self.incidents = IncidentStore(self._connection, incidents, index)
        self.budget = BudgetStore(self._connection, incidents, index)
        self.similar = SimilarStore(self._connection, incidents, index)
        self.heat = HeatStore(self._connection, incidents, index)
        self.one_series = SeriesStore(self._connection, incidents, index)
        self.changes = ChangeStore(self._connection, changes)

    def newest(
        self, kinds: Sequence[str] = (), entity: str = "", min_score: float = 0.0, limit: int = 100
    ) -> list[Document]:
        """The newest novelties, newest first; ``entity`` is part of a machine's name, in any case.

        Raises:
            NewnormalError: ``ELASTICSEARCH_UNREACHABLE``, ``ELASTICSEARCH_REFUSED`` if it wants another account, or
                ``ELASTICSEARCH_QUERY_REFUSED`` (so do all methods).
        """
        query = {"bool": {"filter": [*_kinds(kinds), *_entity(entity), _at_least("record_score", min_score)]}}
        sort = [{"@timestamp": "desc"}, {"record_score": "desc"}, {"host.name": "asc"}, {"metric": "asc"}]
        return self._hits(query=query, sort=sort, size=limit)

    def one(self, identity: str) -> Document | None:
        """The novelty with this `_id`."""
        return self._connection.first(self._index, query={"ids": {"values": [identity]}})

    def series(self, entity: str, metric: str, start: int, end: int, limit: int | None = None) -> list[Document]:
        """Actual, typical, lower, upper, score and kind of each window that ended from ``start`` to ``end``, in order.

        Of more than ``limit`` windows (at most, and by default, `POINTS`), summaries of equal spans: means, the widest
        band, the highest score.
        """
        query, most = _windows(entity, metric, end, start), min(limit or POINTS, POINTS)
        found = self._hits(query=query, sort=[{"@timestamp": "asc"}], size=most + 1, source_includes=_SHOWN)
        if len(found) <= most:
            return [{name: each.get(name) for name in _SHOWN} for each in found]
        return self._summary(query, start, (end - start) // most + 1)

    def pace(self, entity: str, metric: str, end: int) -> int:
        """Usual distance, in milliseconds, of the windows of a series up to ``end``; 0 if there are too few."""
        query = _windows(entity, metric, end)
        found = self._hits(query=query, sort=[{"@timestamp": "desc"}], size=_RECENT, source_includes=("@timestamp",))
        gaps = [later["@timestamp"] - earlier["@timestamp"] for later, earlier in pairwise(found)]
        return int(median(gaps)) if gaps else 0

    def _summary(self, query: Document, start: int, span_ms: int) -> list[Document]:
        functions = {"actual": "avg", "typical": "avg", "lower": "min", "upper": "max", "record_score": "max"}
        spans = {"fixed_interval": f"{span_ms}ms", "offset": f"{start % span_ms}ms", "min_doc_count": 1}
        buckets = {"date_histogram": {"field": "@timestamp", **spans}}
        values = {name: {function: {"field": name}} for name, function in functions.items()}
        reply = self._search(query=query, size=0, aggs={"spans": {**buckets, "aggs": values}})
        found = reply.get("aggregations", {}).get("spans", {}).get("buckets", [])
        return [
            {"@timestamp": span["key"], "kind": None, **{name: span[name]["value"] for name in functions}}
            for span in found
        ]

    def entities(self, limit: int = 1_000) -> list[str]:
        """Machines by name, those with most documents first kept."""
        return sorted(bucket["key"] for bucket in self._terms("host.name", limit))

    def last(self) -> int | None:
        """The end of the newest window that is stored, epoch milliseconds."""
        newest = self._connection.first(self._index, sort=[{"@timestamp": "desc"}], source_includes=["@timestamp"])
        return newest["@timestamp"] if newest else None

    def counts(self, entity: str = "", min_score: float = 0.0) -> dict[str, int]:
        """Documents of each kind among which `newest` chooses with these arguments."""
        query = {"bool": {"filter": [*_entity(entity), _at_least("record_score", min_score)]}}
        return {bucket["key"]: bucket["doc_count"] for bucket in self._terms("kind", 50, query)}

    def close(self) -> None:
        """Closes the connections."""
        self._connection.close()

    def _terms(self, field: str, size: int, query: Document | None = None) -> list[Document]:
        aggs = {"groups": {"terms": {"field": field, "size": size}}}
        reply = self._search(query=query or {"match_all": {}}, size=0, aggs=aggs)
        return list(reply.get("aggregations", {}).get("groups", {}).get("buckets", []))

    def _hits(self, **request: Any) -> list[Document]:
        return self._connection.documents(self._index, **request)

    def _search(self, **request: Any) -> Document:
        return self._connection.answer(self._index, **request)


def _windows(entity: str, metric: str, end: int, start: int | None = None) -> Document:
    """The windows of one series that ended by ``end``, and no sooner than ``start``."""
    span = within(lte=end) if start is None else within(gte=start, lte=end)
    return {"bool": {"filter": [{"term": {"host.name": entity}}, {"term": {"metric": metric}}, span]}}


def _kinds(kinds: Sequence[str]) -> list[Document]:
    return [{"terms": {"kind": list(kinds)}}] if kinds else []


def _entity(part: str) -> list[Document]:
    if not part:
        return []
    literal = re.sub(r"([*?\\])", r"\\\1", part)
    return [{"wildcard": {"host.name": {"value": f"*{literal}*", "case_insensitive": True}}}]


def _at_least(name: str, value: float) -> Document:
    return {"range": {name: {"gte": value}}}
