"""Reads the committed messages of a Kafka topic, and decodes the two formats that the documentation names."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.chaos.runs.verifier.lives import ARRIVED

_SECONDS = 60.0
_PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
HEARTBEAT = b"\0heartbeat"
"""How a message begins that only says that its partition is alive."""


@dataclass(frozen=True)
class LogMessage:
    """A message and its place.

    Attributes:
        partition: The partition of its topic.
        offset: The offset in that partition.
        arrived: When it arrived at Kafka, epoch milliseconds.
        value: Its bytes; empty if it has none.
    """

    partition: int
    offset: int
    arrived: int
    value: bytes


def read(bootstrap: str, topic: str) -> list[LogMessage]:
    """All committed messages that a topic holds now, heartbeats excluded, in the order of each partition.

    Args:
        bootstrap: ``host:port`` of a broker.
        topic: Full name of the topic.

    Raises:
        KafkaException: If the broker does not answer within a minute.
    """
    options = {"bootstrap.servers": bootstrap, "group.id": "newnormal.verifier", "log_level": 0}
    options |= {"enable.auto.commit": "false", "enable.partition.eof": "true", "isolation.level": "read_committed"}
    consumer = Consumer(options)
    try:
        partitions = consumer.list_topics(topic, _SECONDS).topics[topic].partitions
        return list(_messages(consumer, [TopicPartition(topic, p, 0) for p in partitions]))
    finally:
        consumer.close()


def _messages(consumer: Consumer, places: list[TopicPartition]) -> Iterable[LogMessage]:
    for place in places:
        place.offset = consumer.get_watermark_offsets(place, _SECONDS)[0]
    consumer.assign(places)
    open_partitions, heard = {place.partition for place in places}, time.monotonic()
    while open_partitions:
        for message in consumer.consume(10_000, 0.2):
            heard, error = time.monotonic(), message.error()
            if error and error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(message.partition())
            elif error and error.code() not in _PASSING:
                raise KafkaException(error)
            elif not error:
                value = message.value() or b""
                if not value.startswith(HEARTBEAT):
                    partition, offset = message.partition() or 0, message.offset() or 0
                    yield LogMessage(partition, offset, message.timestamp()[1], value)
        if time.monotonic() > heard + _SECONDS:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def columns(messages: Iterable[LogMessage], types: Mapping[str, Any]) -> pl.DataFrame:
    """The rows of a columnar topic, each message of which is an Arrow IPC stream.

    Args:
        messages: The messages of the topic.
        types: The Polars type of each column that is wanted.

    Returns:
        These columns, and when each row arrived at Kafka, `ARRIVED`.
    """
    frames = []
    for message in messages:
        with pa.ipc.open_stream(message.value) as stream:
            frame = pl.from_arrow(stream.read_all().select(list(types)))
        assert isinstance(frame, pl.DataFrame)
        wanted = frame.select(pl.col(name).cast(kind) for name, kind in types.items())
        frames.append(wanted.with_columns(pl.lit(message.arrived, pl.Int64).alias(ARRIVED)))
    return pl.concat(frames) if frames else pl.DataFrame(schema={**types, ARRIVED: pl.Int64})


def objects(messages: Iterable[LogMessage]) -> list[dict[str, Any]]:
    """The JSON objects of a topic."""
    return [json.loads(message.value) for message in messages]
