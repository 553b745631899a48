"""The queries of the console about incidents, and about the series that are in one."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.console.search import Document, Search, within
from dashboards.console.sparks import Sparks
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED

OPEN = ("open", "acknowledged", "reopened")
"""States of incidents that go on."""

SERIES = 200
"""The most series of one incident that are listed."""

PLOTTED = 60
"""The most series of one incident that have a small plot."""

_MOST = 100
"""The most machines of an incident, and the most metrics of each, among which these series are found."""


class IncidentStore:
    """The incidents in one Elasticsearch, and the novelties that are in them.

    Args:
        search: The connection.
        incidents: The alias that incidents are read through.
        novelties: The alias that novelties are read through.
    """

    def __init__(self, search: Search, incidents: str, novelties: str) -> None:
        self._search = search
        self._incidents = incidents
        self._novelties = novelties

    def listed(self, states: Sequence[str] = OPEN, limit: int = 100) -> list[Document]:
        """Incidents in some states: the most severe first, of equal severity the one that was reported last first.

        Raises:
            NewnormalError: see `Search.answer` (so do all methods).
        """
        query = {"terms": {"incident.state": list(states)}}
        sort = [{"event.risk_score": "desc"}, {"@timestamp": "desc"}, {"event.id": "asc"}]
        return self._search.documents(self._incidents, query=query, sort=sort, size=limit)

    def resolved(self, limit: int = 20) -> list[Document]:
        """The incidents that were resolved last, the newest end first."""
        query, sort = {"term": {"incident.state": "resolved"}}, [{"event.end": "desc"}, {"event.id": "asc"}]
        return self._search.documents(self._incidents, query=query, sort=sort, size=limit)

    def one(self, identity: str) -> Document | None:
        """The incident with this id (``event.id``)."""
        found = self._search.documents(self._incidents, query={"term": {"event.id": identity}}, size=1)
        return found[0] if found else None

    def series(self, machines: Sequence[str], start: int, end: int) -> list[Document]:
        """The series of some machines that had an alarm from ``start`` to ``end`` (epoch ms), in the order of onsets.

        Each is the first of its alarms in that time, with ``highest``, the highest score of them all. A machine's
        verdict over all metrics is left out if single series of that machine are among them.
        """
        alarms = [{"terms": {"host.name": list(machines)}}, {"terms": {"kind": list(ALARM_KINDS)}}]
        query = {"bool": {"filter": [*alarms, within(gte=start, lte=end)]}}
        first = {"top_hits": {"size": 1, "sort": [{"@timestamp": "asc"}]}}
        inside = {"onset": {"min": {"field": "@timestamp"}}, "highest": {"max": {"field": "record_score"}}}
        metrics = {"terms": _first_terms("metric"), "aggs": {**inside, "first": first}}
        aggs = {"machines": {"terms": _first_terms("host.name"), "aggs": {**inside, "metrics": metrics}}}
        reply = self._search.answer(self._novelties, query=query, size=0, aggs=aggs)
        of_machines = reply.get("aggregations", {}).get("machines", {}).get("buckets", [])
        found = [_first(bucket) for machine in of_machines for bucket in machine["metrics"]["buckets"]]
        single = {each["host.name"] for each in found if each["metric"] != JOINED}
        shown = [each for each in found if each["metric"] != JOINED or each["host.name"] not in single]
        return sorted(shown, key=lambda each: (each["@timestamp"], each["host.name"], each["metric"]))[:SERIES]

    def with_sparks(self, listed: list[Document], start: int, end: int) -> list[Document]:
        """Adds ``spark``, see `Sparks.pairs`, to the first `PLOTTED` of some series: all that is stored of them."""
        if not listed:
            return listed
        sparks, plotted = Sparks(start, end), listed[:PLOTTED]
        of_metrics = {"terms": {"field": "metric", "size": PLOTTED}, "aggs": {"spark": sparks.aggregation}}
        aggs = {"machines": {"terms": {"field": "host.name", "size": PLOTTED}, "aggs": {"metrics": of_metrics}}}
        query = {"bool": {"should": [_of(each) for each in plotted], "minimum_should_match": 1}}
        query = {"bool": {"filter": [query, within(gte=start, lte=end)]}}
        reply = self._search.answer(self._novelties, query=query, size=0, aggs=aggs)
        of_machines = reply.get("aggregations", {}).get("machines", {}).get("buckets", [])
        found = {
            (machine["key"], bucket["key"]): sparks.pairs(bucket["spark"])
            for machine in of_machines
            for bucket in machine["metrics"]["buckets"]
        }
        return [each | {"spark": found.get((each["host.name"], each["metric"]), [])} for each in listed]


def _of(series: Document) -> Document:
    """The documents on a series."""
    return {"bool": {"filter": [{"term": {name: series[name]}} for name in ("host.name", "metric")]}}


def _first_terms(field: str) -> Document:
    """The values of a field whose alarms began first."""
    return {"field": field, "size": _MOST, "order": {"onset": "asc"}}


def _first(bucket: Document) -> Document:
    hit = bucket["first"]["hits"]["hits"][0]
    return {"_id": hit["_id"], **hit["_source"], "highest": bucket["highest"]["value"]}
