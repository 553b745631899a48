"""OTLP's JSON of the usual shape is read without protobuf's library, which would make the same of any message."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.formats import otlp_json
from tests.pipelines.formats.decoding import decoded, decoder, rows
from tests.pipelines.formats.examples_times import NS
from tests.pipelines.formats.otlp_requests import attributes, both, gauge, logs, metrics, record

CUMULATIVE = 2
_TOTAL = {
    "name": "requests", "description": "d", "unit": "1",
    "sum": {
        "dataPoints": [
            {"startTimeUnixNano": NS, "timeUnixNano": NS, "asInt": "7", "attributes": attributes(route="/a")},
            {"timeUnixNano": NS, "asDouble": 7.5, "flags": 2},
        ],
        "isMonotonic": True, "aggregationTemporality": CUMULATIVE,
    },
}  # fmt: skip
_HISTOGRAM = {
    "name": "took",
    "histogram": {
        "dataPoints": [{"timeUnixNano": NS, "count": 3, "sum": 1.5, "bucketCounts": [1, 2], "explicitBounds": [0.25]}],
        "aggregationTemporality": CUMULATIVE,
    },
}
_KINDS = [{"key": "n", "value": {"intValue": "5"}}, {"key": "f", "value": {"boolValue": True}}]
REQUESTS: dict[str, dict[str, Any]] = {
    "otlp-json": json.loads(both(metrics(gauge(), _TOTAL, _HISTOGRAM))[1]),
    "otlp-logs-json": json.loads(
        both(logs(record(), record("yes", severityText="WARN", severityNumber=0, attributes=_KINDS)))[1]
    ),
}
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 1.5, 2**63, 2**64 - 1, "", "x", "1", "-1", "007", "1.5", "NaN", " 1", "9" * 20),
    *(
        [],
        {},
        [{}],
        {"stringValue": "x"},
        {"intValue": "5"},
        {"doubleValue": 0.5},
        {"a": 1},
        "AAAA",
        "0123456789abcdef",
    ),
    *("AGGREGATION_TEMPORALITY_DELTA", 3, ["x"], {"stringValue": "x", "intValue": "1"}),
]
NAMES = [
    "asInt",
    "asDouble",
    "flags",
    "time_unix_nano",
    "exemplars",
    "unknown",
    "traceId",
    "sum",
    "droppedAttributesCount",
]


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of a tree."""
    yield path
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def changed(tree: dict[str, Any], path: tuple[Any, ...], value: Any, name: str | None) -> dict[str, Any]:
    """The tree with another value at a path, or with one more field there."""
    made = copy.deepcopy(tree)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    if name is None:
        at[path[-1]] = value
    elif isinstance(at[path[-1]], dict):
        at[path[-1]][name] = value
    return made


@pytest.mark.parametrize("form", REQUESTS)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_a_message_becomes_the_same_as_by_the_reader_of_protobufs_library(form: str, data: st.DataObject) -> None:
    request = REQUESTS[form]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([each for each in places(request) if each]))
        name = data.draw(st.none() | st.sampled_from(NAMES))
        request = changed(request, path, data.draw(st.sampled_from(ODD)), name)
    value = json.dumps(request).encode()
    fast = decoded(decoder(form), value)
    with patch.object(otlp_json, "metrics", lambda tree: None), patch.object(otlp_json, "logs", lambda tree: None):
        slow = decoded(decoder(form), value)
    assert rows(fast) == rows(slow)
    assert [(row, code) for row, code, _ in fast.refused] == [(row, code) for row, code, _ in slow.refused]


@pytest.mark.parametrize("form", REQUESTS)
def test_what_agents_send_has_the_usual_shape(form: str) -> None:
    reader = otlp_json.metrics if form == "otlp-json" else otlp_json.logs
    assert reader(REQUESTS[form]) is not None
