"""The small plots of series with the band in which they were expected, each over some equal spans of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboards.console.search import Document, Search, within

SPANS = 72
"""Into how many spans a small plot divides the time."""

MOST = 60
"""The most series that are asked for at once."""

_DIGITS = 5

Series = tuple[str, str]
"""Machine and metric."""

Point = list[float | None]
"""The number of a span, and the mean value, the lowest lower bound and the highest upper bound in it."""


def bands(search: Search, novelties: str, plots: Mapping[str, tuple[Series, int, int]]) -> dict[str, list[Point]]:
    """Small plots of some series, each over a time of its own, from one search.

    Args:
        search: The connection.
        novelties: The alias that novelties are read through.
        plots: By a key: the series, and begin and end of the time, epoch milliseconds; of the first `MOST`.

    Returns:
        The points of each key, in order; spans without a value are left out.

    Raises:
        NewnormalError: See `Search.answer`.
    """
    first = dict(list(plots.items())[:MOST])
    if not first:
        return {}
    aggs = {f"s{i}": _one(*plot) for i, plot in enumerate(first.values())}
    query = {"bool": {"should": [_where(*plot) for plot in first.values()], "minimum_should_match": 1}}
    found = search.answer(novelties, query={"bool": {"filter": [query]}}, size=0, aggs=aggs).get("aggregations", {})
    return {
        key: _points(found.get(f"s{i}", {}).get("spans", {}).get("buckets", []), start, end)
        for i, (key, (_, start, end)) in enumerate(first.items())
    }


def step(start: int, end: int) -> int:
    """Length of a span of the time from ``start`` to ``end``, milliseconds.

    >>> step(0, 720_000)
    10000
    """
    return max(1_000, -(-(end - start) // SPANS))


def _where(series: Series, start: int, end: int) -> Document:
    of = [{"term": {name: value}} for name, value in zip(("host.name", "metric"), series, strict=True)]
    return {"bool": {"filter": [*of, within(gte=start, lte=end)]}}


def _one(series: Series, start: int, end: int) -> Document:
    length = step(start, end)
    spans = {"field": "@timestamp", "fixed_interval": f"{length}ms", "offset": f"{start % length}ms"}
    values = {name: {how: {"field": name}} for name, how in (("actual", "avg"), ("lower", "min"), ("upper", "max"))}
    histogram = {"date_histogram": {**spans, "min_doc_count": 1}, "aggs": values}
    return {"filter": _where(series, start, end), "aggs": {"spans": histogram}}


def _points(buckets: Sequence[Document], start: int, end: int) -> list[Point]:
    length = step(start, end)
    rows = [((span["key"] - start) // length, *(_short(span[name]["value"]) for name in _FIELDS)) for span in buckets]
    return [list(row) for row in rows if row[1] is not None]


_FIELDS = ("actual", "lower", "upper")


def _short(value: float | None) -> float | None:
    """A number with as many digits as a small plot can show."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")
