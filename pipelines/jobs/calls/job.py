"""The definition of the job `calls`."""

from __future__ import annotations

from engine.operators.process import Process
from engine.spec.duration import duration_ms
from engine.spec.job import Job
from engine.spec.source import Source
from engine.stream import Stream
from engine.watermarks import BoundedOutOfOrderness
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings
from pipelines.formats.bounded import BoundedDecoder
from pipelines.formats.placements.facts import Sighting
from pipelines.formats.placements.spans import Span, SpansDecoder
from pipelines.formats.rules import Rules
from pipelines.jobs.calls.logic import WAITS, TraceCalls
from pipelines.jobs.sources import bounds, columnar, dead, most_of

_DISORDER = 30_000
"""Senders of spans gather them for some seconds: milliseconds by which these are out of order, besides the setting."""
MOST_WAITING = 200_000
"""So many spans of all traces wait for others; each partition has an equal share."""


def calls(settings: Settings) -> Job:
    """Traces → `calls`: which service calls which."""
    topic = settings.reads(topics.TRACES_AGENTS)
    expected = tuple((topic, p) for p in range(settings.kafka.partitions))
    late = duration_ms(settings.watermark.out_of_orderness) + _DISORDER
    clock = BoundedOutOfOrderness(f"{late}ms", settings.watermark.idle_after, expected)
    rules = Rules.of(settings.input, topics.TRACES_AGENTS)
    decoder = BoundedDecoder(SpansDecoder(rules.labels), Telemetry, rules.most)
    source = Source({topic: decoder}, Span, "time", clock, bounds(settings), columnar=False)
    most = most_of(settings, ("trace", "span"), MOST_WAITING, WAITS)
    process = Process(TraceCalls(), f"{WAITS + 1}ms", most, settings.kafka.partitions)
    stream = Stream.read(source).key_by("trace").process(process)
    return stream.write("calls", columnar(settings, topics.CALLS, Sighting), dead(settings))
