"""The news of the detectors: the part of their verdicts from which incidents are made."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Prose, Record
from pipelines.contracts.records.novelty import QUIET_KINDS, NoveltyKind

IS_NEWS = f"kind NOT IN ({', '.join(repr(kind) for kind in QUIET_KINDS)}) OR incident_state = 'closed' OR revision > 0"
"""SQL condition: a verdict is news, ends an incident of its series, or replaces an earlier verdict."""


class News(Record):
    """A verdict that is news, ends an incident of its series, or replaces an earlier one: `novelties.news`, columnar.

    The fields are those of `Novelty`. The topic carries the detector's watermark, which the JSON of `novelties` cannot.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "window_start", "window_end")

    entity: Keyword = Field(alias="host.name", description="the machine")
    metric: Keyword = Field(description="the metric; `_machine`; `logs`")
    window_start: Instant = Field(description="first instant of the window")
    window_end: Instant = Field(alias="@timestamp", description="end of the window, exclusive")
    kind: NoveltyKind = Field(description="the kind of verdict")
    record_score: Finite = Field(description="score of novelty, 0 to 100")
    since: Instant | None = Field(None, description="onset of the novelty")
    incident_state: Keyword | None = Field(None, alias="incident.state", description="`open`, or `closed` at the end")
    template: Keyword | None = Field(None, alias="log.template", description="for `logs`: the main log template")
    example: Prose | None = Field(None, alias="event.original", description="for `logs`: a line of that template")
    level: int | None = Field(
        None, alias="log.syslog.severity.code", description="for `logs`: syslog severity of that template's worst line"
    )
    metric_kind: Keyword | None = Field(None, description="what kind of quantity the metric is")
    actual: Finite | None = Field(None, description="the value judged")
    typical: Finite | None = Field(None, description="the value expected")
    lower: Finite | None = Field(None, description="lower bound of the band in which the value was expected")
    upper: Finite | None = Field(None, description="upper bound of that band")
    values: Finite | None = Field(None, description="for a metric: how many values the band was learned from")
    clock: Finite | None = Field(None, description="for a metric: mean milliseconds between two of its values")
    metrics: Finite | None = Field(
        None, description="for a metric: how many metrics of its machine were judged at the same time"
    )
    revision: int = Field(0, description="a higher revision replaces a lower one")
