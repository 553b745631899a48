"""Reads single messages again from the places that dead letters name."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from engine.kafka.content import bounded_reader, bounds
from engine.spec.errors import NewnormalError

_SECONDS = 15.0


class Originals:
    """Reads messages by topic, partition and offset; a context manager.

    Args:
        bootstrap: ``host:port`` of a broker.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap, self._reader = bootstrap, bounded_reader(bootstrap, "newnormal.letters")
        self._topics: dict[str, Any] = {}

    def __enter__(self) -> Originals:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def read(self, topic: str, partition: int, offset: int) -> Message | None:
        """The message at a place; ``None`` if its topic does not hold it any more.

        Raises:
            NewnormalError: ``KAFKA_READ_FAILED`` if the broker does not answer.
        """
        if partition not in self._partitions(topic):
            return None
        low, high = bounds(self._reader, TopicPartition(topic, partition))
        if not low <= offset < high:
            return None
        self._reader.assign([TopicPartition(topic, partition, offset)])
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            for message in self._reader.consume(1, 0.5):
                error = message.error()
                if error is None:
                    return message if message.offset() == offset else None  # else compaction has removed it
                if error.code() == KafkaError._PARTITION_EOF:
                    return None
        raise self._failed(f"{topic}: no message within {_SECONDS:g} s")

    def _partitions(self, topic: str) -> Iterable[int]:
        if topic not in self._topics:
            try:
                self._topics[topic] = self._reader.list_topics(topic, _SECONDS).topics[topic].partitions
            except KafkaException as error:
                raise self._failed(f"{topic}: {error.args[0].str()}") from None
        return self._topics[topic]  # type: ignore[no-any-return]

    def _failed(self, why: str) -> NewnormalError:
        return NewnormalError("KAFKA_READ_FAILED", why, self._bootstrap, "a reachable broker")
