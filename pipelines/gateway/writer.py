"""Writes messages to Kafka and waits, each request by itself, until all replicas in sync have them."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from http import HTTPStatus

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from datagen.kafka_writer import producer_settings
from pipelines.gateway.compression import too_large
from pipelines.gateway.protocol import NotTakenError

_MESSAGE = 16_000_000
_POLL_SECONDS = 0.05
_LOOK_SECONDS = 5.0
_SPARE_SECONDS = 1.0
"""Seconds beyond the time that a message waits for Kafka after which its acknowledgement is no longer waited for."""
_RENEW_SECONDS = 1.0
"""Seconds after which a new producer is tried again, if it cannot be made."""
RETRY_SECONDS = 2
"""Seconds after which a sender is asked to try again."""
log = structlog.get_logger()


class Writer:
    """An idempotent producer that gives a message up after some time, as its sender would.

    Args:
        bootstrap: ``host:port`` of a broker.
        timeout_ms: How long a message waits for Kafka, milliseconds.
        most: Bytes that may wait, at most.
    """

    def __init__(self, bootstrap: str, timeout_ms: int, most: int) -> None:
        self._settings = {
            **producer_settings(bootstrap),
            "linger.ms": 5,
            "message.timeout.ms": timeout_ms,
            "socket.timeout.ms": max(timeout_ms, 1_000),
            "message.max.bytes": _MESSAGE,
            "queue.buffering.max.kbytes": most // 1024 + _MESSAGE // 1024,
            "error_cb": self._on_error,
        }
        self._bootstrap, self._patience = bootstrap, timeout_ms / 1000 + _SPARE_SECONDS
        self._fatal = threading.Event()
        self._ended = threading.Event()
        self._producers = [Producer(self._settings)]
        self._looked, self._well = 0.0, True
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._poll, name="gateway-kafka", daemon=True)
        self._thread.start()

    async def write(self, topic: str, value: bytes, key: bytes | None = None) -> None:
        """Returns when Kafka has acknowledged a message.

        Args:
            topic: Full name of the topic.
            value: The message.
            key: Its key, if the topic is compacted.

        Raises:
            NotTakenError: ``GATEWAY_KAFKA`` if that is not known within the time; Kafka may have it nevertheless.
                ``GATEWAY_TOO_LARGE`` if the topic takes no such message.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[KafkaError | None] = loop.create_future()

        def settle(error: KafkaError | None) -> None:
            if not done.done():
                done.set_result(error)

        def delivered(error: KafkaError | None, _message: Message) -> None:
            with suppress(RuntimeError):  # the loop has ended: nobody waits for the answer any more
                loop.call_soon_threadsafe(settle, error)

        try:
            self._producers[-1].produce(topic, value, key, on_delivery=delivered)
        except BufferError:
            raise _not_acknowledged("its queue is full", self._bootstrap) from None
        except KafkaException as error:
            raise self._refused(error.args[0]) from None
        try:
            refused = await asyncio.wait_for(done, self._patience)
        except TimeoutError:  # whoever should report it is held up; the sender shall not hang with it
            raise _not_acknowledged("it has not been heard of in time", self._bootstrap) from None
        if refused is not None:
            raise self._refused(refused)

    def well(self) -> bool:
        """Whether Kafka answers; it is asked every few seconds at most."""
        with self._looking:
            if time.monotonic() > self._looked + _LOOK_SECONDS:
                try:
                    self._well = bool(self._producers[-1].list_topics(timeout=2.0).brokers)
                except KafkaException:
                    self._well = False
                self._looked = time.monotonic()
            return self._well

    def close(self) -> None:
        """Ends writing; returns when no message waits any more."""
        for producer in self._producers:
            producer.flush()
        self._ended.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._ended.is_set():
            if self._fatal.is_set():  # such a producer takes nothing more; what waits in it is given up
                self._renew()
            for producer in list(self._producers):
                producer.poll(_POLL_SECONDS)
            self._producers[:-1] = [each for each in self._producers[:-1] if len(each)]

    def _renew(self) -> None:
        self._fatal.clear()
        try:
            self._producers.append(Producer(self._settings))
        except Exception as error:  # e.g. no memory or no threads; without this thread nobody is answered any more
            log.error("The gateway's producer is closed, and a new one cannot be made yet", error=type(error).__name__)
            self._fatal.set()
            self._ended.wait(_RENEW_SECONDS)
        else:
            log.warning("Kafka has closed the gateway's producer; it goes on with a new one")

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal.set()

    def _refused(self, error: KafkaError) -> NotTakenError:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return too_large("more bytes than the topic takes", "max.message.bytes of the topic")
        with suppress(AttributeError):
            if error.fatal():
                self._fatal.set()
        return _not_acknowledged(error.str(), self._bootstrap)


def _not_acknowledged(why: str, bootstrap: str) -> NotTakenError:
    what, accepted = f"Kafka has not acknowledged the request: {why}", "the same request later"
    status, now = HTTPStatus.SERVICE_UNAVAILABLE, "the sender keeps it"
    return NotTakenError("GATEWAY_KAFKA", what, bootstrap, accepted, now, status=status, retry_after=RETRY_SECONDS)
