"""Writes texts to Kafka fast, for sources that can wait: in batches, with bounded memory, and no error unnoticed.

While Kafka does not answer, a write waits, and nothing is lost or doubled. The producer is idempotent and never gives
up a message: it sends it again under the same sequence number, by which Kafka recognises messages that it has taken
already, also after a restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import structlog
from confluent_kafka import KafkaError, Message, Producer

from datagen.outage import Outage, Standing, Tell, watched
from engine.address import kafka_options
from engine.spec.errors import NewnormalError

_QUEUE = 400_000
_BATCH = 50_000
GRACE = 5.0
"""Seconds without an answer after which the end of a source does not wait for Kafka any more."""
log = structlog.get_logger()


class Writer(Protocol):
    """Takes texts, each with its key, in order."""

    def write(self, topic: str, values: Sequence[str], keys: Sequence[str]) -> None:
        """Takes texts of one topic."""

    def flush(self) -> None:
        """Returns when all texts are safe."""


def producer_settings(bootstrap: str) -> dict[str, Any]:
    """The settings of librdkafka for all our sources: each message once, in order, however long Kafka is away."""
    return {
        **kafka_options(bootstrap),
        "linger.ms": 20,
        "compression.type": "lz4",
        "acks": "all",
        "enable.idempotence": True,
        # with more, librdkafka's thread asks again and again, for a whole core, while an answer is waited for
        "max.in.flight.requests.per.connection": 1,
        "message.timeout.ms": 0,  # no limit: a message that is given up may have been taken by Kafka
        "reconnect.backoff.max.ms": 1_000,
        "partitioner": "murmur2_random",  # as the JVM clients do, so that all writers agree on the partition of a key
        "log_level": 0,
        "error_cb": lambda _error: None,  # `Outage` reports outages
    }


class KafkaWriter:
    """A producer of texts; a context manager. At its end all texts have been delivered.

    Args:
        bootstrap: ``host:port`` of a broker.
        stop: Event; after it is set, the writer waits only as long as Kafka answers.
        tell: Function that is called with sentences about outages.
        extra: Further librdkafka settings.
    """

    def __init__(
        self,
        bootstrap: str,
        stop: threading.Event | None = None,
        tell: Tell = log.warning,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self._bootstrap, self._stop = bootstrap, stop or threading.Event()
        self._failed, self._reason, self._written = 0, "", 0
        self._outage = Outage(tell, "and their source waits with them")
        self._block = ExitStack()
        self._stopped: float | None = None
        settings = {
            "queue.buffering.max.messages": _QUEUE,
            "queue.buffering.max.kbytes": 512 * 1024,
            "batch.size": 1024 * 1024,
            "delivery.report.only.error": True,  # otherwise each message costs a Python call
        }
        self._producer = Producer({**producer_settings(bootstrap), **settings, **(extra or {})})

    @property
    def delivered(self) -> int:
        """Messages that Kafka has acknowledged."""
        return self._written - self._failed - len(self._producer)

    def __enter__(self) -> KafkaWriter:
        self._block.enter_context(watched(self._outage, self._standing))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._block:
            if kind is None:
                self.flush()

    def write(self, topic: str, values: Sequence[str], keys: Sequence[str]) -> None:
        """Queues texts, each with its key; waits while the queue is full.

        Raises:
            NewnormalError: ``DELIVERY_FAILED`` if Kafka refused a message, now or earlier, or if ``stop`` was set while
                Kafka did not answer.
        """
        for first in range(0, len(values), _BATCH):
            part = slice(first, first + _BATCH)
            messages = [{"value": v, "key": k} for v, k in zip(values[part], keys[part], strict=True)]
            while len(self._producer) + len(messages) > _QUEUE:
                self._wait()
            self._written += len(messages)
            while messages:
                self._producer.produce_batch(topic, messages, on_delivery=self._on_delivery)
                messages = [self._again(message) for message in messages if "_error" in message]
                self._producer.poll(0.05 if messages else 0)
                self._check()

    def flush(self) -> None:
        """Waits until all texts are delivered.

        Raises:
            NewnormalError: ``DELIVERY_FAILED``.
        """
        while len(self._producer):
            self._wait()
        self._check()

    def _wait(self) -> None:
        """Waits a moment for Kafka; raises if ``stop`` is set and Kafka has not answered for `GRACE` seconds."""
        self._producer.poll(0.05)
        self._check()
        if not self._stop.is_set():
            return
        now = time.monotonic()
        self._stopped = self._stopped or now
        if min(now - self._stopped, self._outage.silence) > GRACE:
            left = len(self._producer)
            self._producer.purge(blocking=False)
            raise self._error(f"{left:,} records were not acknowledged: no answer for {self._outage.silence:.0f} s")

    def _standing(self) -> Standing:
        waiting = len(self._producer)
        return Standing(waiting, self._written - self._failed - waiting)

    def _again(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns the message, to be tried once more; raises if its error was more than a full queue."""
        error = message.pop("_error")
        if isinstance(error, KafkaError) and error.code() != KafkaError._QUEUE_FULL:
            self._failed, self._reason = self._failed + 1, error.str()
            self._check()
        return message

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed, self._reason = self._failed + 1, f"{message.topic()}: {error.str()}"

    def _check(self) -> None:
        if self._failed:
            raise self._error(f"{self._failed:,} records were not delivered: {self._reason}")

    def _error(self, why: str) -> NewnormalError:
        now = f"stopped; {self.delivered:,} records were delivered"
        return NewnormalError("DELIVERY_FAILED", why, self._bootstrap, "a reachable broker and an existing topic", now)
