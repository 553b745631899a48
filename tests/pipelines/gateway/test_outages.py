"""While Kafka hangs nothing is acknowledged; nothing is lost if agents come again; a stop finishes what was taken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pyarrow as pa
import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from pipelines.contracts.settings import Settings
from pipelines.gateway.serving import Gateway
from tests.pipelines.formats.examples_times import T0
from tests.pipelines.formats.remote_writes import request, series
from tests.pipelines.gateway.broker import Broker, samples

pytestmark = pytest.mark.servers
_PATIENCE = 180.0
SNAPPY = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}


def changed(settings: Settings, **gateway: object) -> Settings:
    return settings.model_copy(update={"gateway": settings.gateway.model_copy(update=gateway)})


@contextmanager
def served(settings: Settings) -> Iterator[httpx.Client]:
    gateway = Gateway(settings)
    try:
        with httpx.Client(base_url=gateway.url, timeout=_PATIENCE) as client:
            yield client
    finally:
        gateway.close()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not true():
        assert time.monotonic() < end, "it has not become true in time"
        time.sleep(0.05)


def figure(client: httpx.Client, line: str) -> float:
    """A figure of the gateway; 0 if it has none of this name."""
    found = [each for each in client.get("/metrics").text.splitlines() if each.startswith(line)]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


def write(client: httpx.Client, number: int, times: int = 1) -> httpx.Response:
    body = request(series({"__name__": "n", "instance": "a"}, *((number, T0 + at) for at in range(times))))
    return client.post("/api/v1/write", content=pa.compress(body, codec="snappy", asbytes=True), headers=SNAPPY)


def test_what_is_sent_while_kafka_hangs_is_refused_and_there_when_it_was_sent_again(broker: Broker) -> None:
    settings = changed(broker.named("hung"), timeout="2s")
    with served(settings) as client:
        with broker.hung():
            answers = [write(client, number) for number in range(2)]
            line = client.post("/api/v2/write", content=b"m,host=a v=1")
            assert [answer.status_code for answer in (*answers, line)] == [503] * 3
            assert all(int(answer.headers["retry-after"]) > 0 for answer in (*answers, line))
        for number in range(2):  # as Prometheus does with 503: the same again until it is taken
            until(lambda number=number: write(client, number).status_code == 204)
        until(lambda: client.get("/health").status_code == 200)
        assert {value for _, _, metric, value, _ in samples(settings) if metric == "n"} == {0.0, 1.0}


def test_the_sdk_of_opentelemetry_comes_again_and_loses_nothing(broker: Broker) -> None:
    settings = changed(broker.named("again"), timeout="2s")
    with served(settings) as client:
        exporter = OTLPMetricExporter(f"{str(client.base_url).rstrip('/')}/v1/metrics", timeout=_PATIENCE)
        provider = MeterProvider(
            [PeriodicExportingMetricReader(exporter, 3_600_000)], Resource({"host.name": "a", "service.name": "shop"})
        )
        provider.get_meter("t").create_counter("orders").add(7)
        flushed: list[bool] = []
        flush = threading.Thread(target=lambda: flushed.append(provider.force_flush(_PATIENCE * 1000)))
        with broker.hung():
            flush.start()
            refused = 'newnormal_gateway_refused_total{code="GATEWAY_KAFKA",protocol="otlp"}'
            until(lambda: figure(client, refused) >= 1)
        flush.join()
        provider.shutdown()
        assert flushed == [True]
        assert {(metric, value) for _, _, metric, value, _ in samples(settings) if metric.startswith("orders")} == {
            ("orders{service.name=shop}", 7.0)
        }


def test_more_than_may_wait_for_kafka_is_sent_away_at_once(broker: Broker) -> None:
    settings = changed(broker.named("busy"), timeout="170s", max_in_flight=2_000)
    with served(settings) as client, ThreadPoolExecutor(1) as pool:
        with broker.hung():
            body = b"m,host=a v=1 " + b" " * 900
            waiting = pool.submit(client.post, "/api/v2/write", content=body)
            until(lambda: figure(client, "newnormal_gateway_in_flight_bytes") > 1_000)
            answer = client.post("/api/v2/write", content=body)
            assert (answer.status_code, answer.json()["message"].split(":")[0]) == (429, "GATEWAY_BUSY")
            assert int(answer.headers["retry-after"]) > 0
            assert write(client, 1, 200).status_code == 503, "Prometheus drops what is answered with 429"
        assert waiting.result(_PATIENCE).status_code == 204
        until(lambda: figure(client, "newnormal_gateway_in_flight_bytes") == 0)


def test_a_stop_finishes_what_was_taken(broker: Broker) -> None:
    settings = broker.named("stop")
    given = {"KAFKA__BOOTSTRAP": settings.kafka.bootstrap or "", "NAMESPACE": settings.namespace, "GATEWAY__PORT": "0"}
    given |= {"STATE_DIR": str(settings.state_dir), "GATEWAY__TIMEOUT": "2m"}
    env = os.environ | {f"NEWNORMAL_{name}": value for name, value in given.items()}
    command = [sys.executable, "-m", "pipelines.cli.main", "gateway"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        url = process.stdout.readline().split(" at ")[1].split()[0]
        with httpx.Client(base_url=url, timeout=_PATIENCE) as client, ThreadPoolExecutor(1) as pool:
            with broker.hung():
                waiting = pool.submit(write, client, 5)
                with httpx.Client(base_url=url, timeout=_PATIENCE) as other:
                    until(lambda: figure(other, "newnormal_gateway_in_flight_bytes") > 0)
                process.send_signal(signal.SIGTERM)
                until(lambda: not listens(url))
                assert process.poll() is None and not waiting.done()
            assert waiting.result(_PATIENCE).status_code == 204
            assert process.wait(_PATIENCE) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert [value for *_, value, _ in samples(settings)] == [5.0]


def listens(url: str) -> bool:
    try:
        httpx.get(f"{url}/ping", timeout=_PATIENCE)
    except httpx.TransportError:
        return False
    return True
