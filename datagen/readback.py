"""Finds the messages of a buffer that a topic has already.

Each message of a buffer carries its name as a header. A writer that was killed, or a producer that was given up, may
have delivered messages that the buffer still has. These cannot be in the topic from before they were taken in.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition

from datagen.buffer import Parcel
from engine.address import kafka_options
from engine.kafka.skipping import SkippingConsumer
from engine.spec.errors import NewnormalError

HEADER = "newnormal.message"
_CLOCKS_DIFFER_MS = 300_000
"""How far the broker's clock may be behind ours, milliseconds."""
_SECONDS = 10.0


def name(parcel: Parcel, index: int) -> bytes:
    """The name of a message, the value of its header."""
    return f"{parcel.name}.{index}".encode()


def delivered(bootstrap: str, parcels: Iterable[Parcel]) -> set[bytes]:
    """The names of the messages that are in their topics.

    Raises:
        NewnormalError: ``KAFKA_READ_FAILED`` if the broker falls silent.
        KafkaException: Likewise.
    """
    by_topic: dict[str, list[Parcel]] = {}
    for parcel in parcels:
        by_topic.setdefault(parcel.topic, []).append(parcel)
    arrived: set[bytes] = set()
    for topic, of_topic in by_topic.items():
        sent = {name(parcel, index) for parcel in of_topic for index in parcel.left}
        since = min(parcel.taken for parcel in of_topic) - _CLOCKS_DIFFER_MS
        for message in _since(bootstrap, topic, since):
            arrived |= sent & {value for key, value in dict(message.headers() or ()).items() if key == HEADER}
    return arrived


def _since(bootstrap: str, topic: str, instant: int) -> Iterator[Message]:
    """The messages in a topic from an instant on, up to its present end."""
    options: dict[str, Any] = {**kafka_options(bootstrap), "group.id": "newnormal.readback", "log_level": 0}
    options |= {"enable.auto.commit": False, "enable.partition.eof": True, "error_cb": lambda _error: None}
    reader = SkippingConsumer(options)
    try:
        partitions = reader.list_topics(topic, _SECONDS).topics[topic].partitions
        places = [TopicPartition(topic, partition, instant) for partition in partitions]
        places = reader.offsets_for_times(places, _SECONDS)
        left = {place.partition for place in places if place.offset >= 0}
        reader.assign([place for place in places if place.offset >= 0])
        heard = time.monotonic()
        while left:
            messages = reader.consume(10_000, 0.1)
            heard = time.monotonic() if messages else heard
            if time.monotonic() > heard + _SECONDS:
                raise NewnormalError("KAFKA_READ_FAILED", f"{topic}: no message for {_SECONDS:g} s", bootstrap)
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise NewnormalError("KAFKA_READ_FAILED", f"{topic}: {error.str()}", bootstrap)
    finally:
        reader.close()
