"""Heartbeats in the log: that nothing arrives is itself a record, so that a replay decides idleness alike."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer

HEARTBEAT = b"\0heartbeat"
"""Value of a message that says nothing but that its partition is alive; no text, no JSON and no Arrow begins so."""


class HeartbeatSender:
    """Sends a heartbeat to each partition of some topics at a steady pace, in a thread of its own; a context manager.

    Args:
        bootstrap: Kafka's address.
        topics: Those that exist.
        every: Seconds between two.
    """

    def __init__(self, bootstrap: str, topics: Sequence[str], every: float = 2.5) -> None:
        self.topics, self.every, self.stopping = topics, every, threading.Event()
        self.producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "message.timeout.ms": 10_000})
        self.thread = threading.Thread(target=self._run, daemon=True, name="heartbeat")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self.thread.join(5)

    def _run(self) -> None:
        places: list[tuple[str, int]] = []
        while not self.stopping.is_set():
            places = places or self._places()
            for topic, partition in places:
                with suppress(BufferError):  # Kafka is away: the beats that wait already are as good
                    self.producer.produce(topic, HEARTBEAT, HEARTBEAT, partition)  # compacted topics want keys
            self.producer.poll(0)
            self.stopping.wait(self.every)

    def _places(self) -> list[tuple[str, int]]:
        """Each partition of the topics; none while Kafka does not answer."""
        try:
            found = self.producer.list_topics(timeout=self.every).topics
            return [(topic, partition) for topic in self.topics for partition in sorted(found[topic].partitions)]
        except (KafkaException, KeyError):
            return []
