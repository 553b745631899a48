"""What the intakes of Datadog, Splunk and Data Firehose take, as the pipeline reads it, and what they refuse."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from pipelines.contracts.records import Log, Telemetry
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.rules import Rules
from pipelines.gateway.protocol import Body, MalformedError, Protocol, Taken
from pipelines.gateway.pushed_json import (
    Datadog,
    Firehose,
    Gelf,
    OpenTsdb,
    Sketches,
    Splunk,
    SplunkAcknowledgements,
    SplunkRaw,
)
from tests.pipelines.formats.decoding import decoded, rows
from tests.pipelines.formats.examples_times import T0
from tests.pipelines.formats.remote_writes import field
from tests.pipelines.gateway.test_refusals import TOKEN, client

SERIES = {"metric": "load", "points": [[T0 // 1000, 0.5]], "host": "a"}
GOOD = json.dumps({"series": [SERIES]}).encode()
METRIC = {"time": T0 / 1000, "host": "a", "fields": {"metric_name:n": 1}}
EVENT = {"time": T0 / 1000, "host": "a", "sourcetype": "app", "event": "hello"}
RECORD = {
    "metric_stream_name": "s", "namespace": "AWS/EC2", "metric_name": "CPU", "dimensions": {"InstanceId": "i-1"},
    "timestamp": T0, "value": {"count": 1.0, "sum": 2.0, "max": 2.0, "min": 2.0}, "unit": "Percent",
}  # fmt: skip


def take(protocol: type[Datadog | Splunk | Firehose], data: bytes, content_type: str = "application/json") -> Taken:
    return protocol(Rules()).take(Body(data, content_type))


def read(taken: Taken, record: type[Telemetry | Log] = Telemetry) -> list[dict[str, Any]]:
    """The records that the pipeline makes of what is written; as many as are counted, none refused."""
    found = decoded(AnyFormatDecoder(record), taken.value)
    assert found.refused == []
    assert found.records.num_rows == taken.records
    return rows(found)


def lines(*objects: Any) -> bytes:
    return "".join(map(json.dumps, objects)).encode()


def test_series_of_datadog_in_json_are_written_as_they_are() -> None:
    taken = take(Datadog, GOOD)
    assert (taken.reply.status, json.loads(taken.reply.content)["errors"]) == (202, [])
    assert [(row["entity"], row["metric"], row["value"]) for row in read(taken)] == [("a", "load", 0.5)]


def test_series_of_datadog_in_protobuf_are_what_they_are_in_json() -> None:
    point = field(1, 1.5) + field(2, T0 // 1000)
    resource = field(1, b"host") + field(2, b"a")
    series = (
        field(1, resource) + field(2, b"n") + field(3, b"env:x") + field(4, point) + field(5, 1) + field(6, b"byte")
    )
    (row,) = read(take(Datadog, field(1, series), "application/x-protobuf"))
    assert (row["time"], row["entity"], row["metric"], row["value"], row["kind"]) == (
        T0 // 1000 * 1000, "a", "n{env=x}", 1.5, "count",
    )  # fmt: skip


def test_a_series_that_cannot_be_used_is_left_out_and_told() -> None:
    taken = take(Datadog, json.dumps({"series": [SERIES, {"metric": "x", "points": [[1, 2]]}]}).encode())
    assert "MACHINE_UNKNOWN: 1 of 2 are left out" in json.loads(taken.reply.content)["errors"][0]
    assert [row["metric"] for row in read(taken)] == ["load"]


@pytest.mark.parametrize("between", ["", "\n", " \r\n"])
def test_objects_for_the_collector_stand_one_after_the_other(between: str) -> None:
    taken = take(Splunk, between.join(map(json.dumps, [EVENT, EVENT | {"event": {"message": "x"}}])).encode())
    assert json.loads(taken.reply.content) == {"text": "Success", "code": 0}
    assert [(row["entity"], row["program"], row["message"]) for row in read(taken, Log)] == [
        ("a", "app", "hello"), ("a", "app", "x"),
    ]  # fmt: skip
    assert [(row["entity"], row["metric"]) for row in read(take(Splunk, lines(METRIC, METRIC)))] == [("a", "n")] * 2


def test_records_of_a_metric_stream_come_in_base64_and_are_answered_with_their_request() -> None:
    data = base64.b64encode(lines(RECORD) + b"\n" + lines(RECORD)).decode()
    body = {"requestId": "r-1", "timestamp": 17, "records": [{"data": data}]}
    taken = take(Firehose, json.dumps(body).encode())
    assert json.loads(taken.reply.content) == {"requestId": "r-1", "timestamp": 17}
    assert {(row["entity"], row["metric"]) for row in read(taken)} == {
        ("i-1", f"AWS/EC2.CPU.{part}") for part in ("mean", "min", "max")
    }


def test_lines_for_the_collector_may_come_raw_with_their_host_in_the_address() -> None:
    given = {"host": "a", "sourcetype": "app", "channel": "c"}
    taken = SplunkRaw(Rules()).take(Body(b'one "x"\r\n\ntwo\n', parameters=given))
    assert [(row["entity"], row["program"], row["message"]) for row in read(taken, Log)] == [
        ("a", "app", 'one "x"'), ("a", "app", "two"),
    ]  # fmt: skip
    assert type(json.loads(taken.reply.content)["ackId"]) is int


def test_a_request_with_a_channel_has_a_number_of_its_own_by_which_it_is_acknowledged() -> None:
    splunk, asked = Splunk(Rules()), SplunkAcknowledgements(Rules())
    bodies = [Body(lines(EVENT), channel="c"), Body(lines(METRIC), parameters={"channel": "c"})]
    numbers = [json.loads(splunk.take(body).reply.content)["ackId"] for body in bodies]
    assert len(set(numbers)) == 2
    told = asked.take(Body(json.dumps({"acks": numbers}).encode(), channel="c"))
    assert told.value is None
    assert json.loads(told.reply.content) == {"acks": {str(each): True for each in numbers}}
    for wrong in (Body(b'{"acks":[0]}'), Body(b'{"acks":"x"}', channel="c")):
        with pytest.raises(MalformedError):
            asked.take(wrong)


def test_a_message_of_gelf_is_written_as_it_is_and_answered_as_graylog_does() -> None:
    message = {"version": "1.1", "host": "a", "short_message": "no", "timestamp": T0 / 1000, "level": 3, "_app": "shop"}
    taken = Gelf(Rules()).take(Body(json.dumps(message).encode()))
    (row,) = read(taken, Log)
    assert (row["time"], row["entity"], row["program"], row["severity"], row["message"]) == (T0, "a", "shop", 3, "no")
    assert (taken.reply.status, taken.reply.content) == (202, b"")


def test_data_points_of_opentsdb_are_written_and_those_of_no_use_are_told() -> None:
    point = {"metric": "sys.cpu", "timestamp": T0 // 1000, "value": 18, "tags": {"host": "a", "cpu": "0"}}
    taken = OpenTsdb(Rules()).take(Body(json.dumps([point, point | {"metric": "sys.mem", "value": "7"}]).encode()))
    assert taken.reply.status == 204
    assert [(row["time"], row["entity"], row["metric"], row["value"]) for row in read(taken)] == [
        (T0 // 1000 * 1000, "a", "sys.cpu{cpu=0}", 18.0), (T0 // 1000 * 1000, "a", "sys.mem{cpu=0}", 7.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "whole", "partly"),
    [
        ({}, (204, b""), (400, "error")),
        ({"summary": ""}, (200, b'{"success":1,"failed":0}'), (400, "failed")),
        ({"details": "true"}, (200, b'{"success":1,"failed":0,"errors":[]}'), (400, "errors")),
    ],
)
def test_opentsdb_is_answered_as_its_documentation_says(
    asked: dict[str, str], whole: tuple[int, bytes], partly: tuple[int, str]
) -> None:
    point = {"metric": "sys.cpu", "timestamp": T0 // 1000, "value": 18, "tags": {"host": "a"}}
    told = OpenTsdb(Rules()).take(Body(json.dumps(point).encode(), parameters=asked)).reply
    assert (told.status, told.content) == whole
    taken = OpenTsdb(Rules()).take(Body(json.dumps([point, point | {"tags": {"cpu": "0"}}]).encode(), parameters=asked))
    assert (taken.reply.status, taken.records) == (partly[0], 1)
    assert partly[1] in json.loads(taken.reply.content)


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({}, b"", 401, 2),
        ({"Authorization": "Splunk another"}, b"", 403, 4),
        ({"Authorization": f"Splunk {TOKEN}"}, b"", 400, 5),
        ({"Authorization": f"Splunk {TOKEN}"}, b"{", 400, 6),
        ({"Authorization": f"Splunk {TOKEN}"}, lines(EVENT), 503, 9),
    ],
)
def test_refusals_of_the_collector_have_the_status_and_the_code_of_splunk(
    headers: dict[str, str], body: bytes, status: int, code: int, gateway: TestClient
) -> None:
    answer = gateway.post("/services/collector", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


ODD = [b"9" * 25, b"[" * 600 + b"]" * 600, b'"\\ud800"']


@pytest.mark.parametrize("odd", ODD, ids=["a number of 25 digits", "600 lists", "half a pair"])
def test_an_object_that_no_record_can_hold_is_left_out_and_told_as_a_sender_would_repeat_it_for_ever(
    odd: bytes,
) -> None:
    """An error of the gateway itself (500) has agents send the same again, and nothing behind it."""
    wrong = lines(EVENT).replace(b"}", b',"fields":{"x":' + odd + b"}}", 1)
    (row,) = read(take(Splunk, lines(EVENT)), Log)
    taken = take(Splunk, wrong + lines(EVENT))
    assert read(taken, Log)[-1:] == [row]
    point = b'{"metric":"sys.cpu","timestamp":%d,"value":%s,"tags":{"host":"a"}}'
    message = b'{"version":"1.1","host":"a","short_message":"no","_x":%s}'
    for protocol, body in ((OpenTsdb(Rules()), point % (T0 // 1000, odd)), (Gelf(Rules()), message % odd)):
        with pytest.raises(MalformedError):
            protocol.take(Body(body))


def test_dockers_driver_for_splunk_finds_a_collector_and_its_events_are_known(gateway: TestClient) -> None:
    assert gateway.request("OPTIONS", "/services/collector/event/1.0").status_code == 200
    event = {"event": {"line": "no", "source": "stdout", "tag": "cart"}, "time": f"{T0 / 1000}", "host": "dock-1"}
    unnamed = {"event": {"shop": "x", "n": 1}, "time": f"{T0 / 1000}", "host": "b"}
    taken = take(Splunk, lines(event, unnamed))
    assert [(row["entity"], row["program"], row["message"]) for row in read(taken, Log)] == [
        ("dock-1", "cart", "no"), ("b", "-", '{"shop":"x","n":1}'),
    ]  # fmt: skip


def test_data_firehose_finds_its_request_in_an_error_as_it_discards_the_answer_otherwise(gateway: TestClient) -> None:
    headers = {"X-Amz-Firehose-Access-Key": TOKEN, "X-Amz-Firehose-Request-Id": "r-1"}
    for body in (b"", b'{"records":[{"data":"%"}]}'):
        answer = gateway.post("/firehose", content=body, headers=headers)
        assert (answer.status_code, answer.json()["requestId"]) == (400, "r-1")
        assert answer.json()["errorMessage"]


def test_sketches_are_refused_with_what_to_do_instead() -> None:
    with pytest.raises(MalformedError, match="sketches") as told:
        Sketches(Rules()).take(Body(b"\x0a\x00", "application/x-protobuf"))
    assert "StatsD" in told.value.text


@pytest.mark.parametrize(
    ("protocol", "data", "code"),
    [
        (Datadog, b"{", "JSON_MALFORMED"),
        (Datadog, b"[]", "FORMAT_UNKNOWN"),
        (Datadog, b'{"series":3}', "FORMAT_UNKNOWN"),
        (Datadog, json.dumps({"series": [{"metric": "x", "points": [[1, 2]]}]}).encode(), "MACHINE_UNKNOWN"),
        (Splunk, b"", "MESSAGE_EMPTY"),
        (Splunk, b"3", "FORMAT_UNKNOWN"),
        (Splunk, lines(EVENT) + b"{", "JSON_MALFORMED"),
        (Splunk, lines(EVENT, METRIC), "FORMAT_UNKNOWN"),
        (Splunk, b"[" * 100_000, "JSON_MALFORMED"),
        (Splunk, lines(EVENT | {"host": ""}), "MACHINE_UNKNOWN"),
        (Firehose, b'{"records":[{"data":"%"}],"requestId":"r"}', "FORMAT_UNKNOWN"),
        (Firehose, b'{"records":3}', "FORMAT_UNKNOWN"),
        (SplunkRaw, b" \n", "MESSAGE_EMPTY"),
        (SplunkRaw, b"no host", "MACHINE_UNKNOWN"),
        (Gelf, b'{"short_message":"x"}{"short_message":"y"}', "FORMAT_UNKNOWN"),
        (Gelf, b"x", "JSON_MALFORMED"),
        (OpenTsdb, b'{"metric":"x"}', "FORMAT_UNKNOWN"),
        (OpenTsdb, b'{"metric":"x","value":1,"tags":{}}', "MACHINE_UNKNOWN"),
    ],
)
def test_what_is_malformed_is_refused_with_its_code(protocol: Any, data: bytes, code: str) -> None:
    with pytest.raises(MalformedError) as told:
        take(protocol, data)
    assert told.value.error.code == code
    refusal: Protocol = protocol(Rules())
    assert code.encode() in refusal.refusal(told.value, "").content


def test_the_parts_in_the_data_of_firehose_count() -> None:
    data = base64.b64encode(b'{"a":1}' * 500).decode()
    body = Body(json.dumps({"requestId": "r", "records": [{"data": data}] * 3}).encode(), "application/json")
    assert Firehose(Rules()).parts(body, 1_000) >= 1_500


@pytest.fixture(scope="module")
def gateway() -> Iterator[TestClient]:
    with client(max_body=20_000, max_decompressed=50_000, token=TOKEN) as started:
        yield started


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"DD-API-KEY": "another"}, 403),
        ({"DD-API-KEY": TOKEN}, 503),
        ({"Authorization": f"Splunk {TOKEN}"}, 503),
        ({"Authorization": "Basic " + base64.b64encode(f"x:{TOKEN}".encode()).decode()}, 503),
        ({"Authorization": "Basic " + base64.b64encode(b"x:another").decode()}, 403),
        ({"X-Amz-Firehose-Access-Key": TOKEN}, 503),
        ({"DD-API-KEY": TOKEN, "Origin": "http://x"}, 403),
    ],
)
def test_the_token_may_come_in_the_header_that_each_agent_has(
    headers: dict[str, str], status: int, gateway: TestClient
) -> None:
    answer = gateway.post("/api/v2/series", content=GOOD, headers=headers | {"Content-Type": "application/json"})
    assert answer.status_code == status, "with the token, Kafka alone is missing"


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        ("deflate", zlib.compress(GOOD), 503),
        ("zstd", zstd(GOOD), 503),
        ("gzip", gzip.compress(GOOD), 503),
        ("deflate", zlib.compress(bytes(50_001)), 413),
        ("zstd", zstd(bytes(50_001)), 413),
        ("deflate", zlib.compress(GOOD)[:-3], 400),
        ("deflate", zlib.compress(GOOD) + b"x", 400),
        ("zstd", zstd(GOOD)[:-3], 400),
        ("zstd", b"\x28\xb5\x2f\xfd\x00\xff" + bytes(9), 400),
        ("zstd", b"x", 400),
        ("br", GOOD, 415),
    ],
)  # fmt: skip
def test_bodies_are_decompressed_within_the_bounds(
    encoding: str, data: bytes, expected: int, gateway: TestClient
) -> None:
    headers = {"DD-API-KEY": TOKEN, "Content-Type": "application/json", "Content-Encoding": encoding}
    assert gateway.post("/api/v1/series", content=data, headers=headers).status_code == expected


@pytest.mark.parametrize(("headers", "status"), [({"DD-API-KEY": TOKEN}, 200), ({}, 403)])
def test_the_agent_of_datadog_learns_whether_its_key_is_right(
    headers: dict[str, str], status: int, gateway: TestClient
) -> None:
    assert gateway.get("/api/v1/validate", headers=headers).status_code == status
