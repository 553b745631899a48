"""A panel's request to Elasticsearch as a server would send it, and the rows of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

_NICE_S = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 43_200, 86_400, 604_800, 2_592_000, 31_536_000)
_MOST_BARS = 100


@dataclass(frozen=True)
class TimeRange:
    """From (inclusive) and to, epoch milliseconds."""

    start: int
    end: int

    def interval(self) -> str:
        """The shortest usual interval with which the range has at most 100 bars.

        >>> TimeRange(0, 3_600_000).interval()
        '60s'
        """
        wanted = (self.end - self.start) / 1000 / _MOST_BARS
        return f"{next((each for each in _NICE_S if each >= wanted), _NICE_S[-1])}s"


@dataclass(frozen=True)
class Request:
    """What a server asks for one panel.

    Args:
        dashboard: Title of the dashboard.
        panel: Title of the panel.
        index: Where it is asked.
        body: The search.
        buckets: Title of the column of each level of buckets, by the name of its aggregation, the outermost first.
        measures: Title of the column of each measure, by the name of its aggregation; ``""`` stands for the count.
    """

    dashboard: str
    panel: str
    index: str
    body: dict[str, Any]
    buckets: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)

    def rows(self, answer: Mapping[str, Any]) -> list[Row]:
        """The rows that the panel shows, by title of the column; for a list of documents their fields."""
        if "aggs" not in self.body and self.body["size"]:
            return [_document(hit) for hit in answer["hits"]["hits"]]
        total = {"doc_count": answer["hits"]["total"]["value"], **answer.get("aggregations", {})}
        return self._below(total, list(self.buckets), {})

    def _below(self, node: Mapping[str, Any], levels: list[str], row: Row) -> list[Row]:
        if not levels:
            return [row | {title: _value(node, name) for name, title in self.measures.items()}]
        buckets, title = node[levels[0]]["buckets"], self.buckets[levels[0]]
        pairs = buckets.items() if isinstance(buckets, Mapping) else ((bucket["key"], bucket) for bucket in buckets)
        return [below for key, bucket in pairs for below in self._below(bucket, levels[1:], {**row, title: key})]


def _document(hit: Mapping[str, Any]) -> Row:
    """The fields of a document: those that were asked for, or all; names with dots stay as they are."""
    if "_source" in hit:
        return dict(hit["_source"])
    return {name: found[0] if len(found) == 1 else found for name, found in hit["fields"].items()}


def _value(node: Mapping[str, Any], name: str) -> Any:
    if not name:
        return node["doc_count"]
    measure = node[name]
    if name in measure:  # a measure of some of the documents stands within a filter of the same name
        measure = measure[name]
    if "hits" in measure:
        return next((values[0] for hit in measure["hits"]["hits"] for values in hit["fields"].values()), None)
    return next(iter(measure["values"].values())) if "values" in measure else measure["value"]
