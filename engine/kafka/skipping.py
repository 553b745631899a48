"""A consumer that goes on behind a batch which librdkafka cannot decompress, and says where that was.

By itself librdkafka reports ``_BAD_COMPRESSION`` and asks for the same batch again, for ever. That befalls a broken
batch, and one that becomes more than 100 MB (docs/decisions/0031).
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

log = structlog.get_logger()
_SECONDS = 30.0
_BAD = KafkaError._BAD_COMPRESSION


class SkippingConsumer(Consumer):
    """A consumer with the same methods; of a batch that cannot be decompressed no message and no error is returned.

    Args:
        options: Settings of librdkafka.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        quiet = {"enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest"}
        self._options = {**options, **quiet}
        self._skipped: dict[tuple[str, int], int] = {}

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """As `Consumer.consume`."""
        return [message for message in super().consume(num_messages, timeout) if not self._skips(message)]

    def poll(self, timeout: float = -1) -> Message | None:
        """As `Consumer.poll`."""
        message = super().poll(timeout)
        return None if message is None or self._skips(message) else message

    def _skips(self, message: Message) -> bool:
        """Whether a message is the error of such a batch; then the consumer goes on behind the batch."""
        error, topic, partition, offset = message.error(), message.topic(), message.partition(), message.offset()
        if error is None or error.code() != _BAD or topic is None or partition is None or offset is None:
            return False
        behind = self._skipped.get((topic, partition), 0)
        if offset >= behind:  # else librdkafka had queued the error again before it was told to go on
            behind = end_of_batch(self._options, topic, partition, offset)
            self._skipped[topic, partition] = behind
            log.warning(
                "messages are left out that cannot be decompressed",
                topic=topic, partition=partition, offset=offset, last=behind - 1, reason=error.str(),
            )  # fmt: skip
        self.seek(TopicPartition(topic, partition, behind))
        return True


def end_of_batch(options: dict[str, Any], topic: str, partition: int, offset: int) -> int:
    """The offset behind a batch that cannot be decompressed.

    The header of the batch says it, but librdkafka shows no headers. So it is looked for by reading from offsets
    behind: within the batch the error is the same.

    Args:
        options: Settings of a consumer that reports the end of a partition.
        topic: Full name of the topic.
        partition: The partition.
        offset: The offset of the error.
    """
    with closing(Consumer(options)) as probe:
        _, high = probe.get_watermark_offsets(TopicPartition(topic, partition), _SECONDS)
        inside, step = offset, 1
        while inside + step < high and _fails_alike(probe, topic, partition, inside + step, offset):
            inside, step = inside + step, 2 * step
        behind = min(inside + step, high)
        while behind - inside > 1:
            middle = (inside + behind) // 2
            if _fails_alike(probe, topic, partition, middle, offset):
                inside = middle
            else:
                behind = middle
        return behind


def _fails_alike(probe: Consumer, topic: str, partition: int, at: int, offset: int) -> bool:
    """Whether reading from ``at`` meets the batch whose error has ``offset``."""
    probe.assign([TopicPartition(topic, partition, at)])
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        message = probe.poll(0.5)
        error = message.error() if message else None
        if message and (error is None or error.code() in (_BAD, KafkaError._PARTITION_EOF)):
            return error is not None and error.code() == _BAD and (message.offset() or 0) <= offset
    return False
