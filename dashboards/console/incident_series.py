"""The series of an incident as the page lists them: those that the incident names, or those of its novelties."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.console.search import Document
from dashboards.console.words import change, values
from pipelines.contracts.records.novelty import JOINED, PEERS

_UNPLOTTED = (JOINED, "logs")
_AS_THEY_ARE = ("metric", "metric_kind", "kind", "actual", "typical", "lower", "upper")


def rows(incident: Document, alarms: Sequence[Document]) -> list[Document]:
    """The series of an incident, each with its fields as in `AffectedSeries`, and ``_id``, a novelty of it, if stored.

    Args:
        incident: The incident.
        alarms: The first alarm of each of its series that is stored, with ``highest``, the highest score.

    Returns:
        The series that the incident lists, in its order, each with ``values`` in words. An incident of an earlier
        version lists none: then the series of the alarms, in theirs.
    """
    stored = {(alarm["host.name"], alarm["metric"]): alarm for alarm in alarms}
    listed = incident.get("series") or [_row(alarm) for alarm in alarms]
    firsts = [stored.get((row["entity"], judged_as(row)), {}) for row in listed]
    return [row | {"_id": alarm.get("_id"), "values": values(row)} for row, alarm in zip(listed, firsts, strict=True)]


def judged_as(row: Document) -> str:
    """The metric of the verdicts on a series of an incident, which does not say whether these were beside peers.

    >>> judged_as({"metric": "cpu", "kind": "outlier"}), judged_as({"metric": "cpu", "kind": "anomaly"})
    ('_peers.cpu', 'cpu')
    """
    beside = row.get("kind") == "outlier" and not row["metric"].startswith(PEERS)
    return f"{PEERS}{row['metric']}" if beside else str(row["metric"])


def strongest(incident: Document) -> tuple[str, str] | None:
    """The series of an incident that its card plots: the strongest one that has values; ``None`` if none is known."""
    listed = [(row["record_score"], row["entity"], judged_as(row)) for row in incident.get("series") or ()]
    plotted = [row for row in listed if row[2] not in _UNPLOTTED]
    if plotted:
        _, entity, metric = max(plotted, key=lambda row: row[0])
        return entity, metric
    likely = [(candidate["entity"], candidate["metric"]) for candidate in incident.get("candidates") or ()]
    return next((series for series in likely if series[1] not in _UNPLOTTED), None)


def over_since(incident: Document) -> int | None:
    """When the last novelty of an incident ended, epoch milliseconds; ``None`` while one lasts.

    >>> over_since({"open_series": 0, "updated": 9, "series": [{"end": 5}, {"end": 7}]})
    7
    """
    if incident.get("event.end") is not None:
        return int(incident["event.end"])
    if incident["open_series"]:
        return None
    ends = [each["end"] for each in incident.get("series") or () if each.get("end") is not None]
    return max(ends, default=int(incident["updated"]))


def _row(alarm: Document) -> Document:
    row = {name: alarm.get(name) for name in _AS_THEY_ARE}
    since = alarm.get("since") or alarm["window_start"]
    return row | {
        "entity": alarm["host.name"], "since": since, "reported": alarm["@timestamp"], "end": None,
        "record_score": round(alarm["highest"]), "change": change(alarm),
    }  # fmt: skip
