"""What agents push arrives in Kafka as the samples and lines that they meant, when they are told so."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from pipelines.contracts.records import Log
from pipelines.contracts.settings import Settings
from tests.pipelines.formats.decoding import decoded, decoder
from tests.pipelines.formats.examples_times import T0
from tests.pipelines.formats.otlp_requests import attributes, both, gauge, logs, metrics, record
from tests.pipelines.formats.remote_writes import STALE, Second, request, series
from tests.pipelines.gateway.broker import messages, read, samples

pytestmark = pytest.mark.servers
UP = {"__name__": "up", "instance": "web-1:9100", "job": "node"}
WRITTEN = "x-prometheus-remote-write-{}-written"


def snappy(data: bytes) -> bytes:
    return pa.compress(data, codec="snappy", asbytes=True)


def remote_write(gateway: httpx.Client, data: bytes, proto: str = "") -> httpx.Response:
    headers = {"Content-Encoding": "snappy", "Content-Type": f"application/x-protobuf{proto}"}
    return gateway.post("/api/v1/write", content=snappy(data), headers=headers)


def test_remote_write_of_both_versions_becomes_samples(gateway: httpx.Client, own: Settings) -> None:
    first = remote_write(gateway, request(series(UP, (1, T0), (0, T0 + 15_000))))
    total = {"__name__": "n_total", "instance": "web-2:80"}
    second = Second().add(UP, (0.5, T0 + 30_000), kind=2).add(total, (7, T0), kind=1).bytes()
    answer = remote_write(gateway, second, ";proto=io.prometheus.write.v2.Request")
    assert [(each.status_code, each.headers[WRITTEN.format("samples")]) for each in (first, answer)] == [(204, "2")] * 2
    assert samples(own) == [
        (T0, "web-1", "up{job=node,port=9100}", 1.0, "gauge"),
        (T0, "web-2", "n_total{port=80}", 7.0, "counter"),
        (T0 + 15_000, "web-1", "up{job=node,port=9100}", 0.0, "gauge"),
        (T0 + 30_000, "web-1", "up{job=node,port=9100}", 0.5, "gauge"),
    ]


def test_a_part_of_a_remote_write_that_cannot_be_used_is_told_and_the_rest_is_written(
    gateway: httpx.Client, own: Settings
) -> None:
    answer = remote_write(gateway, request(series({"__name__": "job:up:sum"}, (1, T0)), series(UP, (1, T0))))
    assert (answer.status_code, answer.headers[WRITTEN.format("samples")]) == (400, "1")
    assert answer.text.startswith("MACHINE_UNKNOWN: 1 samples of the request are left out")
    assert [value for *_, value, _ in samples(own)] == [1.0]


def test_what_holds_no_number_is_taken_and_nothing_is_written(gateway: httpx.Client, own: Settings) -> None:
    for body in (b"", request(metadata=b"\x08\x01"), request(series(UP, (STALE, T0)))):
        assert remote_write(gateway, body).status_code == 204
    for path in ("/v1/metrics", "/v1/logs"):
        answer = gateway.post(path, content=b"", headers={"Content-Type": "application/x-protobuf"})
        assert (answer.status_code, answer.content) == (200, b"")
    assert messages(own) == [] == messages(own, Log)


@pytest.mark.parametrize("zipped", [False, True])
def test_influx_lines_of_each_precision_have_the_time_that_they_mean(
    zipped: bool, gateway: httpx.Client, own: Settings
) -> None:
    minute = T0 // 60_000
    for path, precision, stamp in (
        ("/api/v2/write?bucket=b&org=o", "", T0 * 1_000_000),
        ("/api/v2/write?bucket=b&org=o", "&precision=ms", T0),
        ("/write?db=d", "&precision=u", T0 * 1000),
        ("/write?db=d", "&precision=s", T0 // 1000),
        ("/write?db=d", "&precision=m", minute),
    ):
        body = f'mem,host=a used=5i,free=1.5 {stamp}\n# why\ncpu,host=b\\ c ok=t,text="a,\\" b" {stamp}'.encode()
        headers = {"Content-Encoding": "gzip"} if zipped else {}
        answer = gateway.post(path + precision, content=gzip.compress(body) if zipped else body, headers=headers)
        assert (answer.status_code, answer.content) == (204, b"")
    found = numbers(own)
    times = sorted([T0, T0, T0, T0 // 1000 * 1000, minute * 60_000])
    assert sorted(time for time, *_ in found) == sorted(times * 3)
    assert {(machine, metric, value) for _, machine, metric, value in found} == {
        ("a", "mem.used", 5.0), ("a", "mem.free", 1.5), ("b c", "cpu.ok", 1.0)
    }  # fmt: skip


def numbers(own: Settings) -> list[tuple[int, str, str, float]]:
    """The samples of lines that also hold text, of which the pipeline makes dead letters."""
    found = decoded(decoder("influx"), *messages(own))
    assert {code for _, code, _ in found.refused} == {"TEXT_FIELD"}
    return [(r["time"], r["entity"], r["metric"], r["value"]) for r in found.records.to_pylist()]


def test_the_bucket_logs_takes_lines_of_logs(gateway: httpx.Client, own: Settings) -> None:
    line = f'syslog,host=a,appname=su,severity=err message="no entry" {T0 * 1_000_000}'
    assert gateway.post("/api/v2/write?bucket=logs", content=line.encode()).status_code == 204
    assert [(r["time"], r["entity"], r["program"], r["severity"], r["message"]) for r in read(own, Log)] == [
        (T0, "a", "su", 3, "no entry")
    ]


def test_otlp_in_protobuf_and_json_becomes_samples_and_lines(gateway: httpx.Client, own: Settings) -> None:
    for path, bodies in (("/v1/metrics", both(metrics(gauge()))), ("/v1/logs", both(logs(record("no"))))):
        for body, kind in zip(bodies, ("application/x-protobuf", "application/json"), strict=True):
            answer = gateway.post(path, content=body, headers={"Content-Type": kind})
            assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
            assert answer.content == (b"{}" if kind.endswith("json") else b"")
    assert [(machine, value) for _, machine, _, value, _ in samples(own)] == [("a", 0.5)] * 2
    assert [(r["entity"], r["message"]) for r in read(own, Log)] == [("a", "no")] * 2


def test_resources_of_otlp_without_a_machine_are_a_partial_success(gateway: httpx.Client, own: Settings) -> None:
    told = metrics(gauge("kept", 2.0))
    told.resource_metrics.extend(metrics(gauge(), gauge("b"), resource=attributes(color="red")).resource_metrics)
    answer = gateway.post(
        "/v1/metrics", content=told.SerializeToString(), headers={"Content-Type": "application/x-protobuf"}
    )
    part = ExportMetricsServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, part.rejected_data_points) == (200, 2)
    assert part.error_message.startswith("MACHINE_UNKNOWN: 2 data points are left out")
    lines = logs(record("yes"))
    lines.resource_logs.add().scope_logs.add().log_records.add().body.string_value = "nobody's"
    answer = gateway.post(
        "/v1/logs", content=lines.SerializeToString(), headers={"Content-Type": "application/x-protobuf"}
    )
    assert ExportLogsServiceResponse.FromString(answer.content).partial_success.rejected_log_records == 1
    assert [value for *_, value, _ in samples(own)] == [2.0]
    assert [each["message"] for each in read(own, Log)] == ["yes"]


def test_the_sdk_of_opentelemetry_pushes_its_metrics_and_logs(gateway: httpx.Client, own: Settings) -> None:
    url, resource = str(gateway.base_url).rstrip("/"), Resource({"host.name": "sdk-1", "service.name": "shop"})
    exporter = OTLPMetricExporter(f"{url}/v1/metrics", compression=Compression.Gzip, timeout=60)
    provider = MeterProvider([PeriodicExportingMetricReader(exporter, 3_600_000)], resource)
    counter = provider.get_meter("t").create_counter("orders", unit="1")
    counter.add(3, {"kind": "new"})
    counter.add(4, {"kind": "new"})
    assert provider.force_flush(60_000)
    provider.shutdown()
    lines = LoggerProvider(resource)
    lines.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs", timeout=60)))
    lines.get_logger("t").emit(
        LogRecord(timestamp=T0 * 1_000_000, severity_number=SeverityNumber.WARN, body="sold out")
    )
    lines.shutdown()
    mine = [each for each in samples(own) if each[2].startswith("orders")]
    assert {(machine, metric, value, kind) for _, machine, metric, value, kind in mine} == {
        ("sdk-1", "orders{kind=new,service.name=shop}", 7.0, "counter")
    }
    assert [(r["entity"], r["program"], r["severity"], r["message"]) for r in read(own, Log)] == [
        ("sdk-1", "shop", 4, "sold out")
    ]


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus on this machine")
def test_a_real_prometheus_writes_what_it_scrapes(gateway: httpx.Client, own: Settings, tmp_path: Path) -> None:
    target = gateway.base_url.netloc.decode()
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: gateway, static_configs: [{{targets: ['{target}']}}]}}]\n"
        f"remote_write: [{{url: 'http://{target}/api/v1/write'}}]\n"
    )
    command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    process = subprocess.Popen([*command, "--web.listen-address=127.0.0.1:0"], stderr=subprocess.DEVNULL)
    try:
        wanted = f"up{{job=gateway,port={target.partition(':')[2]}}}"
        until = time.monotonic() + 120
        while not (found := [each for each in samples(own) if each[2] == wanted]) and time.monotonic() < until:
            time.sleep(0.5)
        assert {(machine, value, kind) for _, machine, _, value, kind in found} == {("127.0.0.1", 1.0, "gauge")}
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(60)


HEC = json.dumps({"time": T0 / 1000, "host": "a", "event": "metric", "fields": {"metric_name:n": 1}}).encode()
DATADOG = json.dumps({"series": [{"metric": "n", "points": [[T0 // 1000, 1]], "host": "a", "type": "gauge"}]}).encode()
OPENTSDB = json.dumps({"metric": "n", "timestamp": T0, "value": 1, "tags": {"host": "a"}}).encode()
GELF = json.dumps({"version": "1.1", "host": "a", "short_message": "no", "timestamp": T0 / 1000, "level": 3}).encode()


@pytest.mark.parametrize(("name", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("", bytes)])
def test_what_vendors_intakes_take_is_in_kafka_when_they_say_so(
    name: str, packed: Callable[[bytes], bytes], gateway: httpx.Client, own: Settings
) -> None:
    headers = {"Content-Encoding": name} if name else {}
    asked = {"/api/v1/series": (DATADOG, 202), "/api/put": (OPENTSDB, 204), "/gelf": (GELF, 202)}
    asked |= {"/services/collector": (HEC, 200)} if name != "deflate" else {}
    for path, (body, status) in asked.items():
        assert gateway.post(path, content=packed(body), headers=headers).status_code == status
    assert {(machine, metric, value) for _, machine, metric, value, _ in samples(own)} == {("a", "n", 1.0)}
    assert len(samples(own)) == len(asked) - 1
    assert [(r["time"], r["entity"], r["severity"], r["message"]) for r in read(own, Log)] == [(T0, "a", 3, "no")]
    torn = gateway.post("/gelf", content=b"torn", headers={"Content-Encoding": "gzip"})
    assert (torn.status_code, torn.text.partition(":")[0]) == (400, "GATEWAY_ENCODING")
