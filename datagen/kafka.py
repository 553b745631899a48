"""Writes texts to Kafka fast: whole batches to one producer, bounded in memory, no delivery error unnoticed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from engine.errors import NewnormalError

_QUEUE = 400_000
_BATCH = 50_000


class KafkaWriter:
    """A producer of texts; `close` it, or leave its block, to have all of them delivered.

    Args:
        bootstrap: ``host:port`` of a broker.
        timeout: Seconds that the cluster may be silent before a write fails.
        extra: Further librdkafka settings.
    """

    def __init__(self, bootstrap: str, timeout: float = 30.0, extra: dict[str, Any] | None = None) -> None:
        self._bootstrap, self._timeout = bootstrap, timeout
        self._failed, self._reason = 0, ""
        self._written = 0
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "compression.type": "lz4",
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # as the JVM clients do: a key's partition is the same whoever writes it
            "queue.buffering.max.messages": _QUEUE,
            "queue.buffering.max.kbytes": 512 * 1024,
            "batch.size": 1024 * 1024,
            "message.timeout.ms": int(timeout * 1000),
            "delivery.report.only.error": True,  # or a Python call a message
            "log_level": 0,
            "error_cb": self._on_error,
        }
        self._producer = Producer({**settings, **(extra or {})})

    @property
    def delivered(self) -> int:
        """Messages that Kafka has acknowledged."""
        return self._written - self._failed - len(self._producer)

    def __enter__(self) -> KafkaWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()

    def write(self, topic: str, values: Sequence[str], keys: Sequence[str]) -> None:
        """Queues texts, each with its key; waits while the queue is full.

        Raises:
            NewnormalError: ``DELIVERY_FAILED`` if Kafka refused or never acknowledged a message, now or earlier.
        """
        for first in range(0, len(values), _BATCH):
            part = slice(first, first + _BATCH)
            self._written += len(values[part])
            messages = [{"value": v, "key": k} for v, k in zip(values[part], keys[part], strict=True)]
            while len(self._producer) + len(messages) > _QUEUE:
                self._producer.poll(0.05)
                self._check()
            while messages:
                self._producer.produce_batch(topic, messages, on_delivery=self._on_delivery)
                messages = [self._again(message) for message in messages if "_error" in message]
                self._producer.poll(0.05 if messages else 0)
                self._check()

    def flush(self) -> None:
        """Waits until all is delivered.

        Raises:
            NewnormalError: ``DELIVERY_FAILED``.
        """
        left = self._producer.flush(self._timeout + 5)
        if left:
            self._failed += left
            self._reason = self._reason or "not acknowledged in time"
        self._check()

    close = flush

    def _again(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message to try once more, if all that was wrong was a full queue."""
        error = message.pop("_error")
        if isinstance(error, KafkaError) and error.code() != KafkaError._QUEUE_FULL:
            self._failed, self._reason = self._failed + 1, error.str()
            self._check()
        return message

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed, self._reason = self._failed + 1, f"{message.topic()}: {error.str()}"

    def _on_error(self, error: KafkaError) -> None:
        self._reason = error.str()

    def _check(self) -> None:
        if self._failed:
            raise NewnormalError(
                "DELIVERY_FAILED",
                f"{self._failed} records were not delivered: {self._reason}",
                self._bootstrap,
                "a reachable broker and an existing topic",
                f"stopped; {self.delivered} records were delivered before",
            )
