"""An incident: the novelties of a site that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Prose, Record
from pipelines.contracts.records.change import ChangeKind
from pipelines.contracts.records.novelty import NoveltyKind
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.records.telemetry import MetricKind

IncidentStatus = Literal["open", "acknowledged", "reopened", "resolved", "merged"]

STANDING = frozenset({"open", "acknowledged", "reopened"})
"""The states of an incident that is not over."""


class AffectedMachine(Record):
    """One machine of an incident."""

    entity: Keyword = Field(description="the machine")
    workload: Keyword | None = Field(
        None,
        description="what it is a replica of, such as the deployment of a pod as `namespace/name`; absent: of nothing "
        "that is known",
    )
    since: Instant = Field(description="when it began to be novel")
    series: int = Field(description="number of its series that were novel")
    record_score: int = Field(description="highest score of its novelties, rounded")


class AffectedMetric(Record):
    """One metric of an incident."""

    metric: Keyword = Field(description="the metric")
    machines: int = Field(description="number of machines on which it was novel")
    record_score: int = Field(description="highest score of its novelties, rounded")


class AffectedSeries(Record):
    """One series of an incident: what its worst verdict says of it."""

    entity: Keyword = Field(description="the machine")
    metric: Keyword = Field(description="the metric; `_machine`: the machine as a whole; `logs`: its log")
    metric_kind: MetricKind = Field("gauge", description="what kind of quantity the metric is")
    kind: NoveltyKind = Field(description="the kind of its worst verdict; `absence` if it has sent nothing")
    since: Instant = Field(description="when it began to be novel")
    reported: Instant = Field(description="end of its first window that was novel")
    end: Instant | None = Field(
        None, description="when it was over; of an absence, when values came again; absent while it lasts"
    )
    record_score: int = Field(description="highest score of its novelties, rounded")
    actual: Finite | None = Field(None, description="the value of its worst verdict")
    typical: Finite | None = Field(None, description="the value that was expected there")
    lower: Finite | None = Field(None, description="lower bound of the band in which it was expected")
    upper: Finite | None = Field(None, description="upper bound of that band")
    change: Prose = Field(description="how much it changed, in words, such as `3.8 × the usual` or `27 → 71 %`")
    times: int = Field(1, description="how often it came: more than 1 if it was over and was novel again")


class LogChange(Record):
    """What changed in the log of a machine when its metrics began to be novel: a deployment, a crash, an error."""

    template: Keyword = Field(description="the log template whose lines changed most: new ones, more, or fewer")
    example: Prose | None = Field(None, description="a line of that template")
    entity: Keyword = Field(description="the machine whose log changed first")
    since: Instant = Field(description="when that log changed")
    machines: int = Field(description="number of machines whose logs changed in that template")


class EarlierChange(Record):
    """Something that was done shortly before an incident began, on its machines or on what they depend on."""

    id: Keyword = Field(alias="event.id", description="id of the change")
    kind: ChangeKind = Field(alias="event.action", description="what was done")
    message: Prose = Field(description="what was done, in words; the first 200 characters")
    since: Instant = Field(description="when it began")
    entity: Keyword | None = Field(
        None,
        description="the machine of the incident on which it was done, or what one of them depends on; absent: it was "
        "done to the site as a whole",
    )


class Candidate(Record):
    """A machine at which an incident may have begun."""

    entity: Keyword = Field(description="the machine")
    metric: Keyword = Field(description="its first novel metric")
    since: Instant = Field(description="onset of the machine's first novelty")
    share: Finite = Field(description="how likely it is; those of all machines and `unknown_share` add up to 1")
    reason: Prose = Field(description="why, in words")


class Incident(Record):
    """Novelties of a site that belong together: the `incidents` topic (JSON) and the index of that name.

    An incident is written again, with a higher revision, whenever something in it has changed that an operator sees.
    `newnormal prove --indices` computes one again while its document and those of its novelties are kept.
    """

    identity: ClassVar[tuple[str, ...]] = ("id",)
    also_found_as: ClassVar[Mapping[str, str]] = {
        "host.name": "machines.entity",
        "k8s.workload.name": "machines.workload",
        "metric": "metrics.metric",
    }
    """Names under which Elasticsearch also finds fields: those of novelties, so that one filter selects both."""

    id: str = Field(alias="event.id", description="identity: a hash of the novelty that was reported first")
    opened: Instant = Field(
        alias="@timestamp", description="event time at which the incident was first reported; it never changes"
    )
    site: Keyword = Field(description="the site whose novelties were grouped: the namespace, `default` without one")
    status: IncidentStatus = Field(
        alias="incident.state",
        description="`open`; `acknowledged` by an operator; `resolved` after a quiet time; `reopened`: novel again "
        "soon after that; `merged`: it turned out to be a part of the incident in `merged_into`",
    )
    severity: Severity = Field(description="the severity in a word: from `severity_score` 0, 25, 50 and 75 on")
    severity_score: int = Field(
        alias="event.risk_score",
        ge=0,
        le=100,
        description="0 to 100: how sure and how large its novelties are, in how many series, and what has sent nothing",
    )
    record_score: int = Field(ge=0, le=100, description="highest score of its novelties, rounded")
    start: Instant = Field(alias="event.start", description="earliest onset of its novelties")
    end: Instant | None = Field(
        None, alias="event.end", description="when its last novelty ended; absent until it is resolved"
    )
    updated: Instant = Field(
        description="event time of the last change: a series joined, an operator acknowledged it, it was resolved"
    )
    message: Prose = Field(description="what happened, in words")
    machine_count: int = Field(description="number of machines")
    series_count: int = Field(description="number of series that were novel")
    open_series: int = Field(description="number of series that are novel now")
    machines: list[AffectedMachine] = Field(
        default_factory=list, description="the first 100 machines, in the order of their onsets"
    )
    metrics: list[AffectedMetric] = Field(
        default_factory=list, description="the 50 metrics that are novel on most machines"
    )
    series: list[AffectedSeries] = Field(
        default_factory=list,
        description="the first 50 series: what has sent nothing first, then the strongest; empty in records of "
        "earlier versions",
    )
    candidates: list[Candidate] = Field(
        default_factory=list, description="up to five machines at which it may have begun, the most likely first"
    )
    unknown_share: Finite | None = Field(
        None,
        description="how likely it is that it began at none of its machines: elsewhere, or as nothing is wrong; absent "
        "in records of earlier versions",
    )
    log_changes: list[LogChange] = Field(
        default_factory=list,
        description="up to five changes in the logs of machines at the onset of novelties of their metrics, those on "
        "most machines first",
    )
    changes: list[EarlierChange] = Field(
        default_factory=list,
        description="up to five changes in the half hour before it began, those on its machines first, and of these "
        "the last one first",
    )
    reopenings: int = Field(0, description="how often it was novel again after it had been resolved")
    acknowledged_by: Keyword | None = Field(None, description="the operator who acknowledged it")
    note: Prose | None = Field(None, description="the operator's remark")
    merged_into: str | None = Field(None, description="for `merged`: id of the incident that goes on")
    ingested: Instant | None = Field(None, alias="event.ingested", description="when the document was written")
    revision: int = Field(
        0,
        description="grows with each change of the incident; a higher one replaces the lower ones. It is the event "
        "time up to which the incident was seen, or more if there were several changes at one time; in records of "
        "earlier versions a count",
    )
