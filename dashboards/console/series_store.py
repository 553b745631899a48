"""The queries of the console about one series and about one machine."""

from __future__ import annotations

from dashboards.console.search import Document, Reader, within
from dashboards.console.sparks import Sparks
from pipelines.contracts.records.novelty import ALARM_KINDS, NEWS_KINDS

NEWS = 100
"""The most novelties of a series that are listed."""

LISTED = 100
"""The most series of a machine that are listed."""

INCIDENTS = 20
"""The most incidents of a machine that are listed."""

LINES = 20
"""The most log novelties of a machine that are listed."""

_LOGS = "logs"
_NEWEST = [{"@timestamp": "desc"}]


class SeriesStore(Reader):
    """Series and machines in one Elasticsearch."""

    def last(self, entity: str, metric: str = "", after: int = 0) -> Document | None:
        """The newest verdict on a series or, without a metric, on any series of a machine, in windows that ended later.

        Raises:
            NewnormalError: see `Search.answer` (so do all methods).
        """
        of = [_machine(entity), *([{"term": {"metric": metric}}] if metric else [])]
        query = {"bool": {"filter": [*of, within(gt=after)]}}
        return self._search.first(self._novelties, query=query, sort=_NEWEST)

    def news(self, entity: str, metric: str, start: int, end: int) -> list[Document]:
        """What was novel in a series in windows that ended from ``start`` to ``end`` (epoch ms), the newest first."""
        of = [_machine(entity), {"term": {"metric": metric}}, {"terms": {"kind": list(NEWS_KINDS)}}]
        query = {"bool": {"filter": [*of, within(gte=start, lte=end)]}}
        return self._search.documents(self._novelties, query=query, sort=_NEWEST, size=NEWS)

    def logs(self, entity: str, start: int, end: int) -> list[Document]:
        """What was novel in the log of a machine, the newest first."""
        of = [_machine(entity), {"term": {"metric": _LOGS}}, {"terms": {"kind": list(ALARM_KINDS)}}]
        query = {"bool": {"filter": [*of, within(gte=start, lte=end)]}}
        return self._search.documents(self._novelties, query=query, sort=_NEWEST, size=LINES)

    def first(self, entity: str, start: int, end: int) -> int | None:
        """End of the first stored window of a machine from ``start`` to ``end``, epoch ms."""
        query = {"bool": {"filter": [_machine(entity), within(gte=start, lte=end)]}}
        earliest = self._search.first(self._novelties, query=query, sort=[{"@timestamp": "asc"}])
        return earliest["@timestamp"] if earliest else None

    def of_machine(self, entity: str, start: int, end: int, sparks: Sparks) -> tuple[list[Document], int]:
        """The series of a machine that have a document from ``start`` to ``end``, the most novel first.

        Args:
            entity: The machine.
            start: First instant, epoch ms.
            end: Last instant.
            sparks: The time of the small plots.

        Returns:
            The newest document of each of the first `LISTED` series, with ``highest``, the highest score of its alarms
            (``None`` if it has none), and ``spark``: pairs of the number of each of `SPARKS` equal spans of time and
            the mean value in it; and about how many series there are.
        """
        highest = {"highest": {"max": {"field": "record_score"}}}
        alarms = {"filter": {"terms": {"kind": list(ALARM_KINDS)}}, "aggs": highest}
        newest = {"top_hits": {"size": 1, "sort": _NEWEST}}
        order = [{"alarms>highest": "desc"}, {"_key": "asc"}]
        terms = {"field": "metric", "size": LISTED, "order": order}
        aggs = {
            "series": {"terms": terms, "aggs": {"alarms": alarms, "newest": newest, "spark": sparks.aggregation}},
            "count": {"cardinality": {"field": "metric"}},
        }
        query = {"bool": {"filter": [_machine(entity), within(gte=start, lte=end)]}}
        reply = self._search.answer(self._novelties, query=query, size=0, aggs=aggs).get("aggregations", {})
        found = [_newest(bucket, sparks) for bucket in reply.get("series", {}).get("buckets", [])]
        return found, max(len(found), reply.get("count", {}).get("value", 0))

    def incidents(self, entity: str) -> list[Document]:
        """The incidents that a machine is in: those that go on first, then those that ended last."""
        merged = {"term": {"incident.state": "merged"}}
        query = {"bool": {"filter": [{"term": {"machines.entity": entity}}], "must_not": [merged]}}
        sort = [{"event.end": {"order": "desc", "missing": "_first"}}, {"event.risk_score": "desc"}]
        return self._search.documents(self._incidents, query=query, sort=[*sort, {"event.id": "asc"}], size=INCIDENTS)


def _machine(entity: str) -> Document:
    return {"term": {"host.name": entity}}


def _newest(bucket: Document, sparks: Sparks) -> Document:
    hit, spark = bucket["newest"]["hits"]["hits"][0], sparks.pairs(bucket["spark"])
    return {"_id": hit["_id"], **hit["_source"], "highest": bucket["alarms"]["highest"]["value"], "spark": spark}
