"""Heartbeats in the log: that nothing arrives is itself a record, so that a replay decides idleness alike."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from confluent_kafka import Producer


class Heartbeat:
    """Sends an empty message to a topic at a steady pace, in a thread of its own; a context manager.

    Args:
        bootstrap: Kafka's address.
        topic: One that exists.
        every: Seconds between two.
    """

    def __init__(self, bootstrap: str, topic: str, every: float = 1.0) -> None:
        self.topic, self.every, self.stopping = topic, every, threading.Event()
        self.producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "message.timeout.ms": 10_000})
        self.thread = threading.Thread(target=self._beat, daemon=True, name="heartbeat")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self.thread.join(5)

    def _beat(self) -> None:
        while not self.stopping.wait(self.every):
            self.producer.produce(self.topic, b"", partition=0)
            self.producer.poll(0)
