"""How many messages of its topics a job that may not run has not read yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.content import between
from engine.kafka.diagnosis import DiagnosingClient
from engine.kafka.offsets import KafkaOffsets

COUNTED = 1_000
"""So many messages are read, to leave out heartbeats; longer parts of the log are taken by their offsets.

`between` fetches batch by batch, so that no message is larger than memory: that is slow, and an operator waits.
"""

_SECONDS = 10.0


def unread(bootstrap: str, topics: Sequence[str], read: Mapping[str, Mapping[str, int]]) -> int:
    """Number of messages that a job has not read yet, of those that Kafka still has.

    Heartbeats, which go on as long as any job reads a topic, and the marks of transactions are no messages that a user
    waits for; they are left out where there is little to read (`COUNTED`), and counted where there is much.

    Args:
        bootstrap: ``host:port`` of a broker.
        topics: The topics that the job reads; those that do not exist yet hold nothing.
        read: The next offset of each partition, by topic and partition, in the form of Spark; a partition that is not
            named was not read yet.

    Raises:
        KafkaException: Kafka does not answer; a `TimeoutError` if it takes too long.
        NewnormalError: ``KAFKA_READ_FAILED`` if the broker falls silent while the messages are read.
    """
    existing = DiagnosingClient(bootstrap).list_topics(timeout=_SECONDS).topics
    asked = KafkaOffsets(bootstrap, [topic for topic in topics if topic in existing])
    if not asked.topics:
        return 0
    first, ends = asked.starts(), asked.ends()
    spans = {(t, p): (max(first[t, p], read.get(t, {}).get(str(p), 0)), end) for (t, p), end in ends.items()}
    most = sum(max(0, end - begin) for begin, end in spans.values())
    return most if most > COUNTED else sum(message.value() != HEARTBEAT for message in between(bootstrap, spans))
