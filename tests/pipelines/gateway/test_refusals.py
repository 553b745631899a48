"""What the gateway does not take: malformed, too large, too much, of nobody. No Kafka is needed, and none is there."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from engine.spec.duration import duration_ms
from engine.spec.errors import REGISTRY, NewnormalError
from pipelines.contracts.access_token import access_token
from pipelines.contracts.settings import load
from pipelines.formats.labels import LABELS
from pipelines.gateway import handling
from pipelines.gateway.app import create_app
from pipelines.gateway.influx import LOGS, Influx
from pipelines.gateway.limits import InFlight, Rate
from pipelines.gateway.otlp import Otlp
from pipelines.gateway.protocol import Body, Protocol
from pipelines.gateway.remote_write import RemoteWrite
from pipelines.gateway.writer import Writer
from tests.pipelines.formats.examples_times import NS, T0
from tests.pipelines.formats.otlp_requests import attributes, both, braced, gauge, logs, metrics, record
from tests.pipelines.formats.remote_writes import STALE, Second, field, histogram, request, series

TOKEN = "a-token-of-24-characters"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
UP = {"__name__": "up", "instance": "a"}
GOOD = request(series(UP, (1, T0)))
LINE = b"cpu,host=a v=1"


@contextmanager
def client(**given: Any) -> Iterator[TestClient]:
    """A gateway whose Kafka does not answer; it gives up at once."""
    settings = load(**{"gateway.timeout": "50ms"} | {f"gateway.{name}": value for name, value in given.items()})
    writer = Writer("127.0.0.1:9", duration_ms(settings.gateway.timeout), settings.gateway.max_in_flight)
    with ThreadPoolExecutor(2) as pool:
        yield TestClient(create_app(settings, writer, access_token(settings.gateway), pool), "http://localhost")
    writer.close()


@pytest.fixture(scope="module")
def gateway() -> Iterator[TestClient]:
    with client(max_body=20_000, max_decompressed=50_000) as started:
        yield started


def snappy(data: bytes) -> bytes:
    return pa.compress(data, codec="snappy", asbytes=True)


def code(answer: Any) -> str:
    """The stable code, which each protocol says in its own way."""
    kind = answer.headers.get("content-type", "")
    if kind.startswith("application/json"):
        text = answer.json()["message"]
    else:
        text = Status.FromString(answer.content).message if kind == PROTOBUF["Content-Type"] else answer.text
    found = str(text).partition(":")[0]
    assert found in REGISTRY
    return found


@pytest.mark.parametrize(
    ("path", "body", "headers", "expected"),
    [
        ("/api/v1/write", b"", PROTOBUF, (400, "GATEWAY_ENCODING")),
        ("/api/v1/write", b"\xff" * 9, PROTOBUF, (400, "GATEWAY_ENCODING")),
        ("/api/v1/write", snappy(GOOD)[:-3], PROTOBUF, (400, "GATEWAY_ENCODING")),
        ("/api/v1/write", snappy(b"\n\x7f"), PROTOBUF, (400, "FORMAT_UNKNOWN")),
        ("/api/v1/write", snappy(GOOD), {"Content-Type": "text/plain"}, (415, "GATEWAY_TYPE")),
        ("/api/v1/write", snappy(GOOD), {"Content-Type": "application/x-protobuf;proto=x"}, (415, "GATEWAY_TYPE")),
        ("/api/v1/write", GOOD, PROTOBUF | {"Content-Encoding": "gzip"}, (415, "GATEWAY_ENCODING")),
        ("/api/v1/write", snappy(request(series({"job": "x"}, (1, T0)))), PROTOBUF, (400, "FIELD_INVALID")),
        ("/api/v1/write", snappy(request(series({"__name__": "x"}, (1, T0)))), PROTOBUF, (400, "MACHINE_UNKNOWN")),
        (
            "/api/v1/write", snappy(field(4, "") + field(5, field(1, b"\x01\x02") + field(2, field(1, 1.0)))),
            {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"}, (400, "FIELD_INVALID"),
        ),
        (
            "/api/v1/write", snappy(request(series({str(n): "x" for n in range(257)} | UP, (1, T0)))), PROTOBUF,
            (400, "FIELD_INVALID"),
        ),
        ("/v1/metrics", b"\n\x7f", PROTOBUF, (400, "FORMAT_UNKNOWN")),
        ("/v1/metrics", b"{", {"Content-Type": "application/json"}, (400, "FORMAT_UNKNOWN")),
        ("/v1/metrics", b"\n\x02\n\x00", {"Content-Type": "application/json"}, (400, "FORMAT_UNKNOWN")),
        ("/v1/metrics", b"{}", {"Content-Type": "text/json"}, (415, "GATEWAY_TYPE")),
        ("/v1/metrics", b"\x1f\x8b", PROTOBUF | {"Content-Encoding": "gzip"}, (400, "GATEWAY_ENCODING")),
        ("/v1/metrics", b"x", PROTOBUF | {"Content-Encoding": "zstd"}, (415, "GATEWAY_ENCODING")),
        (
            "/v1/metrics", metrics(gauge(), resource=attributes(a="b")).SerializeToString(), PROTOBUF,
            (400, "MACHINE_UNKNOWN"),
        ),
        ("/v1/logs", b"\n\x7f", PROTOBUF, (400, "FORMAT_UNKNOWN")),
        ("/api/v2/write", b"cpu,host=a v", {}, (400, "LINE_INVALID")),
        ("/api/v2/write", b"cpu v=1", {}, (400, "MACHINE_UNKNOWN")),
        ("/api/v2/write", b'cpu,host=a v="x"', {}, (400, "TEXT_FIELD")),
        ("/api/v2/write?bucket=logs", LINE, {}, (400, "MESSAGE_EMPTY")),
        ("/write?db=logs", LINE + b"\n# why", {}, (400, "MESSAGE_EMPTY")),
        ("/api/v2/write", b"\xff\xfe", {}, (400, "FORMAT_UNKNOWN")),
        ("/api/v2/write", gzip.compress(LINE)[:-2], {"Content-Encoding": "gzip"}, (400, "GATEWAY_ENCODING")),
        ("/api/v2/write", gzip.compress(b"") * 65, {"Content-Encoding": "gzip"}, (400, "GATEWAY_ENCODING")),
        ("/api/v2/write?precision=d", LINE, {}, (400, "GATEWAY_PRECISION")),
        ("/api/v2/write", LINE + b" 1795220820", {}, (400, "GATEWAY_PRECISION")),
        ("/api/v2/write?precision=s", LINE + b" %d" % int(NS), {}, (400, "GATEWAY_PRECISION")),
        ("/write?precision=h", LINE + b" 1795220820", {}, (400, "GATEWAY_PRECISION")),
    ],
)  # fmt: skip
def test_what_is_malformed_gets_its_code_and_is_not_to_be_sent_again(
    path: str, body: bytes, headers: dict[str, str], expected: tuple[int, str], gateway: TestClient
) -> None:
    answer = gateway.post(path, content=body, headers=headers)
    assert (answer.status_code, code(answer)) == expected
    assert "retry-after" not in answer.headers


def bomb(size: int) -> bytes:
    """Bytes of gzip that become ``size`` zeros."""
    made = zlib.compressobj(9, wbits=31)
    return made.compress(bytes(size)) + made.flush()


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/api/v2/write", LINE * 2_000, {}),
        ("/v1/logs", bytes(20_001), PROTOBUF),
        ("/api/v1/write", bytes(20_001), PROTOBUF),
        ("/api/v2/write", bomb(10_000_000), {"Content-Encoding": "gzip"}),
        ("/v1/metrics", bomb(50_001), PROTOBUF | {"Content-Encoding": "gzip"}),
        ("/v1/metrics", bomb(40_000) + bomb(40_000), PROTOBUF | {"Content-Encoding": "gzip"}),
        ("/api/v1/write", snappy(bytes(50_001)), PROTOBUF),
        ("/api/v1/write", b"\xff\xff\xff\xff\x0f" + snappy(GOOD), PROTOBUF),
    ],
)
def test_what_is_too_large_as_sent_or_after_decompression_is_refused(
    path: str, body: bytes, headers: dict[str, str], gateway: TestClient
) -> None:
    answer = gateway.post(path, content=body, headers=headers)
    assert (answer.status_code, code(answer)) == (413, "GATEWAY_TOO_LARGE")


def test_a_request_of_very_many_series_is_refused_and_the_series_without_a_machine_are_left_out_in_one_go() -> None:
    with client() as gateway:
        answer = gateway.post("/api/v1/write", content=snappy(b"\n\x00" * 100_001), headers=PROTOBUF)
        assert (answer.status_code, code(answer)) == (400, "FIELD_INVALID")
    nobody = series({"__name__": "x"}, (1, T0))
    taken = RemoteWrite(LABELS).take(Body(request(nobody, series(UP, (1, T0)), *[nobody] * 50_000), *PROTOBUF.values()))
    assert (taken.value, taken.records, taken.reply.status) == (GOOD, 1, 400)
    assert taken.reply.content.startswith(b"MACHINE_UNKNOWN: 50001 samples of the request are left out")


def test_a_body_without_a_length_is_bounded_too(gateway: TestClient) -> None:
    parts = (LINE * 100 for _ in range(100))
    assert gateway.post("/api/v2/write", content=parts).status_code == 413


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/api/v1/write", snappy(GOOD), PROTOBUF),
        ("/api/v1/write", snappy(Second().add({"__name__": "up", "host": "a"}, (1, T0)).bytes()),
         {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"}),
        ("/v1/metrics", metrics(gauge()).SerializeToString(), PROTOBUF),
        ("/v1/metrics", braced(metrics(gauge())), PROTOBUF),
        ("/v1/logs", braced(logs(record("no"))), PROTOBUF),
        ("/v1/logs", b"\n" + both(logs(record("no")))[1], {"Content-Type": "application/json"}),
        ("/api/v2/write", LINE, {}),
        ("/write", LINE, {}),
    ],
)  # fmt: skip
def test_without_kafka_nothing_is_acknowledged_and_the_sender_is_told_to_come_again(
    path: str, body: bytes, headers: dict[str, str], gateway: TestClient
) -> None:
    answer = gateway.post(path, content=body, headers=headers)
    assert (answer.status_code, code(answer), int(answer.headers["retry-after"]) > 0) == (503, "GATEWAY_KAFKA", True)
    assert answer.headers.get("x-prometheus-remote-write-samples-written", "0") == "0"


NOTHING: list[tuple[str, bytes, dict[str, str]]] = [
    ("/api/v1/write", snappy(b""), PROTOBUF),
    ("/api/v1/write", snappy(request(metadata=b"\x08\x01")), PROTOBUF),
    ("/api/v1/write", snappy(request(series(UP, (STALE, T0)))), PROTOBUF),
    ("/api/v1/write", snappy(request(series(UP, histograms=[histogram(0, STALE, T0)]))), PROTOBUF),
]
NOTHING += [("/write", body, {}) for body in (b"", b" \r\n\n", b"# why\n\n # so", b"#" * 9_000)]
NOTHING += [(f"/api/v2/write?bucket={LOGS}", body, {}) for body in (b"", b"# why")]
NOTHING += [(path, b"", PROTOBUF) for path in ("/v1/metrics", "/v1/logs")]
FLAGGED = {"name": "load", "gauge": {"dataPoints": [{"timeUnixNano": NS, "flags": 1}]}}
NOTHING += [("/v1/metrics", metrics(FLAGGED).SerializeToString(), PROTOBUF)]
"""Requests in which there is nothing to write."""


@pytest.mark.parametrize(("path", "body", "headers"), NOTHING)
def test_a_request_with_nothing_to_write_is_taken_also_without_kafka(
    path: str, body: bytes, headers: dict[str, str], gateway: TestClient
) -> None:
    answer = gateway.post(path, content=body, headers=headers)
    assert (answer.status_code, answer.content) == (204 if "write" in path else 200, b"")


def test_data_of_otlp_that_hold_nothing_are_counted_as_rejected_but_not_those_that_say_so(gateway: TestClient) -> None:
    told = logs({"timeUnixNano": NS}, {"timeUnixNano": NS, "body": {"stringValue": " "}})
    answer = gateway.post("/v1/logs", content=told.SerializeToString(), headers=PROTOBUF)
    part = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, part.rejected_log_records) == (200, 2)
    assert part.error_message == "MESSAGE_EMPTY: 2 log records without text"
    bare = {"name": "bare", "gauge": {"dataPoints": [{"timeUnixNano": NS}]}}
    answer = gateway.post("/v1/metrics", content=metrics(bare, FLAGGED).SerializeToString(), headers=PROTOBUF)
    assert ExportMetricsServiceResponse.FromString(answer.content).partial_success.rejected_data_points == 1


def test_without_kafka_its_health_says_so(gateway: TestClient) -> None:
    assert gateway.get("/health").status_code == 503
    assert gateway.get("/ping").status_code == 204
    assert "newnormal_gateway_in_flight_bytes 0.0" in gateway.get("/metrics").text


def test_json_of_otlp_is_answered_with_json(gateway: TestClient) -> None:
    answer = gateway.post("/v1/metrics", content=b"{]", headers={"Content-Type": "application/json"})
    assert json.loads(answer.content)["code"] == 3


def test_with_a_token_only_those_who_know_it_are_answered() -> None:
    with client(token=TOKEN) as gateway:
        for given in ("", "Bearer", f"Basic {TOKEN}", "Bearer another-token-of-24-chars", TOKEN, "Bearer ä"):
            answer = gateway.post("/write", content=LINE, headers={"Authorization": given.encode("latin-1")})
            assert (answer.status_code, code(answer)) == (401, "GATEWAY_UNAUTHORIZED")
            assert gateway.get("/metrics", headers={"Authorization": given.encode("latin-1")}).status_code == 401
        for given in (f"Bearer {TOKEN}", f"Token {TOKEN}"):
            assert gateway.post("/write", content=b"#", headers={"Authorization": given}).status_code == 204
            assert gateway.get("/metrics", headers={"Authorization": given}).status_code == 200
        assert gateway.get("/health").status_code == 503


def test_a_web_page_cannot_write_through_the_browser_of_its_reader(gateway: TestClient) -> None:
    answer = gateway.post("/write", content=LINE, headers={"Origin": "https://example.org"})
    assert (answer.status_code, code(answer)) == (403, "GATEWAY_BROWSER")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "box.example"])
def test_where_others_reach_it_a_gateway_without_a_token_is_not_even_started(host: str) -> None:
    for given in ({"gateway.host": host}, {"gateway.host": "0.0.0.0", "gateway.published": host}):
        with pytest.raises(NewnormalError) as caught:
            load(**given)
        assert (caught.value.code, "gateway.token_file" in caught.value.accepted) == ("SETTING_INVALID", True)
        for way in ({"gateway.token": TOKEN}, {"gateway.token_file": "f"}):
            load(**given | way)
    assert load(**{"gateway.host": "0.0.0.0", "gateway.published": "127.0.0.1"}).gateway.reached == "127.0.0.1"


def test_the_token_comes_from_a_file_and_no_message_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    settings = load(**{"gateway.token_file": str(file)})
    assert access_token(settings.gateway) == TOKEN
    assert TOKEN not in repr(load(**{"gateway.token": TOKEN}))
    file.write_text("short")
    with pytest.raises(NewnormalError, match=r"gateway\.token_file") as caught:
        access_token(settings.gateway)
    assert (caught.value.code, "short" in str(caught.value)) == ("GATEWAY_TOKEN", False)
    with pytest.raises(NewnormalError, match="one of them"):
        load(**{"gateway.token": TOKEN, "gateway.token_file": str(file)})


def test_a_sender_that_is_too_fast_is_told_when_to_come_again() -> None:
    with client(rate=100) as gateway:
        body = b"#" * 900
        assert gateway.post("/write", content=body).status_code == 204
        answer = gateway.post("/write", content=body)
        assert (answer.status_code, code(answer)) == (429, "GATEWAY_RATE")
        assert 1 <= int(answer.headers["retry-after"]) <= 4, "400 bytes beyond those of five seconds"
        answer = gateway.post("/api/v1/write", content=snappy(GOOD), headers=PROTOBUF)
        assert answer.status_code == 503, "Prometheus drops what is answered with 429"


def test_a_rate_is_made_up_for_in_time_and_each_sender_has_its_own() -> None:
    now = [0.0]
    rate = Rate(10, lambda: now[0])
    rate.charge("a", 80)
    assert (rate.wait("a"), rate.wait("b")) == (3, 0)
    now[0] = 3.0
    assert rate.wait("a") == 0
    rate.charge("a", 10)
    assert rate.wait("a") == 1


def asked(app: Any, path: str, *parts: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to a request that sends some parts of its body, and never ends it."""
    rest, sent = list(parts), []

    async def receive() -> dict[str, Any]:
        if not rest:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": rest.pop(0), "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": [], "client": ("a", 1)}
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:])


def test_a_sender_whose_body_does_not_arrive_in_time_is_told_to_come_again(
    gateway: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handling, "_BODY_SECONDS", 0.05)
    status, headers, content = asked(gateway.app, "/write", LINE)
    assert (status, int(headers["retry-after"]) > 0) == (503, True)
    assert json.loads(content)["message"].startswith("GATEWAY_SLOW")


@pytest.mark.parametrize(
    ("path", "protocol", "body", "headers"),
    [
        ("/write", Influx, LINE, {}),
        ("/api/v1/write", RemoteWrite, snappy(GOOD), PROTOBUF),
        ("/v1/logs", Otlp, b"", PROTOBUF),
    ],
)
def test_a_fault_of_the_gateways_own_is_answered_with_its_code_and_counted(
    path: str, protocol: type[Protocol], body: bytes, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    with client() as gateway:
        monkeypatch.setattr(protocol, "take", fault)
        answer = gateway.post(path, content=body, headers=headers)
        assert (answer.status_code, code(answer)) == (500, "GATEWAY_FAILED")
        assert (b"ZeroDivisionError" in answer.content, b"secret" in answer.content) == (True, False)
        page = gateway.get("/metrics").text
    assert 'newnormal_gateway_refused_total{code="GATEWAY_FAILED"' in page
    assert 'status="500"} 1.0' in page
    assert "newnormal_gateway_in_flight_bytes 0.0" in page


def test_bytes_in_flight_are_bounded_and_given_back() -> None:
    in_flight = InFlight(10)
    assert (in_flight.reserve(6), in_flight.reserve(5), in_flight.reserve(4), in_flight.held) == (True, False, True, 10)
    in_flight.release(10)
    assert in_flight.held == 0
