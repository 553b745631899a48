"""The jobs that read and check the messages of agents and decide the watermark, for metrics and for log lines."""

from __future__ import annotations

from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoder
from engine.spec.job import Job
from engine.spec.record import Record
from engine.spec.source import Source
from engine.stream import Stream
from pipelines.contracts import topics
from pipelines.contracts.records import Log, Telemetry
from pipelines.contracts.settings import Settings
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.bounded import BoundedDecoder
from pipelines.formats.catalogue import BY_NAME
from pipelines.formats.line_decoder import OwnLogDecoder
from pipelines.formats.rsyslog import RsyslogDecoder
from pipelines.formats.rules import Rules
from pipelines.jobs.sources import bounds, columnar, dead, watermark


def normalizer(settings: Settings) -> Job:
    """Agents' formats → `telemetry`. The job rejects samples of wrong clocks, and first decides the watermark."""
    rules, telegraf = (Rules.of(settings.input, topic) for topic in (topics.RAW_AGENTS, topics.RAW_TELEGRAF))
    formats: dict[str, Decoder] = {
        settings.reads(topics.RAW_JSON): JsonDecoder(Telemetry),
        settings.reads(topics.RAW_TELEGRAF): BY_NAME["telegraf"].build(telegraf),
        settings.reads(topics.RAW_COLLECTD): BY_NAME["collectd"].build(rules),
        settings.reads(topics.RAW_AGENTS): AnyFormatDecoder(Telemetry, rules),
    }
    clock = watermark(settings, *formats)
    source = Source(
        _bounded(formats, Telemetry, rules.most), Telemetry, "time", clock, bounds(settings), columnar=False
    )
    stream = Stream.read(source).key_by("entity")
    return stream.write("normalizer", columnar(settings, topics.TELEMETRY, Telemetry), dead(settings))


def log_normalizer(settings: Settings) -> Job:
    """Agents' formats → `logs`, like `normalizer`, for log lines."""
    rules, rsyslog = (Rules.of(settings.input, topic) for topic in (topics.LOGS_AGENTS, topics.LOGS_RSYSLOG))
    formats: dict[str, Decoder] = {
        settings.reads(topics.LOGS_JSON): OwnLogDecoder(Log),
        settings.reads(topics.LOGS_RSYSLOG): RsyslogDecoder(rsyslog.labels.default),
        settings.reads(topics.LOGS_AGENTS): AnyFormatDecoder(Log, rules),
    }
    clock = watermark(settings, *formats)
    source = Source(_bounded(formats, Log, rules.most), Log, "time", clock, bounds(settings), columnar=False)
    stream = Stream.read(source).key_by("entity")
    return stream.write("log_normalizer", columnar(settings, topics.LOGS, Log), dead(settings))


def _bounded(formats: dict[str, Decoder], record: type[Record], most: int) -> dict[str, Decoder]:
    """The decoders, each of which is spared messages with too many parts."""
    return {name: BoundedDecoder(each, record, most) for name, each in formats.items()}
