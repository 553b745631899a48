"""The gateway under load: samples a second that Kafka has acknowledged, and what one costs the gateway's process."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pyarrow as pa
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from deploy.embedded.services import embedded
from pipelines.contracts.settings import Settings, load
from pipelines.evaluation import show
from pipelines.formats.remote_write_protocol import Label, Request, WriteRequest
from tests.benchmarks.queries import say

_IN_REQUEST = 2_000
_CONNECTIONS = 4
_WARM_ROUNDS = 2
"""How often each series is pushed before the measured part: the gateway remembers their labels."""
_T0 = 1_795_220_820_000


def run(
    series: int = 100_000, seconds: int = 15, kafka: str | None = None, state_dir: Path | None = None
) -> dict[str, Any]:
    """Measures each protocol, prints a table, returns the figures."""
    settings = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir})
    figures: dict[str, Any] = {"series": series, "samples_a_request": _IN_REQUEST, "connections": _CONNECTIONS}
    with embedded(settings, elasticsearch=False) as servers:
        own = servers.settings(settings).model_copy(update={"namespace": f"gateway-{int(time.time())}."})
        with _gateway(own) as (url, process):
            for name, (path, headers, bodies) in _loads(series).items():
                say(f"pushing {name}")
                figures[name] = _measured(url, process, path, headers, bodies, seconds)
    rows = [
        [name, *(f"{each[key]:,}" for key in ("samples_per_second", "samples_per_cpu_second", "p99_ms"))]
        for name, each in figures.items()
        if isinstance(each, dict)
    ]
    show.table(
        f"Gateway, {series:,} series", ["protocol", "samples/s acknowledged", "samples/s of its CPU", "p99, ms"], rows
    )
    return figures


@contextmanager
def _gateway(settings: Settings) -> Iterator[tuple[str, psutil.Process]]:
    given = {"NAMESPACE": settings.namespace, "STATE_DIR": str(settings.state_dir), "GATEWAY__PORT": "0"}
    env = os.environ | {f"NEWNORMAL_{name}": value for name, value in given.items()}
    command = [sys.executable, "-m", "pipelines.cli.main", "gateway", "--kafka", settings.kafka.bootstrap or ""]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().split(" at ")[1].split()[0], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


_Load = tuple[str, dict[str, str], list[bytes]]


def _loads(series: int) -> dict[str, _Load]:
    """For each protocol: path, headers, and bodies that hold each series once."""
    protobuf = {"Content-Type": "application/x-protobuf"}
    second = {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"}
    parts = [range(first, min(first + _IN_REQUEST, series)) for first in range(0, series, _IN_REQUEST)]
    return {
        "remote_write_1": ("/api/v1/write", protobuf, [_snappy(_first(part)) for part in parts]),
        "remote_write_2": ("/api/v1/write", second, [_snappy(_second(part)) for part in parts]),
        "otlp": ("/v1/metrics", protobuf, [_otlp(part) for part in parts]),
        "influx": ("/api/v2/write?precision=ms", {}, [_influx(part) for part in parts]),
    }


def _labels(number: int) -> dict[str, str]:
    host, metric = divmod(number, 100)
    return {
        "__name__": f"node_{metric // 8}_seconds_total", "cpu": str(metric % 8), "instance": f"host-{host}:9100",
        "job": "node", "mode": "user",
    }  # fmt: skip


def _snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="snappy", asbytes=True))


def _first(numbers: Sequence[int]) -> bytes:
    request = WriteRequest()
    for number in numbers:
        each = request.timeseries.add()
        each.labels.extend(Label(name=k, value=v).SerializeToString() for k, v in _labels(number).items())
        each.samples.add(value=number / 7, timestamp=_T0)
    return bytes(request.SerializeToString())


def _second(numbers: Sequence[int]) -> bytes:
    request, known = Request(), {"": 0}
    for number in numbers:
        each = request.timeseries.add()
        each.labels_refs.extend(known.setdefault(text, len(known)) for pair in _labels(number).items() for text in pair)
        each.samples.add(value=number / 7, timestamp=_T0)
        each.metadata.type = 1
    request.symbols.extend(known)
    return bytes(request.SerializeToString())


def _otlp(numbers: Sequence[int]) -> bytes:
    request = ExportMetricsServiceRequest()
    scopes: dict[str, Any] = {}
    for number in numbers:
        labels = _labels(number)
        host = labels.pop("instance").partition(":")[0]
        if host not in scopes:
            resource = request.resource_metrics.add()
            resource.resource.attributes.add(key="host.name").value.string_value = host
            scopes[host] = resource.scope_metrics.add()
        metric = scopes[host].metrics.add(name=labels.pop("__name__"))
        metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, 2
        point = metric.sum.data_points.add(time_unix_nano=_T0 * 1_000_000, as_double=number / 7)
        for key, value in labels.items():
            point.attributes.add(key=key).value.string_value = value
    return bytes(request.SerializeToString())


def _influx(numbers: Sequence[int]) -> bytes:
    lines = []
    for number in numbers:
        labels = _labels(number)
        host = labels["instance"].partition(":")[0]
        lines.append(f"{labels['__name__']},cpu={labels['cpu']},host={host},mode=user value={number / 7} {_T0}")
    return "\n".join(lines).encode()


def _measured(
    url: str, process: psutil.Process, path: str, headers: dict[str, str], bodies: list[bytes], seconds: int
) -> dict[str, float]:
    """Pushes on several connections, each the next body when the last one is acknowledged."""
    stop = threading.Event()
    took: list[list[tuple[float, float]]] = [[] for _ in range(_CONNECTIONS)]

    def push(which: int) -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        at = which
        while not stop.is_set():
            began = time.perf_counter()
            connection.request("POST", path, bodies[at % len(bodies)], headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (200, 204), (answer.status, path)
            took[which].append((time.perf_counter(), time.perf_counter() - began))
            at += _CONNECTIONS
        connection.close()

    threads = [threading.Thread(target=push, args=(which,)) for which in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    while sum(map(len, took)) < _WARM_ROUNDS * len(bodies):
        time.sleep(0.05)
    before, began = sum(process.cpu_times()[:2]), time.perf_counter()
    time.sleep(seconds)
    used, end = sum(process.cpu_times()[:2]) - before, time.perf_counter()
    stop.set()
    for thread in threads:
        thread.join()
    counted = sorted(latency for each in took for at, latency in each if began <= at <= end)
    samples = len(counted) * _IN_REQUEST
    return {
        "samples_per_second": round(samples / (end - began)),
        "samples_per_cpu_second": round(samples / used),
        "p99_ms": round(counted[int(len(counted) * 0.99)] * 1e3, 1),
        "body_bytes": len(bodies[0]),
    }
