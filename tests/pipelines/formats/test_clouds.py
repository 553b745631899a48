"""Splunk's collector, Datadog's series and CloudWatch, against expectations worked out from their documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.formats.catalogue import guess
from tests.pipelines.formats.decoding import ARRIVED, log_lines, refusals, samples
from tests.pipelines.formats.examples_times import T0


def told(message: Any) -> bytes:
    return json.dumps(message).encode()


def stream(**given: Any) -> bytes:
    record = {
        "metric_stream_name": "s", "account_id": "1", "region": "us-east-1", "namespace": "AWS/EC2", "unit": "Count",
        "metric_name": "DiskWriteOps", "dimensions": {"InstanceId": "i-1"}, "timestamp": T0,
        "value": {"count": 5.0, "sum": 10.0, "max": 4.0, "min": 1.0},
    }  # fmt: skip
    return told(record | given)


def test_metrics_of_the_collector_are_samples_in_both_forms() -> None:
    several = {"region": "eu", "pid": 7, "metric_name:cpu.usr": 11.5, "metric_name:cpu.sys": 12}
    given = [
        {"time": T0 / 1000, "event": "metric", "source": "x", "host": "a", "fields": several},
        {"host": "b", "fields": {"metric_name": "total", "_value": 7, "os": "Ubuntu"}},
        {"time": str(T0 / 1000), "fields": {"metric_name:n": "1.5", "hostname": "c"}},
    ]
    assert samples("splunk-metrics", told(given)) == [
        (T0, "a", "cpu.usr{pid=7}", 11.5, "gauge"),
        (T0, "a", "cpu.sys{pid=7}", 12.0, "gauge"),
        (ARRIVED, "b", "total{os=Ubuntu}", 7.0, "gauge"),
        (T0, "c", "n", 1.5, "gauge"),
    ]


def test_events_of_the_collector_are_lines() -> None:
    given = [
        {"time": T0 / 1000, "host": "a", "source": "/var/log/app.log", "event": "Hello world!"},
        {"host": "b", "sourcetype": "_json", "event": {"message": "something happened", "severity": "ERROR"}},
        {"event": {"k": 1}, "fields": {"host": "c", "level": "warn"}},
    ]
    assert log_lines("splunk-events", told(given)) == [
        (T0, "a", "app.log", 6, "Hello world!"),
        (ARRIVED, "b", "_json", 3, "something happened"),
        (ARRIVED, "c", "-", 4, '{"k":1}'),
    ]


def test_series_of_datadog_are_samples_of_their_type() -> None:
    first = {"metric": "n", "points": [[T0 // 1000, 5.7], [T0 // 1000 + 10, 6]], "type": "rate", "host": "a"}
    points = [{"timestamp": T0 // 1000, "value": 0.7}]
    second = [
        {
            "metric": "load",
            "type": 3,
            "points": points,
            "resources": [{"name": "a", "type": "host"}],
            "tags": ["env:x"],
        },
        {"metric": "c", "type": 1, "points": points, "tags": ["host:b", "role:x", "role:y", "canary"]},
    ]
    at = T0 // 1000 * 1000
    assert samples("datadog", told({"series": [first]}), told({"series": second})) == [
        (at, "a", "n", 5.7, "rate"),
        (at + 10_000, "a", "n", 6.0, "rate"),
        (at, "a", "load{env=x}", 0.7, "gauge"),
        (at, "b", "c{canary=true,role=x,y}", 0.7, "count"),
    ]


def test_a_record_of_a_metric_stream_is_mean_least_greatest_and_what_adds_up() -> None:
    assert samples("cloudwatch", stream(), stream(unit="Percent", dimensions={"host": "b", "VolumeId": "v"})) == [
        (T0, "i-1", "AWS/EC2.DiskWriteOps.mean", 2.0, "gauge"),
        (T0, "i-1", "AWS/EC2.DiskWriteOps.min", 1.0, "gauge"),
        (T0, "i-1", "AWS/EC2.DiskWriteOps.max", 4.0, "gauge"),
        (T0, "i-1", "AWS/EC2.DiskWriteOps.sum", 10.0, "count"),
        (T0, "b", "AWS/EC2.DiskWriteOps.mean{VolumeId=v}", 2.0, "gauge"),
        (T0, "b", "AWS/EC2.DiskWriteOps.min{VolumeId=v}", 1.0, "gauge"),
        (T0, "b", "AWS/EC2.DiskWriteOps.max{VolumeId=v}", 4.0, "gauge"),
    ]


def test_results_of_getmetricdata_have_the_machine_in_their_label() -> None:
    result = {"Id": "m", "Label": "i-1 CPUUtilization", "Timestamps": ["2026-11-21T00:27:00+00:00"], "Values": [12.5]}
    assert samples("cloudwatch", told({"MetricDataResults": [result]})) == [
        (T0 // 1000 * 1000, "i-1", "CPUUtilization", 12.5, "gauge")
    ]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("splunk-metrics", told({"fields": {"metric_name:n": 1}}), "MACHINE_UNKNOWN"),
        ("splunk-metrics", told({"host": "a", "fields": {"metric_name:n": "x"}}), "FIELD_INVALID"),
        ("splunk-events", told({"event": "x", "sourcetype": "y"}), "MACHINE_UNKNOWN"),
        ("splunk-events", told({"event": " ", "host": "y"}), "MESSAGE_EMPTY"),
        ("datadog", told({"series": [{"metric": "n", "points": [[1, 2]]}]}), "MACHINE_UNKNOWN"),
        ("datadog", told({"series": [{"metric": "n", "points": [], "host": "a"}]}), "MESSAGE_EMPTY"),
        ("datadog", told({"series": [{"metric": "n", "points": [[1, "x"]], "host": "a"}]}), "FIELD_INVALID"),
        ("cloudwatch", stream(dimensions={"Role": "x"}), "MACHINE_UNKNOWN"),
        ("cloudwatch", told({"MetricDataResults": [{"Label": "CPU"}]}), "MACHINE_UNKNOWN"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_code(name: str, value: bytes, code: str) -> None:
    form = guess(value)
    assert form is not None
    assert form.name == name
    assert refusals(name, value) == [(0, code)]
