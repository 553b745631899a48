"""The queries of the console about incidents, and about the series that are in one."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.console.bands import Point, bands, step
from dashboards.console.incident_series import judged_as, over_since, strongest
from dashboards.console.incident_series import rows as incident_rows
from dashboards.console.search import Document, Reader, within
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED

OPEN = ("open", "acknowledged", "reopened")
"""States of incidents that go on."""

SERIES = 200
"""The most series of one incident that are listed."""

PLOTTED = 60
"""The most series of one incident that have a small plot."""

CARDS = 12
"""The most open incidents that have a plot in the overview."""

_BEFORE, _AFTER = 300_000, 120_000
"""How much before and after an incident its plots show at least, milliseconds."""

_MOST = 100
"""The most machines of an incident, and the most metrics of each, among which these series are found."""


class IncidentStore(Reader):
    """The incidents in one Elasticsearch, and the novelties that are in them."""

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
        return self._search.first(self._incidents, query={"term": {"event.id": identity}})

    def series(self, machines: Sequence[str], start: int, end: int) -> list[Document]:
        """The series of some machines that had an alarm from ``start`` to ``end`` (epoch ms), in the order of onsets.

        Each is the first of its alarms in that time, with ``highest``, the highest score of them all. A machine's
        verdict over all metrics is left out if single series of that machine are among them, but for one that it has
        sent nothing: that stands first.
        """
        only = [{"terms": {"host.name": list(machines)}}, {"terms": {"kind": list(ALARM_KINDS)}}]
        query = {"bool": {"filter": [*only, within(gte=start, lte=end)]}}
        first = {"top_hits": {"size": 1, "sort": [{"@timestamp": "asc"}]}}
        inside = {"onset": {"min": {"field": "@timestamp"}}, "highest": {"max": {"field": "record_score"}}}
        metrics = {"terms": _first_terms("metric"), "aggs": {**inside, "first": first}}
        aggs = {"machines": {"terms": _first_terms("host.name"), "aggs": {**inside, "metrics": metrics}}}
        reply = self._search.answer(self._novelties, query=query, size=0, aggs=aggs)
        of_machines = reply.get("aggregations", {}).get("machines", {}).get("buckets", [])
        alarms = [_first(bucket) for machine in of_machines for bucket in machine["metrics"]["buckets"]]
        single = {alarm["host.name"] for alarm in alarms if alarm["metric"] != JOINED}
        shown = [it for it in alarms if _silent(it) or it["metric"] != JOINED or it["host.name"] not in single]
        return sorted(shown, key=_order)[:SERIES]

    def rows(self, incident: Document, now: int) -> list[Document]:
        """The series of an incident, as `dashboards.console.incident_series.rows` gives them."""
        machines = [machine["entity"] for machine in incident.get("machines", ())]
        end = incident.get("event.end") or max(now, incident["updated"])
        return incident_rows(incident, self.series(machines, incident["event.start"], end))

    def plotted(self, rows: list[Document], start: int, end: int) -> list[Document]:
        """These series, each of the first `PLOTTED` with ``plot``: see `dashboards.console.bands.bands`."""
        series = {f"{i}": ((row["entity"], judged_as(row)), start, end) for i, row in enumerate(rows[:PLOTTED])}
        plots = bands(self._search, self._novelties, series)
        return [row | {"plot": plots.get(f"{i}", [])} for i, row in enumerate(rows)]

    def carded(self, incidents: list[Document], end: int) -> list[Document]:
        """These incidents, each of the first `CARDS` with ``plot``: its strongest series before and in it.

        Args:
            incidents: Incidents that go on.
            end: End of the plots of those that last, epoch milliseconds.
        """
        cards = {}
        for incident in incidents[:CARDS]:
            if series := strongest(incident):
                cards[incident["event.id"]] = (series, *around(incident, end))
        plots = bands(self._search, self._novelties, cards)
        return [it | {"plot": _plot(*cards[name], plots[name]) if (name := it["event.id"]) in plots else None}
                for it in incidents]  # fmt: skip

    def judged_after(self, rows: list[Document], after: int) -> Document:
        """Of how many of some series there is a verdict on a window that ended after a time, and how many have ended.

        Returns:
            ``of``, how many series were asked about (at most `PLOTTED`), ``judged`` and ``closed``.
        """
        asked = rows[:PLOTTED]
        of = {"bool": {"should": [_of(row) for row in asked], "minimum_should_match": 1}}
        closed = {"closed": {"filter": {"term": {"incident.state": "closed"}}}}
        of_metrics = {"terms": {"field": "metric", "size": _MOST}, "aggs": closed}
        aggs = {"machines": {"terms": {"field": "host.name", "size": _MOST}, "aggs": {"metrics": of_metrics}}}
        query = {"bool": {"filter": [of, within(gt=after)]}}
        reply = self._search.answer(self._novelties, query=query, size=0, aggs=aggs) if asked else {}
        machines = reply.get("aggregations", {}).get("machines", {}).get("buckets", [])
        metrics = [bucket for machine in machines for bucket in machine["metrics"]["buckets"]]
        ended = sum(bucket["closed"]["doc_count"] > 0 for bucket in metrics)
        return {"of": len(asked), "judged": len(metrics), "closed": ended}


def around(incident: Document, now: int) -> tuple[int, int]:
    """Begin and end of the time that plots of an incident show: what was before it, and what came after.

    >>> around({"event.start": 1_000_000, "event.end": 1_120_000, "open_series": 0}, 9_000_000)
    (700000, 1240000)
    """
    start, over = incident["event.start"], over_since(incident)
    end = max(now, start) if over is None else over
    length = end - start
    after = 0 if over is None else max(_AFTER, length // 2)
    return start - max(_BEFORE, length // 2), max(end, min(end + after, now))


def _plot(series: tuple[str, str], start: int, end: int, points: list[Point]) -> Document:
    return {"entity": series[0], "metric": series[1], "span": (start, end), "step": step(start, end), "points": points}


def _of(series: Document) -> Document:
    """The documents on a series."""
    names = {"host.name": series["entity"], "metric": judged_as(series)}
    return {"bool": {"filter": [{"term": {name: value}} for name, value in names.items()]}}


def _silent(alarm: Document) -> bool:
    """Whether a machine has sent nothing at all."""
    return bool(alarm["metric"] == JOINED and alarm["kind"] == "absence")


def _order(alarm: Document) -> tuple[bool, int, str, str]:
    return not _silent(alarm), alarm["@timestamp"], alarm["host.name"], alarm["metric"]


def _first_terms(field: str) -> Document:
    """The values of a field whose alarms began first."""
    return {"field": field, "size": _MOST, "order": {"onset": "asc"}}


def _first(bucket: Document) -> Document:
    hit = bucket["first"]["hits"]["hits"][0]
    return {"_id": hit["_id"], **hit["_source"], "highest": bucket["highest"]["value"]}
