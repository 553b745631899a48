"""OTLP metrics and logs, in protobuf and JSON, against expectations worked out by hand from the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.contracts.records import Log, Telemetry
from pipelines.formats.catalogue import guess
from tests.pipelines.formats.decoding import ARRIVED, log_lines, refusals, samples
from tests.pipelines.formats.examples_times import NS, T0
from tests.pipelines.formats.otlp_requests import attributes, both, braced, gauge, logs, metrics, record

CUMULATIVE, DELTA = 2, 1
SHOP = "{service.name=shop}"


def read(*found: dict[str, Any], resource: list[dict[str, Any]] | None = None) -> list[tuple[str, str, float, str]]:
    """(machine, metric, value, kind) of each sample, which must be the same from protobuf and from JSON."""
    binary, text = both(metrics(*found, resource=resource))
    one, other = samples("otlp", binary), samples("otlp-json", text)
    assert one == other
    assert {time for time, *_ in one} <= {T0}
    return [rest for _, *rest in map(list, one)]  # type: ignore[misc]


def total(monotonic: bool, temporality: int) -> dict[str, Any]:
    points = [{"timeUnixNano": NS, "asInt": "7", "attributes": attributes(route="/a")}]
    kind = {"dataPoints": points, "isMonotonic": monotonic, "aggregationTemporality": temporality}
    return {"name": "requests", "sum": kind}


@pytest.mark.parametrize(
    ("monotonic", "temporality", "kind"),
    [(True, CUMULATIVE, "counter"), (True, DELTA, "count"), (False, CUMULATIVE, "gauge"), (False, DELTA, "gauge")],
)
def test_a_sum_is_a_counter_a_count_or_a_gauge(monotonic: bool, temporality: int, kind: str) -> None:
    found = read(total(monotonic, temporality), gauge())
    assert found == [["a", "requests{route=/a,service.name=shop}", 7.0, kind], ["a", f"load{SHOP}", 0.5, "gauge"]]


def test_a_cumulative_histogram_is_its_count_sum_and_buckets_each_with_all_below_it() -> None:
    temporality, kind = CUMULATIVE, "counter"
    point = {"timeUnixNano": NS, "count": 6, "sum": 1.5, "min": 0.1, "max": 0.9, "bucketCounts": [1, 2, 3]}
    point |= {"explicitBounds": [0.25, 0.5]}
    found = read({"name": "took", "histogram": {"dataPoints": [point], "aggregationTemporality": temporality}})
    assert found == [
        ["a", f"took.count{SHOP}", 6.0, kind],
        ["a", f"took.sum{SHOP}", 1.5, kind],
        ["a", f"took.min{SHOP}", 0.1, "gauge"],
        ["a", f"took.max{SHOP}", 0.9, "gauge"],
        ["a", "took.bucket{le=0.25,service.name=shop}", 1.0, kind],
        ["a", "took.bucket{le=0.5,service.name=shop}", 3.0, kind],
        ["a", "took.bucket{le=+Inf,service.name=shop}", 6.0, kind],
    ]


def test_a_delta_histogram_is_its_count_and_the_mean_and_95th_percentile_of_the_interval() -> None:
    """Of 20 observations the 19th is the first of the two in the last bucket, which ends at the greatest one."""
    point = {"timeUnixNano": NS, "count": 20, "sum": 5.0, "min": 0.02, "max": 0.9, "bucketCounts": [10, 8, 2]}
    point |= {"explicitBounds": [0.1, 0.5]}
    found = read({"name": "took", "histogram": {"dataPoints": [point], "aggregationTemporality": DELTA}})
    assert [(metric, pytest.approx(value), kind) for _, metric, value, kind in found] == [
        (f"took.count{SHOP}", 20.0, "count"),
        (f"took.min{SHOP}", 0.02, "gauge"),
        (f"took.max{SHOP}", 0.9, "gauge"),
        (f"took.mean{SHOP}", 0.25, "latency"),
        (f"took.p95{SHOP}", 0.7, "latency"),
    ]


def test_an_interval_without_observations_has_a_count_of_nothing_and_no_mean() -> None:
    point = {"timeUnixNano": NS, "count": 0, "sum": 0.0, "bucketCounts": [0, 0], "explicitBounds": [0.25]}
    found = read({"name": "took", "histogram": {"dataPoints": [point], "aggregationTemporality": DELTA}})
    assert [(metric, value) for _, metric, value, _ in found] == [(f"took.count{SHOP}", 0.0)]


def test_a_delta_exponential_histogram_has_a_mean() -> None:
    point = {"timeUnixNano": NS, "count": 3, "sum": 4.5, "positive": {"offset": 0, "bucketCounts": [1, 2]}}
    kind = {"dataPoints": [point], "aggregationTemporality": DELTA}
    found = read({"name": "took", "exponentialHistogram": kind})
    assert [(metric, value) for _, metric, value, _ in found] == [(f"took.count{SHOP}", 3.0), (f"took.mean{SHOP}", 1.5)]


def test_a_summary_is_a_gauge_for_each_quantile_and_counters_of_its_count_and_sum() -> None:
    point = {"timeUnixNano": NS, "count": 6, "sum": 1.5, "quantileValues": [{"quantile": 0.5, "value": 0.2}]}
    found = read({"name": "took", "summary": {"dataPoints": [point]}})
    assert [(metric, value, kind) for _, metric, value, kind in found] == [
        (f"took.count{SHOP}", 6.0, "counter"),
        (f"took.sum{SHOP}", 1.5, "counter"),
        ("took{quantile=0.5,service.name=shop}", 0.2, "gauge"),
    ]


def test_an_exponential_histogram_is_its_count_and_sum() -> None:
    point = {"timeUnixNano": NS, "count": 3, "sum": 4.5, "positive": {"offset": 0, "bucketCounts": [1, 2]}}
    kind = {"dataPoints": [point], "aggregationTemporality": CUMULATIVE}
    found = read({"name": "took", "exponentialHistogram": kind})
    assert [(metric, value) for _, metric, value, _ in found] == [(f"took.count{SHOP}", 3.0), (f"took.sum{SHOP}", 4.5)]


def test_attributes_of_the_resource_that_only_describe_the_machine_are_no_part_of_the_name() -> None:
    resource = attributes(host__name="a", os__type="linux", telemetry__sdk__language="go", service__name="shop")
    assert read(gauge(), resource=resource)[0][:2] == ["a", f"load{SHOP}"]
    assert read(gauge(), resource=attributes(service__name="shop"))[0][:2] == ["shop", "load"]
    binary, _ = both(metrics(gauge(), resource=attributes(os__type="linux")))
    assert refusals("otlp", binary) == [(0, "MACHINE_UNKNOWN")]


def of_resources(found: dict[str, Any], *resources: dict[str, str]) -> list[tuple[str, float]]:
    """(metric, value) of each sample of a request with a metric for each of some resources of the machine a."""
    request = metrics(found, resource=attributes(host__name="a", **resources[0]))
    for each in resources[1:]:
        request.resource_metrics.extend(metrics(found, resource=attributes(host__name="a", **each)).resource_metrics)
    return [(metric, value) for _, _, metric, value, _ in samples("otlp", request.SerializeToString())]


def test_two_resources_of_one_machine_are_two_series_whatever_attribute_tells_them_apart() -> None:
    assert of_resources(gauge(), {"my__shard": "1"}, {"my__shard": "2"}) == [
        ("load{my.shard=1}", 0.5),
        ("load{my.shard=2}", 0.5),
    ]
    shops = [{"service__name": "shop", "service__instance__id": f"shop-{n}", "service__version": "7"} for n in (1, 2)]
    assert of_resources(gauge(), *shops) == [
        ("load{service.instance.id=shop-1,service.name=shop}", 0.5),
        ("load{service.instance.id=shop-2,service.name=shop}", 0.5),
    ]
    deployments = [{"k8s__deployment__name": name, "k8s__deployment__uid": name} for name in ("x", "y")]
    assert [metric for metric, _ in of_resources(gauge(), *deployments)] == [
        "load{k8s.deployment.name=x}",
        "load{k8s.deployment.name=y}",
    ]


def test_processes_that_differ_in_their_number_only_are_one_series_with_the_sum_of_their_counters() -> None:
    workers = [{"process__pid": n, "process__executable__name": "nginx", "process__owner": "w"} for n in ("1", "2")]
    other = {"process__pid": "3", "process__executable__name": "sshd"}
    inside = "{{process.executable.name={},process.pid=*{}}}"
    assert of_resources(total(True, CUMULATIVE), *workers, other) == [
        ("requests" + inside.format("nginx", ",route=/a"), 14.0),
        ("requests" + inside.format("sshd", ",route=/a"), 7.0),
    ]
    assert of_resources(gauge(), *workers) == [("load" + inside.format("nginx", ""), 0.5)]


def test_a_point_without_a_time_has_that_of_its_arrival_and_one_without_a_value_is_no_sample() -> None:
    points = [{"asDouble": 1.0}, {"timeUnixNano": NS, "asDouble": 2.0, "flags": 1}, {"timeUnixNano": NS}]
    binary, _ = both(metrics({"name": "load", "gauge": {"dataPoints": points}}))
    assert samples("otlp", binary) == [(ARRIVED, "a", f"load{SHOP}", 1.0, "gauge")]
    nothing, _ = both(metrics({"name": "load", "gauge": {"dataPoints": points[1:]}}))
    assert refusals("otlp", nothing, b"", b"\x0a\xff", None) == [
        *((0, "MESSAGE_EMPTY"), (1, "MESSAGE_EMPTY"), (2, "FORMAT_UNKNOWN"), (3, "MESSAGE_EMPTY")),
    ]


def test_log_records_are_lines_with_the_severity_of_their_number_or_text() -> None:
    numbers = {1: 7, 5: 7, 9: 6, 13: 4, 17: 3, 21: 2, 24: 2}
    given = [record(f"n{number}", severityNumber=number) for number in numbers]
    given += [record("by text", severityNumber=0, severityText="WARN"), {"body": {"stringValue": "bare"}}]
    binary, text = both(logs(*given))
    expected = [(T0, "a", "shop", severity, f"n{number}") for number, severity in numbers.items()]
    expected += [(T0, "a", "shop", 4, "by text"), (ARRIVED, "a", "shop", 6, "bare")]
    assert log_lines("otlp-logs", binary) == log_lines("otlp-logs-json", text) == expected


def test_protobuf_is_not_taken_for_json_where_the_length_of_its_first_resource_is_a_brace() -> None:
    told, lines = braced(metrics(gauge())), braced(logs(record("no")))
    forms = [guess(told, Telemetry), guess(lines, Log)]
    assert [form.name for form in forms if form] == ["otlp", "otlp-logs"]
    assert [value for *_, value, _ in samples("otlp", told)] == [0.5]
    assert [text for *_, text in log_lines("otlp-logs", lines)] == ["no"]


def test_a_structured_body_is_a_line_of_json() -> None:
    body = {"kvlistValue": {"values": [{"key": "event", "value": {"stringValue": "up"}}]}}
    binary, _ = both(logs({"timeUnixNano": NS, "body": body}))
    assert log_lines("otlp-logs", binary)[0][-1] == '{"event":"up"}'
