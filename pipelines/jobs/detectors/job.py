"""The definitions of the two detectors: one judges features of metrics, the other counts of log lines.

The detectors share only the topic that they write; neither waits for the other's watermark.
"""

from __future__ import annotations

from engine.spec.job import Job
from engine.spec.output import Output, Side
from engine.spec.source import Source
from engine.stream import Stream
from pipelines.contracts import topics
from pipelines.contracts.records import Change, Features, Label, LogFeatures, News, Novelty, Rule, SeriesState
from pipelines.contracts.records.news import IS_NEWS
from pipelines.contracts.settings import Settings
from pipelines.jobs.detectors.control_messages import ControlMessage
from pipelines.jobs.detectors.detect_operator import NEWS, STATE, Detect
from pipelines.jobs.detectors.logs.judging import Logs
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.surroundings import Around
from pipelines.jobs.operator_messages import OperatorMessage, operator_messages
from pipelines.jobs.sources import columnar, dead, internal, most_series

_MESSAGES: dict[str, type[OperatorMessage]] = {topics.RULES: Rule, topics.LABELS: Label}


def detector(settings: Settings) -> Job:
    """`features` → `novelties`: verdicts on each series and each machine; `detector.state`: beliefs on them."""
    features = Stream.read(internal(settings, topics.FEATURES, Features, "window_end"))
    ends = operator_messages(settings, ControlMessage, {topics.CHANGES: Change}, reports=False)
    stream = features.merge(Stream.read(control_messages(settings))).merge(Stream.read(ends))
    stream = stream.key_by("entity", "metric")
    horizon = settings.window.open_for_ms
    novelties = Output(settings.writes(topics.NOVELTIES), Novelty, "json", settings.kafka.partitions)
    late = columnar(settings, topics.NOVELTIES_LATE, Features)
    judges = Metrics(horizon, settings.kafka.partitions, settings.end)
    return stream.process(Detect(settings.detector, judges, _around(settings))).write(
        "detector", novelties, dead(settings), late, {STATE: _state(settings), NEWS: _news(settings, topics.NEWS)}
    )


def _state(settings: Settings) -> Side:
    """The side output of the detector's beliefs, compacted by series and partitioned by machine."""
    name = settings.writes(topics.STATE)
    return Side(STATE, Output(name, SeriesState, "json", settings.kafka.partitions, key=SeriesState.identity))


def log_detector(settings: Settings) -> Job:
    """`features.logs` → `novelties`: verdicts on each machine's log."""
    features = Stream.read(internal(settings, topics.LOG_FEATURES, LogFeatures, "window_end", most_series(settings)))
    stream = features.merge(Stream.read(control_messages(settings, reports=False))).key_by("entity", "metric")
    process = Detect(settings.detector, Logs(settings.window.size_ms), _around(settings, sliding=False))
    novelties = Output(settings.writes(topics.NOVELTIES), Novelty, "json", settings.kafka.partitions)
    late = columnar(settings, topics.LOG_FEATURES_LATE, LogFeatures)
    side = {NEWS: _news(settings, topics.LOG_NEWS)}
    return stream.process(process).write("log_detector", novelties, dead(settings), late, side)


def _around(settings: Settings, *, sliding: bool = True) -> Around | None:
    """Which ordinary verdicts ``detector.emit = context`` writes; ``None`` for its other values.

    Args:
        settings: The settings.
        sliding: True for metrics, whose windows may slide; those of logs follow one another.
    """
    chosen = settings.detector
    if chosen.emit != "context":
        return None
    window = settings.window
    step = window.step_ms if sliding else window.size_ms
    before, after = (number * step for number in (chosen.context_before, chosen.context_after))
    always = tuple(chosen.context_always.split(",")) if chosen.context_always else ()
    return Around(before, after, before + window.open_for_ms, always)


def _news(settings: Settings, topic: str) -> Side:
    """The side output of news, from which incidents are made. Each detector has its own, as each has its watermark."""
    return Side(NEWS, columnar(settings, topic, News), IS_NEWS)


def control_messages(settings: Settings, reports: bool = True) -> Source:
    """The source of rules and labels; ``reports`` as for `operator_messages`."""
    return operator_messages(settings, ControlMessage, _MESSAGES, reports)
