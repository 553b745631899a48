"""The query of the console for earlier incidents that are like one."""

from __future__ import annotations

from collections.abc import Iterable

from dashboards.console.search import Document, Reader

SIMILAR = 5
"""The most similar incidents that are shown."""

_READ = 50
_NAMES = 50
_SHOWN = (
    "event.id", "message", "severity", "event.risk_score", "event.start", "event.end", "incident.state",
    "acknowledged_by", "note", "reopenings",
)  # fmt: skip


class SimilarStore(Reader):
    """Incidents in one Elasticsearch."""

    def similar(self, incident: Document) -> list[Document]:
        """Earlier incidents on the same machines, or with the same metrics, the most similar first.

        Similar is what shares most: machines and metrics in common as a share of those of both, machines first.

        Raises:
            NewnormalError: See `Search.answer`.
        """
        machines, metrics = _machines(incident), _metrics(incident)
        should = [
            {"terms": {"machines.entity": sorted(machines)[:_NAMES]}},
            {"terms": {"metrics.metric": sorted(metrics)[:_NAMES]}},
        ]
        not_it = [{"term": {"event.id": incident["event.id"]}}, {"term": {"incident.state": "merged"}}]
        earlier = {"range": {"event.start": {"lt": incident["event.start"], "format": "epoch_millis"}}}
        query = {"bool": {"should": should, "minimum_should_match": 1, "must_not": not_it, "filter": [earlier]}}
        sort = [{"event.start": "desc"}, {"event.id": "asc"}]
        found = self._search.documents(self._incidents, query=query, sort=sort, size=_READ)
        ranked = [(_common(machines, _machines(other)), _common(metrics, _metrics(other)), other) for other in found]
        ranked.sort(key=lambda rank: (-2 * rank[0] - rank[1], -rank[2]["event.start"]))
        return [
            {name: other.get(name) for name in _SHOWN}
            | {"machines": sorted(machines & _machines(other))[:3], "metrics": sorted(metrics & _metrics(other))[:3]}
            for _, _, other in ranked[:SIMILAR]
        ]


def _machines(incident: Document) -> set[str]:
    return {machine["entity"] for machine in incident.get("machines") or ()}


def _metrics(incident: Document) -> set[str]:
    return {metric["metric"] for metric in incident.get("metrics") or ()}


def _common(texts: Iterable[str], others: Iterable[str]) -> float:
    """How much two sets share, 0 to 1.

    >>> _common({"a", "b"}, {"b", "c"}), _common((), ())
    (0.3333333333333333, 0.0)
    """
    both = set(texts) | set(others)
    return len(set(texts) & set(others)) / len(both) if both else 0.0
