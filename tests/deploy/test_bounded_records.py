"""Kafka with a bound on what a compressed batch becomes: a broker of ours refuses more than that, a reader skips it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Producer
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from deploy.artifacts import spark_jars
from deploy.embedded.endpoints import Endpoints
from deploy.java import java_home
from engine.kafka.admin import ensure_topics
from engine.spec.too_large import MOST_HEADERS, MOST_IN_RECORD
from pipelines.contracts import topics

EMPTY = ("", None)
"""A header of two bytes, which is some 100 as an object of Java."""


def sent(bootstrap: str, topic: str, values: list[bytes], codec: str, headers: int = 0) -> list[str]:
    """Sends values in one batch, with so many empty headers; returns what the broker says of each, empty for good."""
    options = {"compression.type": codec, "message.max.bytes": 1_000_000_000, "batch.size": 1_000_000_000}
    told = list[str]()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2_000, **options})
    for value in values:
        told_of = {"on_delivery": lambda e, _: told.append(e.name() if e else "")}
        producer.produce(topic, value, partition=0, headers=[EMPTY] * headers, **told_of)
    assert not producer.flush(60)
    return told


@pytest.mark.servers
@pytest.mark.parametrize("codec", ["zstd", "gzip", "lz4", "snappy"])
def test_a_broker_of_ours_refuses_what_becomes_too_large_and_takes_what_comes_next(
    endpoints: Endpoints, codec: str
) -> None:
    topic = f"t{uuid.uuid4().hex[:8]}.{topics.RAW_AGENTS}"
    ensure_topics(endpoints.bootstrap, {topic: topics.config(topics.RAW_AGENTS)}, 1)
    assert sent(endpoints.bootstrap, topic, [b"x" * (MOST_IN_RECORD + 1)], codec) == ["MSG_SIZE_TOO_LARGE"]
    legal = b"y" * (MOST_IN_RECORD - 100)
    assert sent(endpoints.bootstrap, topic, [legal], codec) == [""]


@pytest.fixture
def small_jvm() -> Iterator[Any]:
    """A JVM with Spark's Kafka client and a heap of 96 MB."""
    spark = Path(pyspark.__file__).parent / "jars"
    port, token = launch_gateway(
        classpath=":".join(map(str, (*spark_jars(), spark / "*"))),
        jarpath=str(next(iter(spark.glob("py4j-*.jar")))),
        java_path=str(java_home() / "bin" / "java"),
        javaopts=["-Xmx96m"],
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm
    gateway.shutdown()


@pytest.mark.servers
def test_two_million_headers_cost_a_reader_no_memory_and_its_message_is_read(
    endpoints: Endpoints, small_jvm: Any
) -> None:
    """Of the record's 4 MB Kafka's own client makes objects of more than 200 MB."""
    topic = f"t{uuid.uuid4().hex[:8]}.{topics.RAW_AGENTS}"
    ensure_topics(endpoints.bootstrap, {topic: topics.config(topics.RAW_AGENTS)}, 1)
    for value, headers in ((b"before", 0), (b"among", 2_000_000), (b"after", 1)):
        assert sent(endpoints.bootstrap, topic, [value], "zstd", headers) == [""]
    kafka, given = small_jvm.org.apache.kafka, small_jvm.java.util.HashMap()
    given.put("bootstrap.servers", endpoints.bootstrap)
    given.put("auto.offset.reset", "earliest")
    for part in ("key", "value"):
        given.put(f"{part}.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer")
    consumer = kafka.clients.consumer.KafkaConsumer(given)
    try:
        consumer.assign(small_jvm.java.util.List.of(kafka.common.TopicPartition(topic, 0)))
        read = list[tuple[bytes, list[str]]]()
        while len(read) < 3:
            records = consumer.poll(small_jvm.java.time.Duration.ofSeconds(10)).iterator()
            while records.hasNext():
                record = records.next()
                read.append((bytes(record.value()), [header.key() for header in record.headers().toArray()]))
        # the size of the headers stands for them: a micro-batch is weighed with it
        assert read == [(b"before", []), (b"among", ["4000000"]), (b"after", ["2"])]
    finally:
        consumer.close()


@pytest.mark.servers
def test_a_broker_of_ours_refuses_more_headers_than_any_program_sends(endpoints: Endpoints) -> None:
    """Without compression the broker makes objects of them, 800 MB of 15 MB, and its heap is smaller."""
    topic = f"t{uuid.uuid4().hex[:8]}.{topics.RAW_AGENTS}"
    ensure_topics(endpoints.bootstrap, {topic: topics.config(topics.RAW_AGENTS)}, 1)
    assert sent(endpoints.bootstrap, topic, [b"a"], "none", MOST_HEADERS + 1) == ["MSG_SIZE_TOO_LARGE"]
    assert sent(endpoints.bootstrap, topic, [b"a"], "none", MOST_HEADERS) == [""]
