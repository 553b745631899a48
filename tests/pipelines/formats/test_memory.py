"""Long texts in messages do not stay in memory, and are not multiplied before they are refused."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from functools import reduce

import pytest

from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import load
from pipelines.formats.bounded import BoundedDecoder
from tests.pipelines.formats.decoding import decoded, decoder
from tests.pipelines.formats.examples_times import NS, T0
from tests.pipelines.formats.otlp_requests import attributes, both, gauge, logs, metrics, record
from tests.pipelines.formats.remote_writes import Second, field, request, series

LONG = 20_000

LONG_TEXT: dict[str, Callable[[str], bytes]] = {
    "shipped-logs": lambda text: json.dumps({"date": T0 / 1000, "host": "a", "log": text}).encode(),
    "otlp-logs": lambda text: both(logs(record("no", attributes=attributes(exception=text))))[0],
    "influx-logs": lambda text: f'm,host=a,request={text} message="no"'.encode(),
    "influx": lambda text: f"m,host=a,dc={text} v=1".encode(),
    "prometheus": lambda text: f'm{{host="a",dc="{text}"}} 1'.encode(),
    "prometheus-adapter": lambda text: json.dumps(
        {"timestamp": "2026-11-21T00:27:00Z", "value": "1", "name": "m", "labels": {"host": "a", "dc": text}}
    ).encode(),
    "metricbeat": lambda text: json.dumps(
        {"@timestamp": T0, "metricset": {}, "host": {"name": "a"}, "fields": {"x": text}, "m": {"v": 1}}
    ).encode(),
    "vector": lambda text: json.dumps(
        {"name": "m", "kind": "absolute", "tags": {"host": "a", "dc": text}, "gauge": {"value": 1}}
    ).encode(),
    "csv": lambda text: f"time,host,dc,v\n{T0},a,{text},1\n".encode(),
    "graphite": lambda text: f"m;host=a;dc={text} 1 -1".encode(),
    "otlp": lambda text: both(metrics(gauge(), resource=attributes(host__name="a", dc=text)))[0],
    "telegraf": lambda text: json.dumps(
        {"name": "m", "fields": {"v": 1}, "tags": {"host": "a", "dc": text}, "timestamp": T0}
    ).encode(),
}
"""Makes a message with a text in it that does not become a part of a name."""


@pytest.mark.parametrize("name", LONG_TEXT)
def test_long_texts_do_not_stay_in_memory(name: str) -> None:
    by = decoder(name)
    decoded(by, LONG_TEXT[name]("x" * LONG))
    tracemalloc.start()
    try:
        for number in range(40):
            decoded(by, LONG_TEXT[name](f"{number:05}" * (LONG // 5)))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8 * LONG


def many_points(name: str, points: int, **resource: str) -> bytes:
    each = {"timeUnixNano": NS, "asDouble": 0.5}
    given = [each | {"attributes": attributes(n=str(number))} for number in range(points)]
    request = metrics({"name": name, "gauge": {"dataPoints": given}}, resource=attributes(host__name="a", **resource))
    return request.SerializeToString()


def many_buckets(attribute: str, buckets: int) -> bytes:
    point = {
        "timeUnixNano": NS,
        "count": 6,
        "bucketCounts": [0] * (buckets + 1),
        "explicitBounds": list(range(buckets)),
    }
    point |= {"attributes": attributes(n=attribute)}
    found = {"name": "took", "histogram": {"dataPoints": [point], "aggregationTemporality": 2}}
    return metrics(found).SerializeToString()


MEGABYTE = 1_000_000
FIELDS = ",".join(f"f{number}=1" for number in range(300))
TAGS = ",".join(f"t{number}=x" for number in range(2_000))
MULTIPLIED: dict[str, tuple[str, bytes]] = {
    "a measurement": ("influx", f"{'m' * MEGABYTE},host=a {FIELDS}".encode()),
    "a tag": ("influx", f"m,host=a,t={'x' * MEGABYTE} {FIELDS}".encode()),
    "many tags": ("influx", f"m,host=a,{TAGS} {','.join(f'f{n}=1' for n in range(20_000))}".encode()),
    "text": ("influx", f"{'m' * MEGABYTE},host=a {FIELDS.replace('=1', '=ab').replace('ab', chr(34) * 2)}".encode()),
    "a metric": ("otlp", many_points("m" * MEGABYTE, 300)),
    "an attribute": ("otlp", many_points("m", 300, shard="x" * MEGABYTE)),
    "attributes": ("otlp", many_points("m", 5_000, shard="x" * 10_000)),
    "buckets": ("otlp", many_buckets("x" * MEGABYTE, 300)),
    "a plugin": ("putval", f"PUTVAL a/{'p' * MEGABYTE}/t interval=10 1795220820{':1' * 300}".encode()),
    "Telegraf's tags": (
        "telegraf",
        json.dumps(
            {"name": "m", "fields": dict.fromkeys(map(str, range(300)), 1), "tags": {"host": "a", "t": "x" * MEGABYTE}}
            | {"timestamp": T0}
        ).encode(),
    ),
    "a field of Metricbeat": (
        "metricbeat",
        json.dumps(
            {"@timestamp": T0, "metricset": {}, "host": {"name": "a"}}
            | {"m" * MEGABYTE: dict.fromkeys(map(str, range(300)), 1)}
        ).encode(),
    ),
    "a name in Metricbeat": (
        "metricbeat",
        json.dumps(
            {"@timestamp": T0, "metricset": {}, "host": {"name": "a"}}
            | {"m": {"name": "x" * MEGABYTE} | dict.fromkeys(map(str, range(300)), 1)}
        ).encode(),
    ),
    "a tag of Vector": (
        "vector",
        json.dumps(
            {"name": "m", "kind": "absolute", "tags": {"host": "a", "t": "x" * MEGABYTE}}
            | {"aggregated_summary": {"quantiles": [{"quantile": n / 300, "value": 1} for n in range(300)], "count": 1}}
        ).encode(),
    ),
    "the machine of Vector": (
        "vector",
        json.dumps(
            {"name": "m", "kind": "absolute", "tags": {"host": "x" * MEGABYTE + ":22"}}
            | {"aggregated_summary": {"quantiles": [{"quantile": n / 300, "value": 1} for n in range(300)], "count": 1}}
        ).encode(),
    ),
    "a label of CSV": (
        "csv",
        f"time,host,label,{','.join(f'c{n}' for n in range(300))}\n{T0},a,{'x' * 100_000}{',1' * 300}\n".encode(),
    ),
    "Telegraf's text": (
        "telegraf",
        json.dumps(
            {"name": "m" * MEGABYTE, "fields": dict.fromkeys(map(str, range(300)), "x"), "tags": {"host": "a"}}
            | {"timestamp": T0}
        ).encode(),
    ),
}


@pytest.mark.parametrize("what", MULTIPLIED)
def test_a_long_name_of_many_samples_is_refused_before_it_is_repeated_for_each(what: str) -> None:
    name, value = MULTIPLIED[what]
    by = decoder(name)
    tracemalloc.start()
    try:
        found = decoded(by, value)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.records.num_rows == 0
    assert [code for _, code, _ in found.refused][:1] in (["LINE_INVALID"], ["FIELD_INVALID"])
    assert most < 60 * MEGABYTE


def series_of(number: int) -> dict[str, str]:
    """Labels as a scrape of Kubernetes adds them."""
    told = {"__name__": "node_cpu_seconds_total", "instance": f"w-{number}:9100", "pod": f"node-exporter-{number}"}
    told |= dict.fromkeys(("job", "namespace", "container", "service", "endpoint"), "node-exporter")
    return told | {"cpu": "17", "mode": "idle"}


@pytest.mark.parametrize(
    ("sent", "most"),
    [
        (lambda numbers: request(*(series(series_of(n), (1, T0)) for n in numbers)), 2_200),
        (lambda numbers: reduce(lambda to, n: to.add(series_of(-n), (1, T0)), numbers, Second()).bytes(), 1_600),
    ],
)
def test_a_series_of_remote_write_is_remembered_once(sent: Callable[[range], bytes], most: int) -> None:
    by = decoder("remote-write")
    decoded(by, sent(range(1, 100)))
    new = sent(range(100, 1100))
    gc.collect()
    tracemalloc.start()
    try:
        decoded(by, new)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / 1000 < most


SECOND = field(4, "") + field(4, "a")
MANY: dict[str, bytes] = {
    "series of 1.0": b"\n\x00" * 2_000_000,
    "series of 2.0": SECOND + b"\x2a\x00" * 2_000_000,
    "symbols": SECOND + b"\x22\x00" * 2_000_000,
    "unknown fields": b"\x10\x00" * 2_000_000,
    "samples": request(series({"__name__": "up", "instance": "a"}) + b"\x12\x00" * 250_001),
    "labels": request(field(1, b"\n\x01a") * 100_000 + field(2, field(1, 1.0))),
    "labels of 2.0": SECOND + field(5, field(1, b"\x01" * 1_000_000) + field(2, field(1, 1.0))),
}
"""Makes requests of remote write with very many small parts."""


@pytest.mark.parametrize("what", MANY)
def test_very_many_small_parts_are_refused_before_they_fill_the_memory(what: str) -> None:
    by = BoundedDecoder(decoder("remote-write"), Telemetry, load().input.max_parts)
    tracemalloc.start()
    try:
        found = decoded(by, MANY[what])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    codes = {"labels": "FIELD_INVALID", "unknown fields": "MESSAGE_EMPTY"}
    assert [code for _, code, _ in found.refused] == [codes.get(what, "TOO_MANY_PARTS")]
    assert most < 60 * MEGABYTE
