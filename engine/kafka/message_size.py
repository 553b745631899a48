"""Estimates the size of a topic's messages from a few of them."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from engine.address import kafka_options

_SAMPLE = 400
_SECONDS = 3.0


def mean_size(bootstrap: str, topic: str) -> float:
    """Mean size of the values of some messages in the middle of each partition, bytes; 0 if there are none.

    Args:
        bootstrap: ``host:port`` of a broker.
        topic: Full name of the topic.
    """
    options: dict[str, Any] = {**kafka_options(bootstrap), "group.id": "newnormal.size", "log_level": 0}
    reader = Consumer(options | {"enable.auto.commit": False, "isolation.level": "read_committed"})
    try:
        places = [TopicPartition(topic, p) for p in reader.list_topics(topic, _SECONDS).topics[topic].partitions]
        spans = [(place, *reader.get_watermark_offsets(place, _SECONDS)) for place in places]
        middles = [
            TopicPartition(topic, place.partition, (low + high) // 2) for place, low, high in spans if high > low
        ]
        if not middles:
            return 0.0
        reader.assign(middles)
        sizes = [len(message.value() or b"") for message in reader.consume(_SAMPLE, _SECONDS) if not message.error()]
        return sum(sizes) / len(sizes) if sizes else 0.0
    finally:
        reader.close()
