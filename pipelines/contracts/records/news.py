"""The news of the detectors: the part of their verdicts from which incidents are made."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Prose, Record
from pipelines.contracts.records.novelty import QUIET_KINDS, NoveltyKind

IS_NEWS = f"kind NOT IN ({', '.join(repr(kind) for kind in QUIET_KINDS)}) OR incident_state = 'closed' OR revision > 0"
"""SQL condition: a verdict is news, ends an incident of its series, or replaces an earlier verdict."""

LIVING, LIVING_EVERY = "_living", 600_000
"""Metric of records that count machines: those of a partition, each time so many milliseconds have passed, and the
replicas of a workload when one of them is novel. They are no verdicts, and only incidents make use of them."""

PARTITION = "_partition-"
"""How the names begin that stand for partitions in such records; other names are those of workloads."""


class News(Record):
    """A verdict that is news, ends an incident of its series, or replaces an earlier one: `novelties.news`, columnar.

    The fields are those of `Novelty`. The topic carries the detector's watermark, which the JSON of `novelties` cannot.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "window_start", "window_end")

    entity: Keyword = Field(alias="host.name", description="the machine")
    metric: Keyword = Field(
        description="the metric; `_machine`; `logs`; `_peers.` and a metric; `_living`: no verdict, but in `actual` "
        "how many machines of a partition sent something in the last hour, or how many replicas a workload has"
    )
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
    full_earliest: Instant | None = Field(None, description="when it is full at the earliest")
    full_latest: Instant | None = Field(None, description="when it is full at the latest")
    values: Finite | None = Field(None, description="for a metric: how many values the band was learned from")
    clock: Finite | None = Field(None, description="for a metric: mean milliseconds between two of its values")
    metrics: Finite | None = Field(
        None, description="for a metric: how many metrics of its machine were judged at the same time"
    )
    revision: int = Field(0, description="a higher revision replaces a lower one")
