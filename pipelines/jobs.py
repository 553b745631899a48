"""The jobs, each a declarative value made from the settings: what is read, computed and written."""

from __future__ import annotations

from collections.abc import Callable

from engine.aggregates import Constant, Count, Last, Max, Mean, Min, Quantile, Rate, Std
from engine.deadletters import DeadLetter
from engine.job import Job, Output
from engine.record import Record
from engine.sources import ColumnarDecoder, Decoder, Source, TimeBounds
from engine.stream import Stream
from engine.time import duration_ms
from engine.watermarks import BoundedOutOfOrderness, Prompt
from engine.windows import Sliding
from pipelines import topics
from pipelines.normalizer.collectd import CollectdDecoder
from pipelines.normalizer.json_lines import JsonDecoder
from pipelines.normalizer.telegraf import TelegrafDecoder
from pipelines.notices import Notice, NoticeDecoder
from pipelines.records import Features, Label, Novelty, Rule, Telemetry
from pipelines.settings import Settings


def normalizer(settings: Settings) -> Job:
    """Agents' formats → `telemetry`; here a wrong clock is caught and the watermark is first decided."""
    formats: dict[str, Decoder] = {
        settings.topic(topics.RAW_JSON): JsonDecoder(Telemetry),
        settings.topic(topics.RAW_TELEGRAF): TelegrafDecoder(),
        settings.topic(topics.RAW_COLLECTD): CollectdDecoder(),
    }
    watermark = _watermark(settings, *formats)
    source = Source(formats, Telemetry, "time", watermark, _bounds(settings), columnar=False)
    stream = Stream.read(source).key_by("entity")
    return stream.write("normalizer", _columnar(settings, topics.TELEMETRY, Telemetry), _dead(settings))


def extractor(settings: Settings) -> Job:
    """`telemetry` → `features`: statistics of each series in event-time windows."""
    window = settings.window
    stream = (
        Stream.read(_source(settings, topics.TELEMETRY, Telemetry, "time"))
        .key_by("entity", "metric")
        .window(Sliding(window.size, every=window.every or window.size), allowed_lateness=window.allowed_lateness)
        .aggregate(
            kind=Constant("kind"),
            count=Count(),
            mean=Mean("value"),
            std=Std("value"),
            min=Min("value"),
            max=Max("value"),
            last=Last("value"),
            p50=Quantile("value", 0.50),
            p95=Quantile("value", 0.95),
            p99=Quantile("value", 0.99),
            rate=Rate("value", only=("kind", "counter")),
        )
    )
    late = _columnar(settings, topics.FEATURES_LATE, Telemetry)
    return stream.write("extractor", _columnar(settings, topics.FEATURES, Features), _dead(settings), late)


def detector(settings: Settings) -> Job:
    """`features` → `novelties`: what is novel of each series and machine."""
    from pipelines.detector import DetectorProcess

    features = Stream.read(_source(settings, topics.FEATURES, Features, "window_end"))
    stream = features.merge(Stream.read(_notices(settings))).key_by("entity", "metric")
    horizon = duration_ms(settings.window.allowed_lateness) + duration_ms(settings.window.size)
    novelties = Output(settings.topic(topics.NOVELTIES), Novelty, "json", settings.kafka.partitions)
    late = _columnar(settings, topics.NOVELTIES_LATE, Features)
    return stream.process(DetectorProcess(settings.detector, horizon)).write(
        "detector", novelties, _dead(settings), late
    )


JOBS: dict[str, Callable[[Settings], Job]] = {"normalizer": normalizer, "extractor": extractor, "detector": detector}
"""The jobs that run on the sharded operator; the sink is a query of its own."""

MODULES = ("pipelines.jobs", "pipelines.detector")
"""What a Python worker imports to run them."""


def _notices(settings: Settings) -> Source:
    """Rules and labels, to all shards. They are said when they are sent: silence in them holds nothing up."""
    formats: dict[str, Decoder] = {
        settings.topic(topics.RULES): NoticeDecoder(Rule),
        settings.topic(topics.LABELS): NoticeDecoder(Label),
    }
    expected = tuple((name, p) for name in formats for p in range(settings.kafka.partitions))
    return Source(formats, Notice, "window_end", Prompt(expected=expected), _bounds(settings), broadcast=True)


def _source(settings: Settings, topic: str, record: type[Record], time: str) -> Source:
    name = settings.topic(topic)
    formats: dict[str, Decoder] = {name: ColumnarDecoder(record)}
    clock, bounds = _watermark(settings, name), _bounds(settings)
    return Source(formats, record, time, clock, bounds, partitions=settings.kafka.partitions)


def _watermark(settings: Settings, *names: str) -> BoundedOutOfOrderness:
    expected = tuple((name, p) for name in names for p in range(settings.kafka.partitions))
    return BoundedOutOfOrderness(settings.watermark.out_of_orderness, settings.watermark.idle_after, expected)


def _bounds(settings: Settings) -> TimeBounds:
    return TimeBounds(settings.watermark.max_ahead, settings.watermark.earliest)


def _columnar(settings: Settings, topic: str, record: type[Record]) -> Output:
    return Output(settings.topic(topic), record, "columnar", settings.kafka.partitions)


def _dead(settings: Settings) -> Output:
    return Output(settings.topic(topics.DEADLETTER), DeadLetter, "json", settings.kafka.partitions)
