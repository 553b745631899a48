"""The sources and outputs that the definitions of several jobs share."""

from __future__ import annotations

from dataclasses import replace

from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.spec.decoder import Decoder
from engine.spec.duration import duration_ms
from engine.spec.most_keys import MostKeys
from engine.spec.output import Output
from engine.spec.record import Record
from engine.spec.source import Source
from engine.spec.time_bounds import TimeBounds
from engine.watermarks import BoundedOutOfOrderness
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings


def internal(
    settings: Settings, topic: str, record: type[Record], time: str, most_keys: MostKeys | None = None
) -> Source:
    """The source of a columnar topic that another job of the chain writes.

    Args:
        settings: The settings.
        topic: Name of the topic, without the namespace.
        record: Type of the records.
        time: Name of the event-time column.
        most_keys: How many keys may come from it.
    """
    name = settings.reads(topic)
    formats: dict[str, Decoder] = {name: ColumnarDecoder(record)}
    clock, partitions = watermark(settings, name), settings.kafka.partitions
    return Source(formats, record, time, clock, bounds(settings), partitions=partitions, most_keys=most_keys)


def most_series(settings: Settings) -> MostKeys:
    """How many series the jobs take in that first see which ones there are."""
    most = most_of(settings, ("entity", "metric"), settings.input.max_series, duration_ms(settings.detector.forget))
    return replace(most, alike=settings.input.max_series_per_machine)


def most_of(settings: Settings, key: tuple[str, ...], most: int, forget: int) -> MostKeys:
    """How many keys of a site a job takes in, of which each partition has an equal share; they count for ``forget``."""
    share = max(1, most // settings.kafka.partitions)
    return MostKeys(key, share, share, forget)


def watermark(settings: Settings, *names: str) -> BoundedOutOfOrderness:
    """The watermark strategy of some topics, given by their full names."""
    expected = tuple((name, p) for name in names for p in range(settings.kafka.partitions))
    return BoundedOutOfOrderness(settings.watermark.out_of_orderness, settings.watermark.idle_after, expected)


def bounds(settings: Settings) -> TimeBounds:
    """The bounds within which an event time is accepted."""
    return TimeBounds(settings.watermark.max_ahead, settings.watermark.earliest)


def columnar(settings: Settings, topic: str, record: type[Record]) -> Output:
    """The output of a job to a columnar topic, which is given by its name without the namespace."""
    return Output(settings.writes(topic), record, "columnar", settings.kafka.partitions)


def dead(settings: Settings) -> Output:
    """The output of a job for messages that it cannot use: the dead-letter topic."""
    return Output(settings.writes(topics.DEADLETTER), DeadLetter, "json", settings.kafka.partitions)
