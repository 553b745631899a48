"""The definition of the incidents job."""

from __future__ import annotations

from dataclasses import replace

from engine.spec.duration import END_OF_TIME, duration_ms
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.steps import Columns
from engine.stream import Stream
from pipelines.contracts import topics
from pipelines.contracts.records import (
    Acknowledgement,
    Change,
    Incident,
    InferredPlacement,
    News,
    Placement,
    Rule,
    Silence,
)
from pipelines.contracts.settings import IncidentSettings, Settings
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.operator import DAY, GroupNovelties
from pipelines.jobs.incidents.site_messages import SiteMessage
from pipelines.jobs.incidents.verdicts import SITE
from pipelines.jobs.operator_messages import OperatorMessage, operator_messages
from pipelines.jobs.sources import dead, internal

_MESSAGES: dict[str, type[OperatorMessage]] = {
    topics.TOPOLOGY: Placement,
    topics.ACKNOWLEDGEMENTS: Acknowledgement,
    topics.SILENCES: Silence,
    topics.CHANGES: Change,
}
DEFAULT_SITE = "default"
"""Name of the site without a namespace."""


def grouper(settings: Settings) -> Job:
    """`novelties.news` and `novelties.logs` → `incidents`: the novelties of a site, grouped.

    All records get the name of the site as their key, so that one shard sees all of them. The watermark is that of the
    metrics' detector: a site that sends no logs, or no longer sends any, does not stop its incidents; nor does one of
    which no places are inferred.
    """
    site = settings.namespace.rstrip(".") or DEFAULT_SITE
    key = Columns(((SITE, f"'{site}'"),))
    metrics = replace(internal(settings, topics.NEWS, News, "window_end"), steps=(key,))
    logs = replace(internal(settings, topics.LOG_NEWS, News, "window_end"), steps=(key,), holds=False)
    messages = operator_messages(settings, SiteMessage, _MESSAGES)
    muting = operator_messages(settings, SiteMessage, {topics.RULES: Rule}, reports=False)
    inferred = replace(operator_messages(settings, SiteMessage, {topics.PLACES: InferredPlacement}), holds=False)
    stream = Stream((metrics, logs, messages, muting, inferred)).key_by(SITE)
    kept = settings.window.open_for_ms + settings.window.size_ms
    last = END_OF_TIME if settings.end is None else settings.end + kept
    again = min(DAY, duration_ms(settings.kafka.retention) // 2)
    operator = GroupNovelties(site, rules(settings.incidents), kept, last, again)
    incidents = Output(settings.writes(topics.INCIDENTS), Incident, "json", settings.kafka.partitions)
    return stream.process(operator).write("incidents", incidents, dead(settings))


def rules(settings: IncidentSettings) -> Rules:
    """The settings in milliseconds."""
    times = {
        name: duration_ms(getattr(settings, name)) for name in ("together", "related", "quiet", "reopen", "longest")
    }
    return Rules(score=settings.score, false_pages=settings.false_pages, series=settings.series, **times)
