"""The last windows of series, from messages of the topic `features`."""

from __future__ import annotations

import pyarrow as pa

from engine.formats import columnar
from pipelines.contracts.records import Features
from pipelines.query.recent_windows import windows_of

STEP = 10_000


def message(metric: str, number: int, mean: float, revision: int = 0) -> bytes:
    row = {"entity": "vm", "metric": metric, "kind": "gauge", "window_start": number * STEP, "count": 1}
    row |= {"window_end": (number + 1) * STEP, "revision": revision, "rate": None}
    row |= dict.fromkeys(("mean", "std", "min", "max", "last", "p50", "p95", "p99"), mean)
    return columnar.encode(pa.Table.from_pylist([row], schema=Features.arrow_schema()), number * STEP)


def test_a_window_that_late_records_have_revised_counts_once_with_its_newest_value() -> None:
    """As the detector reckons; more than 50 messages, so that a revision may come in another lot than its window."""
    sent = [message("cpu", number, 1.0) for number in range(60)] + [message("cpu", 0, 7.0, revision=1)]
    found = windows_of(iter(sent), "*", "*").sort("window_end")
    assert found.height == 60
    assert found["value"].to_list() == [7.0] + [1.0] * 59


def test_only_series_that_match_are_there_and_nothing_where_none_has_sent() -> None:
    sent = [message("cpu", 0, 1.0), message("mem", 0, 2.0)]
    assert windows_of(iter(sent), "v*", "m*")["value"].to_list() == [2.0]
    assert windows_of(iter(sent), "nobody", "*").height == windows_of(iter([]), "*", "*").height == 0
