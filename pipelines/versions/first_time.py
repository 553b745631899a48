"""The event time at which the log of a job begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaException, TopicPartition

from engine.address import kafka_options
from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spec.decoder import Messages
from engine.spec.job import Job

_SECONDS = 3.0


def first_time(bootstrap: str, job: Job, begin: Offsets) -> int | None:
    """The earliest event time in the first message with records of each partition that a job reads.

    Args:
        bootstrap: ``host:port`` of a broker.
        job: The job; its broadcast inputs do not count.
        begin: Where it begins to read, by topic and partition; partitions that are left out begin with their first
            message.

    Returns:
        Epoch milliseconds; ``None`` if there are no records, or Kafka does not tell in time.
    """
    sources = {topic: source for source in job.inputs if not source.broadcast for topic in source.formats}
    reader = Consumer({**kafka_options(bootstrap), "group.id": "newnormal.first", "log_level": 0} | _READING)
    found: list[int] = []
    try:
        first = {**KafkaOffsets(bootstrap, sorted(sources)).starts(), **begin}
        reader.assign([TopicPartition(topic, p, offset) for (topic, p), offset in first.items()])
        for message in reader.consume(len(first) * 50, _SECONDS):
            topic, value = message.topic(), message.value()
            if message.error() or not value or topic not in sources:
                continue
            source, none = sources[topic], np.zeros(1, np.int64)
            decoded = source.formats[topic].decode(Messages(topic, 0, pa.array([value], pa.binary()), none, none))
            if decoded.records.num_rows and source.time in decoded.records.column_names:
                found.append(pc.min(decoded.records.column(source.time)).as_py())
    except (KafkaException, TimeoutError):
        return None
    finally:
        reader.close()
    return min(found, default=None)


_READING: dict[str, Any] = {"enable.auto.commit": False, "isolation.level": "read_committed"}
