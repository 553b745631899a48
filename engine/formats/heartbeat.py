"""Heartbeats: messages in the log that show that a partition is idle, so that a replay decides idleness alike."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from engine.address import kafka_options

HEARTBEAT = b"\0heartbeat"
"""Value of a heartbeat, which only says that its partition is alive; no text, JSON or Arrow stream begins like it."""

HEARTBEAT_SECONDS = 2.5
"""Seconds between two heartbeats of a partition."""

_LOOK_EVERY = 4
"""After so many heartbeats the sender looks for partitions that have been added."""


@dataclass(frozen=True)
class Beat:
    """A heartbeat as it stands in the log.

    Attributes:
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
        time: When it arrived at Kafka, epoch milliseconds.
    """

    topic: str
    partition: int
    offset: int
    time: int


class HeartbeatSender:
    """Sends a heartbeat to each partition of some topics at a steady pace, in a thread of its own; a context manager.

    Partitions that are added while it runs are found within some heartbeats.

    Args:
        bootstrap: ``host:port`` of a broker.
        topics: Names of existing topics.
        every: Seconds between two heartbeats.
        told: Called with each heartbeat once it stands in the log, in the thread of the heartbeats.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        every: float = HEARTBEAT_SECONDS,
        told: Callable[[Beat], None] | None = None,
    ) -> None:
        self.topics, self.every, self.told, self.stopping = topics, every, told, threading.Event()
        self.producer = Producer({**kafka_options(bootstrap), "log_level": 0, "message.timeout.ms": 10_000})
        self.thread = threading.Thread(target=self._run, daemon=True, name="heartbeat")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join(5)

    def _run(self) -> None:
        places: list[tuple[str, int]] = []
        for beat in itertools.count():
            if self.stopping.is_set():
                return
            if not places or beat % _LOOK_EVERY == 0:
                places = self._places() or places
            for topic, partition in places:
                # BufferError: Kafka is away, and the heartbeats that wait already are enough; other errors pass as well
                with suppress(BufferError, KafkaException):
                    # compacted topics need keys
                    self.producer.produce(topic, HEARTBEAT, HEARTBEAT, partition, on_delivery=self._delivered)
            self.producer.poll(0)
            self.stopping.wait(self.every)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if self.told and error is None and topic is not None and partition is not None and offset is not None:
            self.told(Beat(topic, partition, offset, message.timestamp()[1]))

    def _places(self) -> list[tuple[str, int]]:
        """All partitions of the topics; an empty list while Kafka does not answer."""
        try:
            found = self.producer.list_topics(timeout=self.every).topics
            return [(topic, partition) for topic in self.topics for partition in sorted(found[topic].partitions)]
        except (KafkaException, KeyError):
            return []
