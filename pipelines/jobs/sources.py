"""Sources and outputs of the jobs: the parts that all jobs share."""

from __future__ import annotations

from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.spec.decoder import Decoder
from engine.spec.output import Output
from engine.spec.record import Record
from engine.spec.source import Source
from engine.spec.time_bounds import TimeBounds
from engine.watermarks import BoundedOutOfOrderness
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings


def internal(settings: Settings, topic: str, record: type[Record], time: str) -> Source:
    """A columnar topic that one of our jobs wrote."""
    name = settings.topic(topic)
    formats: dict[str, Decoder] = {name: ColumnarDecoder(record)}
    return Source(
        formats, record, time, watermark(settings, name), bounds(settings), partitions=settings.kafka.partitions
    )


def watermark(settings: Settings, *names: str) -> BoundedOutOfOrderness:
    """The watermark strategy of some topics, given by their full names."""
    expected = tuple((name, p) for name in names for p in range(settings.kafka.partitions))
    return BoundedOutOfOrderness(settings.watermark.out_of_orderness, settings.watermark.idle_after, expected)


def bounds(settings: Settings) -> TimeBounds:
    """The bounds within which an event time is accepted."""
    return TimeBounds(settings.watermark.max_ahead, settings.watermark.earliest)


def columnar(settings: Settings, topic: str, record: type[Record]) -> Output:
    """A columnar topic to write."""
    return Output(settings.topic(topic), record, "columnar", settings.kafka.partitions)


def dead(settings: Settings) -> Output:
    """The output for records that cannot be used."""
    return Output(settings.topic(topics.DEADLETTER), DeadLetter, "json", settings.kafka.partitions)
