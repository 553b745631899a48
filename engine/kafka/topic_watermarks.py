"""Reads the watermarks of a columnar topic, which the last messages of each partition carry."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from engine.formats import columnar
from engine.kafka.content import bounded_reader, bounds
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError

_SECONDS = 30.0
_FEW = 16


def watermarks(bootstrap: str, topic: str) -> dict[int, int]:
    """The watermark of each partition of a columnar topic; `NEVER` for a partition that has none yet.

    Only as many of the last messages are read as it takes to find one with a watermark.

    Args:
        bootstrap: ``host:port`` of a broker.
        topic: Full name of the topic.

    Returns:
        Epoch milliseconds by partition; empty if there is no such topic.

    Raises:
        NewnormalError: ``KAFKA_READ_FAILED`` if the broker does not answer.
    """
    reader = bounded_reader(bootstrap, "newnormal.watermarks")
    try:
        described = reader.list_topics(topic, _SECONDS).topics[topic]
        return {partition: _newest(reader, topic, partition) for partition in sorted(described.partitions)}
    except KafkaException as error:
        raise NewnormalError("KAFKA_READ_FAILED", f"{topic}: {error.args[0].str()}", bootstrap) from None
    finally:
        reader.close()


def _newest(reader: Consumer, topic: str, partition: int) -> int:
    low, high = bounds(reader, TopicPartition(topic, partition))
    least, few = high, _FEW
    while least > low:
        most, least, few = least, max(low, least - few), 8 * few
        watermarks = [_watermark(value) for value in _between(reader, TopicPartition(topic, partition, least), most)]
        if (newest := max(watermarks, default=NEVER)) > NEVER:
            return newest
    return NEVER


def _between(reader: Consumer, place: TopicPartition, end: int) -> list[bytes]:
    """The values of the messages of a partition, from a position up to an offset."""
    values: list[bytes] = []
    reader.assign([place])
    deadline = time.monotonic() + _SECONDS
    try:
        while time.monotonic() < deadline:
            for message in reader.consume(1_000, 0.1):  # returns after so many messages, or so many seconds
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    continue  # librdkafka tries again
                if error is not None or (message.offset() or 0) >= end:
                    return values
                values.append(message.value() or b"")
        raise NewnormalError(
            "KAFKA_READ_FAILED", f"{place.topic}: no answer within {_SECONDS:g} s", accepted="a reachable broker"
        )
    finally:
        reader.unassign()


def _watermark(message: bytes) -> int:
    try:
        watermark = columnar.watermark(message)
    except NewnormalError:
        return NEVER
    return NEVER if watermark is None else watermark
