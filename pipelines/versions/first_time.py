"""The event time at which the log of a job begins."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaException

from engine.kafka.content import between
from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spec.decoder import Messages
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.source import Source

_MOST = 50
"""Messages of a partition that are looked at."""


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
    offsets, found = KafkaOffsets(bootstrap, sorted(sources)), dict[tuple[str | None, int | None], int]()
    try:
        ends, first = offsets.ends(), {**offsets.starts(), **begin}
        spans = {place: (at, min(ends[place], at + _MOST)) for place, at in first.items() if place in ends}
        for message in between(bootstrap, spans):
            topic, place = message.topic() or "", (message.topic(), message.partition())
            if place not in found and (time := _first_of(sources[topic], topic, message.value())) is not None:
                found[place] = time
    except (KafkaException, TimeoutError, NewnormalError):
        return None
    return min(found.values(), default=None)


def _first_of(source: Source, topic: str, value: bytes | None) -> int | None:
    """The earliest event time in a message; ``None`` if it has no records."""
    none = np.zeros(1, np.int64)
    message = Messages(topic, 0, pa.array([value or b""], pa.binary()), none, none)
    records = source.formats[topic].decode(message).records
    if not records.num_rows or source.time not in records.column_names:
        return None
    return int(pc.min(records.column(source.time)).as_py())
