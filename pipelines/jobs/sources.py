"""How jobs are joined to the topics: what all of them say alike of their sources and outputs."""

from __future__ import annotations

from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.spec.decoder import Decoder
from engine.spec.output import Output
from engine.spec.record import Record
from engine.spec.source import Source
from engine.spec.time_bounds import TimeBounds
from engine.watermarks import BoundedOutOfOrderness, Prompt
from pipelines.contracts import topics
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import Settings
from pipelines.jobs.detect.control_messages import Notice, NoticeDecoder


def internal(settings: Settings, topic: str, record: type[Record], time: str) -> Source:
    """A columnar topic that one of our jobs wrote."""
    name = settings.topic(topic)
    formats: dict[str, Decoder] = {name: ColumnarDecoder(record)}
    return Source(
        formats, record, time, watermark(settings, name), bounds(settings), partitions=settings.kafka.partitions
    )


def watermark(settings: Settings, *names: str) -> BoundedOutOfOrderness:
    """How the clocks of topics are followed; names are full ones."""
    expected = tuple((name, p) for name in names for p in range(settings.kafka.partitions))
    return BoundedOutOfOrderness(settings.watermark.out_of_orderness, settings.watermark.idle_after, expected)


def bounds(settings: Settings) -> TimeBounds:
    """Which event times are believed."""
    return TimeBounds(settings.watermark.max_ahead, settings.watermark.earliest)


def notices(settings: Settings, refuses: bool = True) -> Source:
    """Rules and labels, to all shards. They are said when they are sent: silence in them holds nothing up.

    Args:
        settings: The settings.
        refuses: Whether the job that reads them writes dead letters of what is wrong; one job does.
    """
    formats: dict[str, Decoder] = {
        settings.topic(topics.RULES): NoticeDecoder(Rule),
        settings.topic(topics.LABELS): NoticeDecoder(Label),
    }
    expected = tuple((name, p) for name in formats for p in range(settings.kafka.partitions))
    return Source(
        formats, Notice, "window_end", Prompt(expected=expected), bounds(settings), broadcast=True, reports=refuses
    )


def columnar(settings: Settings, topic: str, record: type[Record]) -> Output:
    """A columnar topic to write."""
    return Output(settings.topic(topic), record, "columnar", settings.kafka.partitions)


def dead(settings: Settings) -> Output:
    """Where what cannot be used goes."""
    return Output(settings.topic(topics.DEADLETTER), DeadLetter, "json", settings.kafka.partitions)
