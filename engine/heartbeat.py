"""Heartbeats in the log: that nothing arrives is itself a record, so that a replay decides idleness alike."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

HEARTBEAT = b"\0heartbeat"
"""Value of a message that says nothing but that its partition is alive; no text, no JSON and no Arrow begins so."""


class Heartbeat:
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
        places = [(topic, partition) for topic in self.topics for partition in self._partitions(topic)]
        while not self.stopping.is_set():
            for topic, partition in places:
                self.producer.produce(
                    topic, HEARTBEAT, key=HEARTBEAT, partition=partition
                )  # compacted topics want keys
            self.producer.poll(0)
            self.stopping.wait(self.every)

    def _partitions(self, topic: str) -> list[int]:
        return sorted(self.producer.list_topics(topic, 30).topics[topic].partitions)
