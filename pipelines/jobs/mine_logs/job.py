"""The jobs of the logs: agents' messages to one columnar topic, templates mined and counted, windows judged.

They stand beside the jobs of the metrics and share the topic of verdicts only: neither waits for the other's watermark.
"""

from __future__ import annotations

from dataclasses import replace

from engine.aggregates import Count, First, Min
from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoder
from engine.spec.duration import duration_ms
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from engine.windows import Sliding
from pipelines.contracts import topics
from pipelines.contracts.records import Log, LogFeatures, Novelty
from pipelines.contracts.settings import Settings
from pipelines.jobs.detect.logs.detector import LogDetectorProcess
from pipelines.jobs.mine_logs.masking import Mask
from pipelines.jobs.mine_logs.mining import MineTemplates
from pipelines.jobs.normalize.rsyslog import RsyslogDecoder
from pipelines.jobs.sources import bounds, columnar, dead, internal, notices, watermark


def log_normalizer(settings: Settings) -> Job:
    """Agents' formats → `logs`."""
    formats: dict[str, Decoder] = {
        settings.topic(topics.LOGS_JSON): JsonDecoder(Log),
        settings.topic(topics.LOGS_RSYSLOG): RsyslogDecoder(),
    }
    source = Source(formats, Log, "time", watermark(settings, *formats), bounds(settings), columnar=False)
    stream = Stream.read(source).key_by("entity")
    return stream.write("log_normalizer", columnar(settings, topics.LOGS, Log), dead(settings))


def templates(settings: Settings) -> Job:
    """`logs` → `features.logs`: lines counted by template and by severity in event-time windows."""
    window = settings.window.size
    source = replace(internal(settings, topics.LOGS, Log, "time"), steps=(Mask(),))
    stream = (
        Stream.read(source)
        .key_by("entity", "program", "severity", "masked")
        .window(Sliding(window, every=window))
        .aggregate(count=Count(), first=Min("time"), example=First("message"))
        .process(MineTemplates())
    )
    late = columnar(settings, topics.LOGS_LATE, Log)
    return stream.write("templates", columnar(settings, topics.LOG_FEATURES, LogFeatures), dead(settings), late)


def log_detector(settings: Settings) -> Job:
    """`features.logs` → `novelties`: what is novel of each machine's log."""
    features = Stream.read(internal(settings, topics.LOG_FEATURES, LogFeatures, "window_end"))
    stream = features.merge(Stream.read(notices(settings, refuses=False))).key_by("entity", "metric")
    process = LogDetectorProcess(settings.detector, duration_ms(settings.window.size))
    novelties = Output(settings.topic(topics.NOVELTIES), Novelty, "json", settings.kafka.partitions)
    return stream.process(process).write("log_detector", novelties, dead(settings))
