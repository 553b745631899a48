"""Metrics of Vector, against expectations worked out by hand from its data model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pipelines.formats.decoding import ARRIVED, decoded, decoder, refusals, samples
from tests.pipelines.formats.examples_times import T0


def message(kind: str = "absolute", **value: Any) -> bytes:
    told = {"name": "took", "namespace": "web", "tags": {"host": "a", "code": "200"}, "kind": kind}
    return json.dumps(told | {"timestamp": "2026-11-21T00:27:00.013456789Z"} | value).encode()


def read(given: bytes) -> list[tuple[str, float, str]]:
    """(metric, value, kind) of the samples of a message of the machine a."""
    found = samples("vector", given)
    assert {(time, machine) for time, machine, *_ in found} == {(T0, "a")}
    return [(metric, value, kind) for _, _, metric, value, kind in found]


CODE = "{code=200}"


@pytest.mark.parametrize(("kind", "expected"), [("absolute", "counter"), ("incremental", "count")])
def test_an_absolute_counter_is_a_counter_and_an_incremental_one_a_count(kind: str, expected: str) -> None:
    assert read(message(kind, counter={"value": 5})) == [(f"web.took{CODE}", 5.0, expected)]


def test_a_gauge_is_a_gauge_and_the_change_of_one_is_refused_with_what_helps() -> None:
    assert read(message(gauge={"value": -1.5})) == [(f"web.took{CODE}", -1.5, "gauge")]
    ((_, code, why),) = decoded(decoder("vector"), message("incremental", gauge={"value": 1})).refused
    assert code == "FIELD_INVALID"
    assert "incremental_to_absolute" in why


def test_a_set_is_the_number_of_its_members() -> None:
    assert read(message("incremental", set={"values": ["x", "y", "x"]})) == [(f"web.took{CODE}", 2.0, "gauge")]


def test_a_distribution_is_its_count_sum_extremes_and_quantiles() -> None:
    given = [{"value": 8.0, "rate": 5}, {"value": 2.0, "rate": 94}, {"value": 9.0, "rate": 1}]
    found = read(message("incremental", distribution={"samples": given, "statistic": "summary"}))
    assert found == [
        (f"web.took.count{CODE}", 100.0, "count"),
        (f"web.took.sum{CODE}", 94 * 2.0 + 5 * 8.0 + 9.0, "count"),
        (f"web.took.min{CODE}", 2.0, "gauge"),
        (f"web.took.max{CODE}", 9.0, "gauge"),
        ("web.took{code=200,quantile=0.5}", 2.0, "gauge"),
        ("web.took{code=200,quantile=0.95}", 8.0, "gauge"),
        ("web.took{code=200,quantile=0.99}", 8.0, "gauge"),
    ]


def test_a_histogram_is_its_count_sum_and_buckets_each_with_all_below_it() -> None:
    buckets = [{"upper_limit": 2.0, "count": 4}, {"upper_limit": 1.0, "count": 3}, {"upper_limit": "inf", "count": 2}]
    expected = [
        (f"web.took.count{CODE}", 9.0, "counter"),
        (f"web.took.sum{CODE}", 7.5, "counter"),
        ("web.took.bucket{code=200,le=1}", 3.0, "counter"),
        ("web.took.bucket{code=200,le=2}", 7.0, "counter"),
        ("web.took.bucket{code=200,le=+Inf}", 9.0, "counter"),
    ]
    assert read(message(aggregated_histogram={"buckets": buckets, "count": 9, "sum": 7.5})) == expected
    assert read(message(aggregated_histogram={"buckets": buckets[:2], "count": 9, "sum": 7.5})) == expected


def test_a_summary_is_its_count_sum_and_quantiles() -> None:
    given = {"quantiles": [{"quantile": 0.5, "value": 2.0}, {"quantile": 0.9, "value": None}], "count": 3}
    assert read(message(aggregated_summary=given)) == [
        (f"web.took.count{CODE}", 3.0, "counter"),
        ("web.took{code=200,quantile=0.5}", 2.0, "gauge"),
    ]


def test_tags_of_several_values_and_the_native_codec_are_read_and_no_time_is_that_of_the_arrival() -> None:
    metric = {"name": "up", "tags": {"host": "a", "zone": ["x", None]}, "kind": "absolute", "gauge": {"value": 1}}
    assert samples("vector", json.dumps({"metric": metric}).encode()) == [
        (ARRIVED, "a", "up{zone=x,true}", 1.0, "gauge")
    ]


def test_what_is_no_metric_is_a_dead_letter() -> None:
    nobody = json.dumps({"name": "up", "kind": "absolute", "gauge": {"value": 1}}).encode()
    values = (message("odd", counter={"value": 1}), message(sketch={}), message(counter={"value": "1"}), nobody)
    assert refusals("vector", *values) == [
        *((0, "FIELD_INVALID"), (1, "FIELD_INVALID"), (2, "FIELD_INVALID"), (3, "MACHINE_UNKNOWN")),
    ]
