"""Prometheus' text and the adapter's JSON, against expectations worked out by hand from their specifications."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pipelines.formats.message_decoder import metric_name
from tests.pipelines.formats.decoding import ARRIVED, decoded, decoder, refusals, rows, samples

NODE = b"""# HELP node_load1 1m load average.
# TYPE node_load1 gauge
node_load1 0.5
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 5000.25
node_cpu_seconds_total{cpu="0",mode="user"} 1e2
# TYPE node_uname_info gauge
node_uname_info{machine="x86_64",nodename="web-7",sysname="Linux"} 1
"""

SPECIFICATION = rb"""# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200",host="a"} 1027 1395066363000
http_requests_total{method="post",code="400",host="a"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{host="a",path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9

# Minimalistic line:
metric_without_timestamp {host="a"} 12.47

# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{host="a",le="0.05"} 24054
http_request_duration_seconds_bucket{host="a",le="+Inf"} 144320
http_request_duration_seconds_sum{host="a"} 53423
http_request_duration_seconds_count{host="a"} 144320

# TYPE rpc_duration_seconds summary
rpc_duration_seconds{host="a",quantile="0.5"} 4773
rpc_duration_seconds{host="a",quantile="0.9"} NaN
rpc_duration_seconds_count{host="a"} 2693
"""
"""The example of Prometheus' documentation, with a label that names the machine."""


def test_the_example_of_the_documentation_becomes_what_it_says() -> None:
    found = {metric: (value, kind) for _, _, metric, value, kind in samples("prometheus", SPECIFICATION)}
    duration = "http_request_duration_seconds"
    assert found == {
        "http_requests_total{code=200,method=post}": (1027, "counter"),
        "http_requests_total{code=400,method=post}": (3, "counter"),
        'msdos_file_access_time_seconds{error=Cannot find file:\n"FILE.TXT",path=C:\\DIR\\FILE.TXT}': (
            1458255915,
            "gauge",
        ),
        "metric_without_timestamp": (12.47, "gauge"),
        f"{duration}_bucket{{le=0.05}}": (24054, "counter"),
        f"{duration}_bucket{{le=+Inf}}": (144320, "counter"),
        f"{duration}_sum": (53423, "counter"),
        f"{duration}_count": (144320, "counter"),
        "rpc_duration_seconds{quantile=0.5}": (4773, "gauge"),
        "rpc_duration_seconds_count": (2693, "counter"),
    }


def test_times_are_milliseconds_and_in_openmetrics_seconds_and_otherwise_the_arrival() -> None:
    assert samples("prometheus", b'x{host="a"} 1 1395066363000')[0][0] == 1395066363000
    assert samples("prometheus", b'x{host="a"} 1 1395066363.5\n# EOF\n')[0][0] == 1395066363500
    assert samples("prometheus", b'x{host="a"} 1')[0][0] == ARRIVED


def test_the_node_exporters_own_name_is_the_machine_where_no_label_names_one() -> None:
    other = NODE.replace(b"web-7", b"web-8")
    found = samples("prometheus", NODE, other)
    assert [machine for _, machine, *_ in found] == ["web-7"] * 4 + ["web-8"] * 4
    assert {metric: kind for _, _, metric, _, kind in found} == {
        "node_load1": "gauge",
        "node_cpu_seconds_total{cpu=0,mode=idle}": "counter",
        "node_cpu_seconds_total{cpu=0,mode=user}": "counter",
        "node_uname_info{machine=x86_64,sysname=Linux}": "gauge",
    }
    assert refusals("prometheus", b"node_load1 0.5") == [(0, "MACHINE_UNKNOWN")]


def test_a_type_holds_in_its_own_message_only_and_the_name_decides_without_one() -> None:
    told = b'# TYPE a counter\na{host="x"} 1\nb_total{host="x"} 1\nc{host="x"} 1'
    gauge = b'# TYPE a gauge\n# TYPE b_total gauge\na{host="x"} 1\nb_total{host="x"} 1\nc{host="x"} 1'
    kinds = [kind for *_, kind in samples("prometheus", told, gauge)]
    assert kinds == ["counter", "counter", "gauge", "gauge", "gauge", "gauge"]


def test_an_openmetrics_counter_counts_by_the_type_of_its_family_and_exemplars_are_ignored() -> None:
    text = (
        b'# TYPE foo counter\nfoo_total{host="a"} 17 1520879607.789 # {trace_id="x"} 1\nfoo_created{host="a"} 15\n# EOF'
    )
    assert [(metric, value, kind) for _, _, metric, value, kind in samples("prometheus", text)] == [
        ("foo_total", 17.0, "counter"),
        ("foo_created", 15.0, "gauge"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        *(b"x", b"x 1 2 3", b"x one", b'x{a="b" 1', b"x{a=b} 1", b'x{a="b"c="d"} 1', b'{a="b"} 1', b"1x 1"),
        *(b"x 1_000", b"x 0x10", b'x{a="\\"} 1', b'x{="b"} 1', b'x{a="b"} 1 soon', b"<html>"),
    ],
)
def test_a_broken_line_refuses_itself_and_is_told_and_a_message_without_another_is_refused(line: bytes) -> None:
    good = b'x{host="a"} 1'
    found = decoded(decoder("prometheus"), good, good + b"\n" + line, line)
    assert [row["__row"] for row in rows(found)] == [0, 1]
    (told, refused) = found.refused
    assert (told[:2], refused[:2]) == ((1, "LINE_INVALID"), (2, "LINE_INVALID"))
    assert told[2].startswith("1 lines are left out, the first: line 2: ")
    assert refused[2].startswith("line 1: ")


def test_a_port_distinguishes_two_processes_of_one_machine() -> None:
    found = samples(
        "prometheus", b'x{instance="10.0.0.7:8080"} 1\nx{instance="10.0.0.7:8081"} 2\nx{instance="[::1]:80"} 3'
    )
    assert [(machine, metric) for _, machine, metric, _, _ in found] == [
        ("10.0.0.7", "x{port=8080}"),
        ("10.0.0.7", "x{port=8081}"),
        ("::1", "x{port=80}"),
    ]


def adapter(**changed: Any) -> bytes:
    labels = {"__name__": "up", "instance": "a:9100", "job": "node"}
    return json.dumps(
        {"timestamp": "2026-11-21T00:27:00Z", "value": "1", "name": "up", "labels": labels} | changed
    ).encode()


def test_the_adapters_json_is_a_sample_with_the_kind_that_its_name_tells() -> None:
    assert samples("prometheus-adapter", adapter()) == [
        (1_795_220_820_000, "a", "up{job=node,port=9100}", 1.0, "gauge")
    ]
    ((*_, kind),) = samples("prometheus-adapter", adapter(name="http_requests_total"))
    assert kind == "counter"


def test_a_label_with_very_many_values_is_folded_in_gauges_but_not_in_counters_that_come_alone() -> None:
    labels = {"instance": "a", "uid": "0b6c1f2e-0f5a-4b7e-9d3c-1c2d3e4f5a6b"}
    ((_, _, gauge, *_),) = samples("prometheus-adapter", adapter(labels=labels))
    ((_, _, counter, *_),) = samples("prometheus-adapter", adapter(labels=labels, name="n_total"))
    assert gauge == "up{uid=*}"
    assert counter == f"n_total{{uid={labels['uid']}}}"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"value": "NaN"}, "MESSAGE_EMPTY"), ({"value": "x"}, "FIELD_INVALID"), ({"value": None}, "FIELD_INVALID"),
        ({"timestamp": "soon"}, "FIELD_INVALID"), ({"labels": {"job": "x"}}, "MACHINE_UNKNOWN"),
        ({"labels": {"instance": ["a"]}}, "FIELD_INVALID"), ({"name": 5}, "FIELD_INVALID"),
        ({"value": "Inf"}, "FIELD_INVALID"),
    ],
)  # fmt: skip
def test_an_unusable_sample_of_the_adapter_is_a_dead_letter(changed: dict[str, Any], code: str) -> None:
    assert refusals("prometheus-adapter", adapter(), adapter(**changed)) == [(1, code)]


def test_what_the_official_client_writes_is_what_its_own_parser_reads() -> None:
    registry = CollectorRegistry()
    Counter("jobs", "Jobs.", ["host", "queue"], registry=registry).labels("a", 'odd "q"\\\n}, x="1').inc(3)
    Gauge("depth", "Depth.", ["host"], registry=registry).labels("a").set(-1.5e-7)
    Histogram("took_seconds", "Took.", ["host"], buckets=(0.1, 1.0), registry=registry).labels("a").observe(0.5)
    Summary("size_bytes", "Size.", ["host"], registry=registry).labels("a").observe(2e12)
    text = generate_latest(registry)
    read = [each for family in text_string_to_metric_families(text.decode()) for each in family.samples]
    expected = {
        metric_name(each.name, {name: value for name, value in each.labels.items() if name != "host"}): each.value
        for each in read
    }
    found = samples("prometheus", text)
    assert {metric: value for _, _, metric, value, _ in found} == expected
    assert len(found) == len(read) > 8
    counters = {metric.partition("{")[0] for _, _, metric, _, kind in found if kind == "counter"}
    parts = {"took_seconds_bucket", "took_seconds_count", "took_seconds_sum", "size_bytes_count", "size_bytes_sum"}
    assert counters == {"jobs_total", *parts}
