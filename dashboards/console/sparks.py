"""The small plots of series in lists: the mean value in each of some equal spans of time."""

from __future__ import annotations

from collections.abc import Iterable

from dashboards.console.search import Document

SPARKS = 48
"""Into how many spans the small plot of a series divides the time."""


class Sparks:
    """The aggregation behind a small plot, and how its answer is read.

    Args:
        start: Begin of the time, epoch milliseconds.
        end: Its end.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start, self._step = start, (end - start) // SPARKS + 1  # so that the end is in the last span

    @property
    def aggregation(self) -> Document:
        """What Elasticsearch is asked, in each bucket of a series."""
        offset = f"{self._start % self._step}ms"
        spans = {"fixed_interval": f"{self._step}ms", "offset": offset, "min_doc_count": 1}
        values = {"value": {"avg": {"field": "actual"}}}
        return {"date_histogram": {"field": "@timestamp", **spans}, "aggs": values}

    def of(self, windows: Iterable[tuple[int, float | None]]) -> list[tuple[int, float]]:
        """The same pairs as `pairs`, of windows by their ends (epoch ms) and values, in order of time."""
        spans: dict[int, list[float]] = {}
        for end, value in windows:
            if value is not None and end >= self._start:
                spans.setdefault((end - self._start) // self._step, []).append(value)
        return [(at, sum(values) / len(values)) for at, values in spans.items()]

    def pairs(self, document: Document) -> list[tuple[int, float]]:
        """The number of each span that has a value, and its mean value, from the answer for one series."""
        spans = [((each["key"] - self._start) // self._step, each["value"]["value"]) for each in document["buckets"]]
        return [(at, value) for at, value in spans if value is not None]
