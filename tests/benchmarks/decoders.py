"""The decoders of agents' formats, each alone: samples or log lines a second of CPU time of one core."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from engine.spec.decoder import Messages
from engine.spec.errors import NewnormalError
from pipelines.evaluation import show
from pipelines.formats.catalogue import BY_NAME
from pipelines.formats.rules import Rules

RULES = Rules(machine="web-1")
"""Lines that name no machine are of this one."""
_T0 = 1_795_220_820_000
_BAR = 150_000
_MACHINES = 100
_WHEN = "2026-11-21T00:27:00.013Z"


def run(records: int = 100_000, formats: str = "", repeats: int = 3) -> dict[str, Any]:
    """Measures each format, prints a table, and returns the figures: the best of some repeats.

    Args:
        records: About how many samples or lines each format decodes in a repeat.
        formats: Names of formats with commas between them; empty: all.
        repeats: How often each is measured; the first time it also warms up what is remembered of series.
    """
    figures: dict[str, Any] = {}
    chosen = formats.split(",") if formats else list(BY_NAME)
    for name in (each for each in chosen if each not in BY_NAME):
        raise NewnormalError("FORMAT_NAME_UNKNOWN", name, "--formats", ", ".join(BY_NAME), "nothing was measured")
    gc.freeze()  # as the process does from which Spark's workers come: what is loaded is not searched again for garbage
    for name in chosen:
        made = _LOADS[name]
        sample = made(0)
        values = [made(at) for at in range(max(1, records // _held(name, [sample])))]
        figures[name] = _measured(name, values, repeats)
    rows = [[name, f"{rate:,}", f"{rate / _BAR:.2f}"] for name, rate in figures.items()]
    show.table(f"Decoders, about {records:,} records each", ["format", "records/s of CPU", f"of {_BAR:,}"], rows)
    return figures


def _held(name: str, values: list[bytes]) -> int:
    return max(1, BY_NAME[name].build(RULES).decode(_messages(values)).records.num_rows)


def _measured(name: str, values: list[bytes], repeats: int) -> int:
    decoder, messages = BY_NAME[name].build(RULES), _messages(values)
    best = 0.0
    for _ in range(repeats):
        gc.collect()
        begin = time.process_time()
        found = decoder.decode(messages)
        spent = time.process_time() - begin
        assert not found.refused, found.refused[:1]
        best = max(best, found.records.num_rows / spent)
    return round(best)


def _messages(values: list[bytes]) -> Messages:
    n = len(values)
    return Messages("bench", 0, pa.array(values, pa.binary()), np.arange(n), np.full(n, _T0))


def _host(at: int) -> str:
    return f"web-{at % _MACHINES:03}"


def _json(make: Callable[[int], Any]) -> Callable[[int], bytes]:
    return lambda at: json.dumps(make(at)).encode()


def _lines(make: Callable[[int], str], lines: int = 50) -> Callable[[int], bytes]:
    return lambda at: "\n".join(make(at * lines + line) for line in range(lines)).encode()


def _telegraf(at: int) -> dict[str, Any]:
    fields = {f"usage_{name}": at % 97 + 0.25 for name in ("user", "system", "idle", "iowait", "irq", "steal", "nice")}
    tags = {"host": _host(at), "cpu": f"cpu{at % 8}", "dc": "lab"}
    return {"name": "cpu", "tags": tags, "fields": fields, "timestamp": _T0 // 1000}


def _collectd(at: int) -> list[dict[str, Any]]:
    common = {"dstypes": ["derive", "derive"], "dsnames": ["rx", "tx"], "time": _T0 / 1000, "interval": 10.0}
    common |= {"host": _host(at), "plugin": "interface", "type_instance": ""}
    types = ("if_octets", "if_packets", "if_errors", "if_dropped")
    return [common | {"values": [at, at + 0.5], "plugin_instance": f"eth{n}", "type": t} for n in (0, 1) for t in types]


def _metricbeat(at: int) -> dict[str, Any]:
    ways = {way: {"bytes": at, "packets": at, "errors": 0, "dropped": 0} for way in ("in", "out")}
    return {
        "@timestamp": _WHEN, "@metadata": {"beat": "metricbeat", "type": "_doc", "version": "8.19.0"},
        "agent": {"name": _host(at), "type": "metricbeat", "version": "8.19.0", "id": "1f6f", "ephemeral_id": "a1"},
        "ecs": {"version": "8.0.0"}, "service": {"type": "system"}, "metricset": {"name": "network", "period": 10000},
        "event": {"dataset": "system.network", "module": "system", "duration": 115000},
        "host": {"name": _host(at), "hostname": _host(at), "architecture": "x86_64", "os": {"platform": "debian"}},
        "system": {"network": {"name": f"eth{at % 4}", **ways}},
    }  # fmt: skip


def _vector(at: int) -> dict[str, Any]:
    tags = {"collector": "cpu", "cpu": str(at % 8), "host": _host(at), "mode": "idle"}
    return {"name": "cpu_seconds_total", "namespace": "host", "tags": tags, "timestamp": _WHEN, "kind": "absolute",
            "counter": {"value": at + 0.5}}  # fmt: skip


def _csv(at: int) -> bytes:
    rows = [f"{_T0 // 1000},{_host(at)},eth{n},{n}.5,{at},0.25" for n in range(20)]
    return "\n".join(["time,host,interface,rx,tx,load", *rows]).encode()


def _attributes(**values: str) -> list[dict[str, Any]]:
    return [{"key": name.replace("__", "."), "value": {"stringValue": value}} for name, value in values.items()]


def _otlp(at: int) -> dict[str, Any]:
    def points(metric: int) -> list[dict[str, Any]]:
        stamps = {"startTimeUnixNano": str(_T0 * 10**6), "timeUnixNano": str(_T0 * 10**6)}
        return [
            {**stamps, "attributes": _attributes(cpu=f"cpu{n}", state="idle"), "asDouble": at + metric + n / 2}
            for n in range(8)
        ]

    metrics = [
        {"name": f"system.cpu.time.{n}", "unit": "s",
         "sum": {"dataPoints": points(n), "aggregationTemporality": 2, "isMonotonic": True}}
        for n in range(5)
    ]  # fmt: skip
    scope = {"scope": {"name": "hostmetrics", "version": "1"}, "metrics": metrics}
    resource = {"attributes": _attributes(host__name=_host(at), os__type="linux")}
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]}


def _otlp_logs(at: int) -> dict[str, Any]:
    records = [
        {
            "timeUnixNano": str(_T0 * 10**6), "observedTimeUnixNano": str(_T0 * 10**6), "severityNumber": 9,
            "severityText": "INFO", "body": {"stringValue": f"GET /items/{at * 40 + n} 200"},
            "attributes": _attributes(thread="main", logger="shop.api"),
        }
        for n in range(40)
    ]  # fmt: skip
    resource = {"attributes": _attributes(host__name=_host(at), service__name="shop")}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}


def _protobuf(make: Callable[[int], Any], kind: type[Any]) -> Callable[[int], bytes]:
    return lambda at: bytes(json_format.ParseDict(make(at), kind()).SerializeToString())


def _remote_write(at: int) -> bytes:
    made = []
    for n in range(100):
        named = {"__name__": "node_cpu_seconds_total", "instance": f"{_host(at)}:9100", "cpu": str(n), "mode": "idle"}
        made.append((named, float(n)))
    return _written(made)


def _written(made: list[tuple[dict[str, str], float]]) -> bytes:
    """A request of remote write 1.0: series (field 1) of labels (1) and samples (2)."""

    def field(number: int, inside: bytes) -> bytes:
        return bytes([number << 3 | 2]) + _varint(len(inside)) + inside

    def sample(value: float) -> bytes:
        return b"\x09" + np.float64(value).tobytes() + b"\x10" + _varint(_T0)

    def label(name: str, value: str) -> bytes:
        return field(1, field(1, name.encode()) + field(2, value.encode()))

    parts = (b"".join(label(*pair) for pair in labels.items()) + field(2, sample(value)) for labels, value in made)
    return b"".join(field(1, part) for part in parts)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _ecs_line(at: int) -> dict[str, Any]:
    return {
        "@timestamp": _WHEN, "host": {"name": _host(at)}, "log": {"level": "info", "file": {"path": "/var/log/x"}},
        "agent": {"type": "filebeat", "version": "8.19.0"}, "process": {"name": "sshd", "pid": 7},
        "ecs": {"version": "8.0.0"}, "event": {"dataset": "system.auth"}, "message": f"Accepted key for user{at}",
    }  # fmt: skip


def _telegraf_line(at: int) -> dict[str, Any]:
    tags = {"host": _host(at), "appname": "sshd", "severity": "err", "facility": "auth"}
    fields = {"message": f"no entry for user{at}", "severity_code": 3, "procid": "7"}
    return {"name": "syslog", "tags": tags, "fields": fields, "timestamp": _T0}


_LOADS: dict[str, Callable[[int], bytes]] = {
    "remote-write": _remote_write,
    "otlp": _protobuf(_otlp, ExportMetricsServiceRequest),
    "otlp-json": _json(_otlp),
    "otlp-logs": _protobuf(_otlp_logs, ExportLogsServiceRequest),
    "otlp-logs-json": _json(_otlp_logs),
    "json": _json(
        lambda at: {"@timestamp": _T0, "host.name": _host(at), "metric": f"m{at % 50}", "value": at / 2}
    ),
    "json-logs": _json(
        lambda at: {"@timestamp": _T0, "host.name": _host(at), "process.name": "su", "message": f"no entry for u{at}"}
    ),
    "metricbeat": _json(_metricbeat),
    "telegraf": _json(_telegraf),
    "collectd": _json(_collectd),
    "rsyslog": _json(
        lambda at: {
            "ts": "2026-11-21T00:28:54.5+00:00",
            "host": _host(at),
            "severity": 4,
            "program": "sshd",
            "msg": f" no {at}",
        }
    ),
    "prometheus-adapter": _json(
        lambda at: {
            "timestamp": "2026-11-21T00:27:00Z", "value": f"{at}", "name": "node_cpu_seconds_total",
            "labels": {"__name__": "node_cpu_seconds_total", "instance": f"{_host(at)}:9100", "cpu": str(at % 8)},
        }
    ),
    "vector": _json(_vector),
    "prometheus": _lines(lambda at: f'cpu_seconds_total{{instance="{_host(at)}:9100",cpu="{at % 64}"}} {at}.5 {_T0}'),
    "influx": _lines(lambda at: f"cpu,host={_host(at)},cpu=cpu{at % 8} user={at}i,system=0.5,idle=97.25 {_T0 * 10**6}"),
    "putval": _lines(lambda at: f'PUTVAL "{_host(at)}/interface-eth0/if_octets" interval=10 {_T0 // 1000}:{at}:5'),
    "graphite": _lines(lambda at: f"{_host(at)}.cpu.{at % 8}.idle 97.5 {_T0 // 1000}"),
    "statsd": _lines(lambda at: f"web.requests.{at % 20}:{at % 97}|c|@0.5|#host:{_host(at)},code:200"),
    "statsd-events": _lines(lambda at: f"_e{{7,4}}:restart|{at % 9000 + 1000}|h:{_host(at)}|t:warning|#env:x"),
    "flat-json": _json(
        lambda at: {
            "time": _T0 + at, "host": _host(at), "cpu": 0.3, "load": at / 7, "mem": {"used": at, "free": 12.5},
            "net": {"interface": f"eth{at % 4}", "rx": at, "tx": 5},
        }
    ),
    "splunk-metrics": _json(
        lambda at: {
            "time": _T0 / 1000, "host": _host(at), "event": "metric",
            "fields": {"cpu": f"cpu{at % 8}", **{f"metric_name:cpu.{name}": at / 7 for name in ("usr", "sys", "io")}},
        }
    ),
    "splunk-events": _json(
        lambda at: [
            {"time": _T0 / 1000, "host": _host(n), "sourcetype": "sshd", "event": f"no entry for user{at + n}"}
            for n in range(20)
        ]
    ),
    "datadog": _json(
        lambda at: {
            "series": [
                {"metric": f"system.cpu.{n}", "points": [[_T0 // 1000, at + n]], "type": "gauge", "host": _host(at),
                 "tags": ["env:x", f"cpu:{n}"]}
                for n in range(20)
            ]
        }
    ),
    "cloudwatch": _json(
        lambda at: {
            "metric_stream_name": "s", "account_id": "1", "region": "eu", "namespace": "AWS/EC2",
            "metric_name": "DiskWriteOps", "dimensions": {"InstanceId": f"i-{at % 100}"}, "timestamp": _T0,
            "value": {"max": 3.0, "min": 1.0, "sum": 4.0, "count": 2.0}, "unit": "Count",
        }
    ),
    "zabbix": _json(
        lambda at: {
            "host": {"host": _host(at), "name": "x"}, "groups": ["Linux"], "itemid": at, "name": f"CPU load {at % 20}",
            "item_tags": [{"tag": "component", "value": "cpu"}], "clock": _T0 // 1000, "value": at / 2, "type": 0,
        }
    ),
    "nagios": _lines(
        lambda at: f"DATATYPE::SERVICEPERFDATA\tTIMET::{_T0 // 1000}\tHOSTNAME::{_host(at)}\tSERVICEDESC::PING\t"
        f"SERVICEPERFDATA::rta={at}ms;100;500;0 pl=0%;20;60;0 min=1ms max=2ms\tSERVICESTATE::0"
    ),
    "prometheus-api": _json(
        lambda at: {
            "status": "success",
            "data": {
                "resultType": "matrix",
                "result": [
                    {"metric": {"__name__": "up", "instance": f"{_host(n)}:9100", "job": "x"},
                     "values": [[_T0 / 1000 + each, "1"] for each in range(20)]}
                    for n in range(5)
                ],
            },
        }
    ),
    "csv": _csv,
    "syslog": lambda at: f"<34>1 {_WHEN} {_host(at)} su 7 ID47 - no entry for user{at}".encode(),
    "telegraf-logs": _json(_telegraf_line),
    "influx-logs": _lines(lambda at: f'tail,host={_host(at)},path=/x message="no user{at}",level="warn" {_T0 * 10**6}'),
    "shipped-logs": _json(_ecs_line),
    "log-file": lambda at: f"{_WHEN[:-1]}+01:00 {_host(at)} sshd[7]: no entry for user{at}".encode(),
    "cri": lambda at: f"{_WHEN} stdout F no entry for user{at}".encode(),
    "docker-json": lambda at: f'{{"log":"no \\"entry\\" {at}\\n","stream":"stdout","time":"{_WHEN}"}}'.encode(),
    "web-log": lambda at: (
        f'192.0.2.{at % 256} - - [21/Nov/2026:00:{at // 60 % 60:02}:{at % 60:02} +0000]'
        f' "GET /items/{at} HTTP/1.1" 200 17 "https://example.org/" "Mozilla/5.0 (X11; Linux x86_64)"'
    ).encode(),
    "logfmt": lambda at: f'ts={_WHEN} caller=x.go:7 level=warn msg="no entry for {at}" host={_host(at)} n=7'.encode(),
    "gelf": _json(
        lambda at: {"version": "1.1", "host": _host(at), "short_message": f"no entry for user{at}",
                    "timestamp": _T0 / 1000, "level": 3, "_app": "shop"}
    ),
}  # fmt: skip
"""Makes the message with a number, for each format; some lines, samples or records, as agents send them."""
