"""The definition of the job that mines log templates, and counts lines by template and severity in windows."""

from __future__ import annotations

from dataclasses import replace

from engine.aggregates import Count, First, Min
from engine.spec.job import Job
from engine.stream import Stream
from engine.windows import Sliding
from pipelines.contracts import topics
from pipelines.contracts.records import Log, LogFeatures
from pipelines.contracts.settings import Settings
from pipelines.jobs.sources import columnar, dead, internal
from pipelines.jobs.templates.masking import Mask
from pipelines.jobs.templates.mining import MineTemplates


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
