"""The definition of the job `places`."""

from __future__ import annotations

from dataclasses import replace

from engine.operators.process import Process
from engine.spec.decoder import Decoder
from engine.spec.duration import duration_ms
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from engine.watermarks import BoundedOutOfOrderness
from pipelines.contracts import topics
from pipelines.contracts.records import Change, InferredPlacement, Telemetry
from pipelines.contracts.settings import Settings
from pipelines.formats.bounded import BoundedDecoder
from pipelines.formats.placements.decoder import PlacementsDecoder, TracedPlacementsDecoder
from pipelines.formats.placements.facts import SLOT, Sighting
from pipelines.formats.rules import Rules
from pipelines.jobs.places.logic import CHANGES, LastPlace
from pipelines.jobs.sources import bounds, dead, internal, most_of

MOST_MACHINES = 100_000
"""So many machines, and workloads that call others, have a place; each partition has an equal share."""


def places(settings: Settings) -> Job:
    """What agents send → `places`: where each machine is; and `changes`: what of Kubernetes has ended, or is cordoned.

    What cannot be read is left to the normalizer to report.
    """
    metrics, traces = settings.reads(topics.RAW_AGENTS), settings.reads(topics.TRACES_AGENTS)
    expected = tuple((topic, p) for topic in (metrics, traces) for p in range(settings.kafka.partitions))
    late = duration_ms(settings.watermark.out_of_orderness) + SLOT
    clock = BoundedOutOfOrderness(f"{late}ms", settings.watermark.idle_after, expected)
    rules, traced = (Rules.of(settings.input, topic) for topic in (topics.RAW_AGENTS, topics.TRACES_AGENTS))
    formats: dict[str, Decoder] = {
        metrics: BoundedDecoder(PlacementsDecoder(rules.labels), Telemetry, rules.most),
        traces: BoundedDecoder(TracedPlacementsDecoder(traced.labels), Telemetry, rules.most),
    }
    source = Source(formats, Sighting, "time", clock, bounds(settings), columnar=False, reports=False)
    output = Output(settings.writes(topics.PLACES), InferredPlacement, "json", settings.kafka.partitions)
    called = replace(internal(settings, topics.CALLS, Sighting, "time"), holds=False)
    changes = Output(settings.writes(topics.CHANGES), Change, "json", settings.kafka.partitions)
    stream = Stream((source, called)).key_by("entity")
    forget = duration_ms(settings.detector.forget)
    most = most_of(settings, ("entity",), MOST_MACHINES, forget)
    process = Process(LastPlace(forget), f"{forget + SLOT}ms", most, settings.kafka.partitions)
    return stream.process(process).write("places", output, dead(settings), side={CHANGES: changes})
