"""Reads what topics hold now: all committed messages up to their ends at the start of reading."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from engine.address import kafka_options
from engine.kafka.diagnosis import forbidden
from engine.kafka.skipping import SkippingConsumer
from engine.spec.errors import NewnormalError

_SILENCE_SECONDS = 30.0
_GROUP = "newnormal.content"
_PASSING = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
)
"""Passing errors of a partition that was just created, or of a broker that was just started."""

_BATCH_BY_BATCH = {
    "fetch.message.max.bytes": 1,  # a broker gives one batch even if it is larger
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 1,
    "fetch.queue.backoff.ms": 1,  # else the next one would come a second later
}
"""Options of a reader that has one batch of a partition in memory, or two."""

Spans = Mapping[tuple[str, int], tuple[int, int]]
"""Parts of the log, by topic and partition: the offset of the first message, and the one after the last."""


def content(bootstrap: str, topic: str) -> Iterator[Message]:
    """All committed messages of a topic, in order within each partition.

    The end of each partition is fixed when reading begins, before transactions that are open then. So reading ends even
    if the topic grows or a transaction stays open.

    Args:
        bootstrap: ``host:port`` of a broker.
        topic: Full name of the topic.

    Raises:
        NewnormalError: ``TOPIC_UNKNOWN``, or ``KAFKA_READ_FAILED`` if the broker reports an error or falls silent.
    """
    with closing(bounded_reader(bootstrap, _GROUP)) as reader:
        yield from _read(reader, bootstrap, _whole(reader, bootstrap, topic))


def between(bootstrap: str, spans: Spans) -> Iterator[Message]:
    """All committed messages of some parts of the log, one partition after the other, in their order.

    What is read may be what agents sent: a megabyte of compressed batches may become many gigabytes. So one batch is
    fetched at a time, and its messages are handed on one by one. That is slow, and right for parts of some hundred
    messages; `content` reads whole topics.

    Args:
        bootstrap: ``host:port`` of a broker.
        spans: The parts, of existing topics; they end no later than the topics do.

    Raises:
        NewnormalError: ``KAFKA_READ_FAILED`` if the broker reports an error or falls silent.
    """
    with closing(bounded_reader(bootstrap, _GROUP, _BATCH_BY_BATCH)) as reader:
        for place, span in spans.items():
            yield from _read(reader, bootstrap, {place: span}, together=1)


def values(bootstrap: str, topic: str) -> list[bytes]:
    """The values of all committed messages of a topic; arguments and errors as those of `content`."""
    return [message.value() or b"" for message in content(bootstrap, topic)]


def bounded_reader(bootstrap: str, group: str, more: Mapping[str, Any] | None = None) -> Consumer:
    """A consumer of the committed messages that topics hold now, which commits nothing and reports a partition's end.

    It reports that end at once. By default a broker keeps an answer back for half a second where there is nothing
    more to read, which is the case after each transaction: its mark has an offset, but is no message.

    Args:
        bootstrap: ``host:port`` of a broker.
        group: Name of the consumer's group, which the broker may have to permit.
        more: Further options of librdkafka.
    """
    options: dict[str, Any] = {**kafka_options(bootstrap), "group.id": group, "log_level": 0, "fetch.wait.max.ms": 10}
    options |= {"enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": "read_committed"}
    return SkippingConsumer(options | dict(more or {}))


def _whole(reader: Consumer, bootstrap: str, topic: str) -> Spans:
    """All that a topic holds now."""
    try:
        partitions = reader.list_topics(topic, _SILENCE_SECONDS).topics[topic].partitions
    except KafkaException as failure:
        raise _failed(bootstrap, f"{topic}: {failure.args[0].str()}") from None
    if not partitions:
        raise NewnormalError("TOPIC_UNKNOWN", f"there is no topic {topic}", bootstrap, "an existing topic")
    return {(topic, p): bounds(reader, TopicPartition(topic, p)) for p in partitions}


def _read(reader: Consumer, bootstrap: str, spans: Spans, together: int = 10_000) -> Iterator[Message]:
    ends = {place: end for place, (begin, end) in spans.items() if end > begin}
    reader.assign([TopicPartition(topic, p, spans[topic, p][0]) for topic, p in ends])
    heard = time.monotonic()
    while ends:
        messages = reader.consume(together, 0.1)  # returns after so many messages, or so many seconds
        heard = time.monotonic() if any(not message.error() for message in messages) else heard
        if time.monotonic() > heard + _SILENCE_SECONDS:
            silent = ", ".join(sorted({topic for topic, _ in ends}))
            raise _failed(bootstrap, f"{silent}: no message within {_SILENCE_SECONDS:g} s")
        for message in messages:
            error, topic, partition, offset = message.error(), message.topic(), message.partition(), message.offset()
            if error and error.code() in _PASSING:
                continue
            if error and (refusal := forbidden(error, f"to read {topic}", _GROUP, "nothing was changed")):
                raise refusal
            if error and (topic is None or partition is None or offset is None):
                raise _failed(bootstrap, f"{topic}: {error}")
            assert topic is not None
            assert partition is not None
            assert offset is not None
            if error and error.code() != KafkaError._PARTITION_EOF:
                raise _failed(bootstrap, f"{topic}: {error}")
            place = (topic, partition)
            if place not in ends:
                continue
            if error or offset >= ends[place] - 1:
                end = ends.pop(place)
                reader.incremental_unassign([TopicPartition(*place)])
                if error or offset >= end:
                    continue
            yield message


def bounds(reader: Consumer, place: TopicPartition) -> tuple[int, int]:
    """First and next offset of a partition; waits while a partition that was just created has no leader."""
    deadline = time.monotonic() + _SILENCE_SECONDS
    while True:
        try:
            low, high = reader.get_watermark_offsets(place, _SILENCE_SECONDS)
            return low, high
        except KafkaException as error:
            if error.args[0].code() not in _PASSING or time.monotonic() > deadline:
                raise _failed(str(place.topic), f"partition {place.partition}: {error.args[0].str()}") from None
        time.sleep(0.1)


def _failed(bootstrap: str, reason: str) -> NewnormalError:
    return NewnormalError("KAFKA_READ_FAILED", reason, bootstrap, "a reachable broker")
