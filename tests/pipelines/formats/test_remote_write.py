"""Prometheus remote write, against expectations worked out by hand from its specifications."""

from __future__ import annotations

import pytest

from pipelines.formats.catalogue import guess
from tests.pipelines.formats.decoding import decoded, decoder, refusals, rows, samples
from tests.pipelines.formats.examples_times import T0
from tests.pipelines.formats.remote_writes import STALE, Second, field, histogram, request, series

LOAD = {"__name__": "node_load1", "instance": "web-1:9100", "job": "node"}
BYTES = {"__name__": "net_bytes_total", "device": "eth0", "instance": "web-1:9100", "job": "node"}


def test_each_sample_of_each_series_becomes_one_with_its_machine_metric_and_kind() -> None:
    found = samples("remote-write", request(series(LOAD, (0.5, T0), (0.75, T0 + 1000)), series(BYTES, (1e9, T0))))
    assert found == [
        (T0, "web-1", "node_load1{job=node,port=9100}", 0.5, "gauge"),
        (T0 + 1000, "web-1", "node_load1{job=node,port=9100}", 0.75, "gauge"),
        (T0, "web-1", "net_bytes_total{device=eth0,job=node,port=9100}", 1e9, "counter"),
    ]


def test_version_two_says_the_same_with_symbols_and_tells_what_counts() -> None:
    requests = BYTES | {"__name__": "requests"}
    told = Second().add(LOAD, (0.5, T0)).add(BYTES, (7, T0), kind=2).add(requests, (9, T0), kind=1).bytes()
    assert samples("remote-write", told) == [
        (T0, "web-1", "node_load1{job=node,port=9100}", 0.5, "gauge"),
        (T0, "web-1", "net_bytes_total{device=eth0,job=node,port=9100}", 7.0, "gauge"),
        (T0, "web-1", "requests{device=eth0,job=node,port=9100}", 9.0, "counter"),
    ]


def test_a_native_histogram_is_its_count_and_its_sum() -> None:
    name = {"__name__": "latency", "instance": "a"}
    wanted = [(T0, "a", "latency_count", 12.0, "counter"), (T0, "a", "latency_sum", 3.5, "counter")]
    assert samples("remote-write", request(series(name, histograms=[histogram(12, 3.5, T0)]))) == wanted
    assert samples("remote-write", Second().add(name, histograms=[histogram(12, 3.5, T0)]).bytes()) == wanted


def test_a_series_that_ended_has_no_value() -> None:
    told = request(series(LOAD, (STALE, T0)), series(BYTES, (1, T0)))
    assert [metric for _, _, metric, _, _ in samples("remote-write", told)] == [
        "net_bytes_total{device=eth0,job=node,port=9100}"
    ]
    assert refusals("remote-write", request(series(LOAD, (STALE, T0)))) == [(0, "MESSAGE_EMPTY")]


def test_count_and_sum_of_a_gauge_histogram_are_gauges() -> None:
    name, given = {"__name__": "queued", "instance": "a"}, [histogram(12, 3.5, T0)]
    assert samples("remote-write", Second().add(name, kind=4, histograms=given).bytes()) == [
        (T0, "a", "queued_count", 12.0, "gauge"),
        (T0, "a", "queued_sum", 3.5, "gauge"),
    ]


def test_a_native_histogram_that_ended_has_neither_count_nor_sum() -> None:
    name = {"__name__": "latency", "instance": "a"}
    ended, good = series(name, histograms=[histogram(0, STALE, T0)]), series(LOAD, (1, T0), (2, T0))
    assert refusals("remote-write", request(ended)) == [(0, "MESSAGE_EMPTY")]
    assert refusals("remote-write", Second().add(name, histograms=[histogram(0, STALE, T0)]).bytes()) == [
        (0, "MESSAGE_EMPTY")
    ]
    part = decoder("remote-write").only(request(ended, good), [1])
    assert [value for *_, value, _ in samples("remote-write", part)] == [2.0]


def test_a_series_with_a_label_twice_is_refused_and_no_other() -> None:
    twice = field(1, field(1, "job") + field(2, "other")) + series(LOAD, (1, T0))
    found = decoded(decoder("remote-write"), request(twice, series(BYTES, (7, T0))))
    assert [row["value"] for row in rows(found)] == [7.0]
    assert [(code, "a label is there twice" in why) for _, code, why in found.refused] == [("FIELD_INVALID", True)]


def test_a_series_without_a_machine_keeps_no_other_from_being_used_and_is_told() -> None:
    rule = {"__name__": "job:up:sum", "job": "node"}
    found = decoded(decoder("remote-write"), request(series(rule, (1, T0), (2, T0)), series(LOAD, (0.5, T0))))
    assert [row["value"] for row in rows(found)] == [0.5]
    ((row, code, why),) = found.refused
    assert (row, code) == (0, "MACHINE_UNKNOWN")
    assert why.startswith("2 samples of the request are left out, the first: job:up:sum{job=node}: no label names")
    assert refusals("remote-write", request(series(rule, (1, T0)))) == [(0, "MACHINE_UNKNOWN")]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (request(series({"instance": "a"}, (1, T0))), "FIELD_INVALID"),
        (request(series({"__name__": "x" * 513, "instance": "a"}, (1, T0))), "FIELD_INVALID"),
        (request(series({"__name__": "up", "instance": "a" * 600}, (1, T0))), "FIELD_INVALID"),
        (request(field(1, b"\x0a\x02\xff\xfe") + field(2, field(1, 1.0))), "FIELD_INVALID"),
        (request(), "MESSAGE_EMPTY"),
        (request(series(LOAD)), "MESSAGE_EMPTY"),
        (request(metadata=field(2, "up")), "MESSAGE_EMPTY"),
        (b"\n\x7f", "FORMAT_UNKNOWN"),
        (field(4, "") + field(5, field(1, b"\x01\x02") + field(2, field(1, 1.0))), "FIELD_INVALID"),
        (field(4, "") + field(5, field(1, b"\x00") + field(2, field(1, 1.0))), "FIELD_INVALID"),
    ],
)
def test_what_cannot_be_read_is_a_dead_letter_with_its_reason(value: bytes, code: str) -> None:
    good = request(series(LOAD, (0.5, T0)))
    found = decoded(decoder("remote-write"), good, value, good)
    assert [row["__row"] for row in rows(found)] == [0, 2]
    assert [(row, told) for row, told, _ in found.refused] == [(1, code)]


@pytest.mark.parametrize("labels", [LOAD, {"a.b": "c", **LOAD}, {"A": "1", **LOAD}])
def test_it_is_recognised_whatever_its_first_label(labels: dict[str, str]) -> None:
    for value in (request(series(labels, (1, T0))), Second().add(labels, (1, T0)).bytes()):
        form = guess(value)
        assert form and form.name == "remote-write"
