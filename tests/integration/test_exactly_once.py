"""The whole chain under abuse: killed twice with SIGKILL, fed 5,000 hostile messages; counted independently."""

from __future__ import annotations

import json
import random
import struct
import time
from collections import Counter

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from engine.formats import columnar
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Telemetry
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(900)]

ENTITIES, METRICS, WINDOWS, STEP = 20, 3, 60, 2_000
HOSTILE = 5_000
JOBS = ("normalizer", "extractor", "detector", "sink")
"""The chain of the metrics; that of the logs is not fed here."""


def good(begin: int, first: int, last: int) -> list[tuple[str, bytes]]:
    """Samples of windows first to last, two seconds apart; host and JSON."""
    found = []
    for at in range(begin + first * 10_000, begin + last * 10_000, STEP):
        for e in range(ENTITIES):
            for m in range(METRICS):
                value = {"@timestamp": at, "host.name": f"h{e}", "metric": f"m{m}", "value": float(at % 977 + e)}
                found.append((f"h{e}", json.dumps(value).encode()))
    return found


def hostile(seed: int) -> bytes:
    """One message that no reader should take: malformed, truncated, mistyped, out of time."""
    rng = random.Random(seed)
    base = {"@timestamp": int(time.time() * 1000), "host.name": "evil", "metric": "m", "value": 1.0}
    text = json.dumps(base).encode()
    far = {"@timestamp": 4_102_444_800_000 + seed}
    return rng.choice(
        [
            lambda: text[: rng.randrange(0, len(text) - 1)],
            lambda: rng.randbytes(rng.randrange(1, 300)),
            lambda: b"\xff\xfe" + text,
            lambda: b"[" * rng.randrange(1, 50_000),
            lambda: b'{"a":' * rng.randrange(1, 5_000),
            lambda: text.replace(b"1.0}", b"NaN}"),
            lambda: text.replace(b"1.0}", b"1e999}"),
            lambda: text.replace(b"1.0}", b"1e200}"),
            lambda: json.dumps(base | far).encode(),
            lambda: json.dumps(base | {"@timestamp": seed}).encode(),
            lambda: json.dumps(base | {"@timestamp": "yesterday"}).encode(),
            lambda: json.dumps(base | {"value": {"deep": [1, 2]}}).encode(),
            lambda: json.dumps(base | {"host.name": 7}).encode(),
            lambda: json.dumps(base | {"host.name": "x" * 100_000}).encode(),
            lambda: json.dumps(base | {"metric": ""}).encode(),
            lambda: json.dumps(base | {"kind": "perpetuum mobile"}).encode(),
            lambda: b"null",
            lambda: b"[]",
            lambda: b"",
            lambda: text + b"," + text,
        ]
    )()


def broken_batches(now: int) -> list[bytes]:
    """What should never stand on a columnar topic."""
    schema = Telemetry.arrow_schema()
    row = {"time": [now], "entity": ["evil"], "metric": ["m"], "value": [1.0], "kind": ["gauge"]}
    fine = pa.table({n: pa.array(row[n]).cast(schema.field(n).type) for n in schema.names}, schema=schema)
    whole = columnar.encode(fine, now)
    far = fine.set_column(0, schema.field(0), pa.array([4_102_444_800_000]))
    wrong = fine.set_column(3, pa.field("value", pa.string()), pa.array(["x"]))
    nan = fine.set_column(3, schema.field(3), pa.array([float("nan")]))
    return [
        b"",
        b"\x00" * 64,
        struct.pack("<iI", -1, 2**31 - 1) + b"x" * 100,
        whole[: len(whole) // 2],
        whole[:40] + b"\xff" * 40 + whole[80:],
        columnar.encode(far),
        columnar.encode(wrong),
        columnar.encode(nan),
        columnar.encode(fine.drop_columns(["entity"])),
    ]


def test_each_window_is_counted_once_though_the_driver_is_killed_and_the_input_is_hostile(pipeline: Pipeline) -> None:
    settings, now = pipeline.settings, int(time.time() * 1000)
    begin = (now - (WINDOWS + 10) * 10_000) // 10_000 * 10_000
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "message.max.bytes": 15_000_000})
    raw, sent = settings.topic(topics.RAW_JSON), 0
    rng = random.Random(1)

    def send(first: int, last: int) -> None:
        nonlocal sent
        for host, line in good(begin, first, last):
            producer.produce(raw, line, host)
            if rng.random() < 0.35 and sent < HOSTILE:
                producer.produce(raw, hostile(sent), host)
                sent += 1
        assert producer.flush(30) == 0

    send(0, 20)
    pipeline.start(*JOBS)
    pipeline.wait("the first features", lambda: len(pipeline.read(topics.FEATURES)) > 0)
    pipeline.kill()
    send(20, 40)
    pipeline.start(*JOBS)
    pipeline.wait("the first documents", lambda: len(pipeline.documents()) > ENTITIES * METRICS * 20)
    send(40, WINDOWS)
    for _ in range(sent, HOSTILE):
        producer.produce(raw, hostile(sent), "h0")
        sent += 1
    broken = broken_batches(now)
    for message in broken:
        producer.produce(settings.topic(topics.TELEMETRY), message, partition=1)
    assert producer.flush(30) == 0
    pipeline.kill()
    pipeline.start(*JOBS)
    # newer records let the watermark pass the last window, in every partition
    for host, line in good(begin, WINDOWS + 3, WINDOWS + 4):
        producer.produce(raw, line, host)
    assert producer.flush(30) == 0

    def letters() -> int:
        return len({(m["kafka.topic"], m["kafka.partition"], m["kafka.offset"]) for m in dead_letters(pipeline)})

    expected = ENTITIES * METRICS * WINDOWS
    pipeline.wait("all windows", lambda: series_documents(pipeline) >= expected)
    pipeline.wait("all dead letters", lambda: letters() >= HOSTILE + len(broken))

    windows_are_counted_once(pipeline, begin)
    dead = dead_letters(pipeline)
    assert letters() == HOSTILE + len(broken), "each hostile message once in the dead letter, and nothing else"
    assert all(letter["error.code"] and letter["error.message"] and letter["service.name"] for letter in dead)
    assert Counter(letter["service.name"] for letter in dead)["extractor"] == len(broken)
    assert not any(d["host.name"] == "evil" for d in pipeline.documents())


def windows_are_counted_once(pipeline: Pipeline, begin: int) -> None:
    """Each window of each series is one document and one row of features, of all its samples."""
    counted = Counter(
        (d["host.name"], d["metric"], d["window_start"]) for d in pipeline.documents() if d["metric"] != "_machine"
    )
    wanted = {
        (f"h{e}", f"m{m}", begin + w * 10_000) for e in range(ENTITIES) for m in range(METRICS) for w in range(WINDOWS)
    }
    assert {key for key in counted if key in wanted} == wanted
    assert set(counted.values()) == {1}

    features = Counter()
    for message in pipeline.read(topics.FEATURES):
        rows, _ = columnar.decode(message.value(), Features.arrow_schema())
        for row in rows.to_pylist():
            assert row["count"] == 10_000 // STEP
            features[row["entity"], row["metric"], row["window_start"], row["revision"]] += 1
    assert set(features.values()) == {1}, "a window was written to Kafka twice"
    assert {key[:3] for key in features} >= wanted


def dead_letters(pipeline: Pipeline) -> list[dict[str, object]]:
    """The dead-letter topic."""
    return [json.loads(message.value()) for message in pipeline.read(topics.DEADLETTER)]


def series_documents(pipeline: Pipeline) -> int:
    """Documents of single metrics."""
    return sum(d["metric"] != "_machine" for d in pipeline.documents())
