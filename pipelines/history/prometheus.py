"""History from the HTTP API of Prometheus, which VictoriaMetrics, Thanos and Mimir have, too.

Source: the Prometheus documentation, "HTTP API". Without a step, the samples are asked for as they are stored: a range
selector at ``/api/v1/query`` gives their own times and values. With a step, ``/api/v1/query_range`` gives the last
value at each instant of a grid. Whether a range includes its first instant depends on the release (since 3.0 it does
not), so ranges are asked for that hold it in either case, and what lies outside is left out here.

Series become requests of remote write, and these are read as the gateway's are, so that names, kinds and refusals are
those of live series.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.formats.remote_write_protocol import Label, WriteRequest
from pipelines.history.http_api import HttpApi
from pipelines.history.importing import HistorySource
from pipelines.history.intake import Intake, TooMuchError
from pipelines.history.login import option

_POINTS = 11_000
"""Points of a series that an answer may hold; Prometheus refuses more."""

_SAMPLES = 20_000
"""Samples of a request of remote write, about."""

_FEWER = re.compile(r"(?i)too many|exceed|limit|too large|too long|maximum|timed? ?out|canceled|memory")
"""What servers say of queries that would be answered if they asked for less time."""

_WHOLE = [
    ("partial_response", "false"), ("max_source_resolution", "0s"),  # Thanos
    ("deny_partial_response", "1"), ("nocache", "1"),  # VictoriaMetrics
]  # fmt: skip
"""Asks for whole answers and stored samples. Servers that do not know a parameter leave it out of account."""

_NOW = "what was imported stays, and the same command goes on there"


class PrometheusHistory(HistorySource):
    """The samples of some series.

    Args:
        api: The server.
        matches: Selectors of series, at least one, e.g. ``{job="node"}``.
        step: Distance of the instants of the grid, milliseconds; ``None``: the samples as they are stored.
        labels: Labels that the server adds to what it writes remotely (``external_labels``).
    """

    def __init__(
        self, api: HttpApi, matches: list[str], step: int | None, labels: dict[str, str] | None = None
    ) -> None:
        self._api, self._matches, self._step, self._labels = api, matches, step, labels or {}
        self.origin = f"prometheus {api.url} {' '.join(matches)}" + (f" step {step} ms" if step else "")

    def read(self, begin: int, end: int, intake: Intake) -> pa.Table:
        records = intake.records(self._requests(begin, end), end)
        times = records["time"]
        return records.filter(pc.and_(pc.greater_equal(times, begin), pc.less(times, end)))

    def series(self, begin: int, end: int) -> int:
        found: set[tuple[tuple[str, str], ...]] = set()
        for match in self._matches:
            times = [("start", _seconds(begin)), ("end", _seconds(end))]
            with self._documented():
                for labels in self._data("/api/v1/series", [("match[]", match), *times]):
                    found.add(tuple(sorted(labels.items())))
        return len(found)

    @contextmanager
    def _documented(self) -> Iterator[None]:
        """Refuses an answer whose series are not as the API documents them."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"the answer has a series that is none: {visible(repr(error))[:200]}"
            raise NewnormalError("IMPORT_ANSWER", what, self._api.url, "the HTTP API of Prometheus", _NOW) from None

    def _requests(self, begin: int, end: int) -> Iterator[bytes]:
        """Requests of remote write with the samples from ``begin`` until before ``end``; each series once."""
        there: set[tuple[tuple[str, str], ...]] = set()
        for match in self._matches:
            new: set[tuple[tuple[str, str], ...]] = set()
            for part in self._results(match, begin, end):
                request, size = WriteRequest(), 0
                for series in part:
                    with self._documented():
                        labels = tuple(sorted({**self._labels, **series["metric"]}.items()))
                        if labels in there:
                            continue
                        new.add(labels)
                        size += self._add(request, labels, series, begin, end)
                    if size >= _SAMPLES:
                        yield request.SerializeToString()
                        request, size = WriteRequest(), 0
                if size:
                    yield request.SerializeToString()
            there |= new

    def _results(self, match: str, begin: int, end: int) -> Iterator[list[Any]]:
        """The series of a selector, in parts of time that the server answers."""
        step = self._step
        if step is None:
            last = end - 1
            yield self._matrix("/api/v1/query", [("query", f"{match}[{end - begin}ms]"), ("time", _seconds(last))])
            return
        first = -(-begin // step) * step
        while first < end:
            last = min(first + (_POINTS - 1) * step, (end - 1) // step * step)
            grid = [("start", _seconds(first)), ("end", _seconds(last)), ("step", f"{step / 1000:.3f}")]
            yield self._matrix("/api/v1/query_range", [("query", match), *grid])
            first = last + step

    def _add(self, request: Any, labels: tuple[tuple[str, str], ...], series: Any, begin: int, end: int) -> int:
        """Adds a series to a request of remote write; returns the number of its samples."""
        added = request.timeseries.add()
        ordered = sorted(labels, key=lambda label: (label[0] != "__name__", label))
        added.labels.extend(Label(name=name, value=value).SerializeToString() for name, value in ordered)
        for time, value in series.get("values", ()):
            ms = round(time * 1000)
            if begin <= ms < end:
                added.samples.add(value=float(value), timestamp=ms)
        for time, histogram in series.get("histograms", ()):
            ms = round(time * 1000)
            if begin <= ms < end:
                count, total = float(histogram["count"]), float(histogram["sum"])
                added.histograms.add(count_float=count, sum=total, timestamp=ms)
        number = len(added.samples) + len(added.histograms)
        if not number:
            del request.timeseries[-1]
        return number

    def _matrix(self, path: str, parameters: list[tuple[str, str]]) -> list[Any]:
        data = self._data(path, parameters)
        if isinstance(data, dict) and data.get("resultType") == "matrix" and isinstance(data.get("result"), list):
            return list(data["result"])
        kind = data.get("resultType") if isinstance(data, dict) else type(data).__name__
        what = f"the answer to {dict(parameters)['query'][:200]!r} is a {str(kind)[:40]!r}"
        accepted = "a selector of series, e.g. --match '{job=\"node\"}'"
        raise NewnormalError("IMPORT_ANSWER", what, self._api.url, accepted, _NOW)

    def _data(self, path: str, parameters: list[tuple[str, str]]) -> Any:
        """What a query gives, all of it: an answer that is known to be a part is refused.

        Raises:
            TooMuchError: If the server says that it is too much.
            NewnormalError: ``IMPORT_REFUSED``, and those of `HttpApi.ask`.
        """
        status, answer = self._api.ask(path, [*parameters, *_WHOLE])
        if status == 200 and answer.get("status") == "success" and not answer.get("isPartial"):
            return answer.get("data")
        why = str(answer.get("error") or answer.get("message") or f"HTTP {status}")[:300]
        if status == 200 and answer.get("isPartial"):
            why = "the answer is a part only: a store of the server did not answer"
        elif _FEWER.search(why) and status != 404:
            raise TooMuchError(why)
        accepted = "what the server says; selectors of series, e.g. --match '{job=\"node\"}'"
        raise NewnormalError("IMPORT_REFUSED", why, self._api.url, accepted, _NOW)


def external(labels: list[str]) -> dict[str, str]:
    """Labels from ``name=value``.

    Raises:
        NewnormalError: ``IMPORT_OPTION``.

    >>> external(["cluster=eu"])
    {'cluster': 'eu'}
    """
    found = {}
    for label in labels:
        name, equals, value = label.partition("=")
        if not equals or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
            raise option("--label", f"{label[:80]!r} is no label", "name=value")
        found[name] = value
    return found


def _seconds(ms: int) -> str:
    """An instant as the API takes it.

    >>> _seconds(1_795_220_820_013)
    '1795220820.013'
    """
    return f"{ms // 1000}.{ms % 1000:03d}"
