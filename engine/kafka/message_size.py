"""Tells how many messages topics have, and estimates their size from a few of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from engine.kafka.admin import partition_counts
from engine.kafka.content import between
from engine.kafka.offsets import KafkaOffsets

_SAMPLE = 100
"""Messages of each partition."""


def mean_sizes(bootstrap: str, topics: Sequence[str]) -> dict[str, float]:
    """Mean size of the values of some messages in the middle of each partition, in bytes, by topic.

    A topic without messages, and one that does not exist, is left out.

    Args:
        bootstrap: ``host:port`` of a broker.
        topics: Full names of the topics.

    Raises:
        KafkaException: The broker does not answer.
        TimeoutError: The answer took too long.
        NewnormalError: ``KAFKA_UNREACHABLE``; ``KAFKA_READ_FAILED`` if the broker reports an error or falls silent.
    """
    offsets = KafkaOffsets(bootstrap, sorted(partition_counts(bootstrap, topics)))
    if not offsets.topics:
        return {}
    ends = offsets.ends()
    middles = {place: ((start + ends[place]) // 2, ends[place]) for place, start in offsets.starts().items()}
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for message in between(bootstrap, {place: (at, min(end, at + _SAMPLE)) for place, (at, end) in middles.items()}):
        sizes[message.topic() or ""].append(len(message.value() or b""))
    return {topic: sum(sampled) / len(sampled) for topic, sampled in sizes.items()}


def messages_in(bootstrap: str, topics: Sequence[str]) -> int:
    """How many messages some topics have together; one that does not exist has none.

    Raises:
        KafkaException: The broker does not answer.
        TimeoutError: The answer took too long.
    """
    offsets = KafkaOffsets(bootstrap, sorted(partition_counts(bootstrap, topics)))
    return sum(offsets.ends().values()) - sum(offsets.starts().values()) if offsets.topics else 0
