"""The jobs, each a declarative value made from the settings: what is read, computed and written."""

from __future__ import annotations

from collections.abc import Callable

from engine.aggregates import Constant, Count, Last, Max, Mean, Min, Quantile, Rate, Std
from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoder
from engine.spec.duration import duration_ms
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from engine.windows import Sliding
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Novelty, Telemetry
from pipelines.contracts.settings import Settings
from pipelines.jobs.mine_logs.job import log_detector, log_normalizer, templates
from pipelines.jobs.normalize.collectd import CollectdDecoder
from pipelines.jobs.normalize.telegraf import TelegrafDecoder
from pipelines.jobs.sources import bounds, columnar, dead, internal, notices, watermark


def normalizer(settings: Settings) -> Job:
    """Agents' formats → `telemetry`; here a wrong clock is caught and the watermark is first decided."""
    formats: dict[str, Decoder] = {
        settings.topic(topics.RAW_JSON): JsonDecoder(Telemetry),
        settings.topic(topics.RAW_TELEGRAF): TelegrafDecoder(),
        settings.topic(topics.RAW_COLLECTD): CollectdDecoder(),
    }
    clock = watermark(settings, *formats)
    source = Source(formats, Telemetry, "time", clock, bounds(settings), columnar=False)
    stream = Stream.read(source).key_by("entity")
    return stream.write("normalizer", columnar(settings, topics.TELEMETRY, Telemetry), dead(settings))


def extractor(settings: Settings) -> Job:
    """`telemetry` → `features`: statistics of each series in event-time windows."""
    window = settings.window
    stream = (
        Stream.read(internal(settings, topics.TELEMETRY, Telemetry, "time"))
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
    late = columnar(settings, topics.FEATURES_LATE, Telemetry)
    return stream.write("extractor", columnar(settings, topics.FEATURES, Features), dead(settings), late)


def detector(settings: Settings) -> Job:
    """`features` → `novelties`: what is novel of each series and machine."""
    from pipelines.jobs.detect.operator import DetectorProcess

    features = Stream.read(internal(settings, topics.FEATURES, Features, "window_end"))
    stream = features.merge(Stream.read(notices(settings))).key_by("entity", "metric")
    horizon = duration_ms(settings.window.allowed_lateness) + duration_ms(settings.window.size)
    novelties = Output(settings.topic(topics.NOVELTIES), Novelty, "json", settings.kafka.partitions)
    late = columnar(settings, topics.NOVELTIES_LATE, Features)
    return stream.process(DetectorProcess(settings.detector, horizon)).write(
        "detector", novelties, dead(settings), late
    )


JOBS: dict[str, Callable[[Settings], Job]] = {
    "normalizer": normalizer,
    "log_normalizer": log_normalizer,
    "extractor": extractor,
    "templates": templates,
    "detector": detector,
    "log_detector": log_detector,
}
"""The jobs that run on the sharded operator; the sink is a query of its own."""

FROM_AGENTS = ("normalizer", "log_normalizer")
"""The jobs that read what agents write."""

MODULES = ("pipelines.jobs", "pipelines.jobs.detect.operator", "pipelines.jobs.mine_logs.job")
"""What a Python worker imports to run them."""
