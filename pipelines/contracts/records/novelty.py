"""What the detector says of one series in one window."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Prose, Record
from pipelines.contracts.records.telemetry import MetricKind

NoveltyKind = Literal["normal", "anomaly", "state_change", "new_normal", "absence", "recovered", "learning"]

QUIET_KINDS = ("normal", "learning")
"""Kinds that are no news."""

NEWS_KINDS: tuple[str, ...] = tuple(kind for kind in get_args(NoveltyKind) if kind not in QUIET_KINDS)
"""Kinds that are news."""

ALARM_KINDS: tuple[str, ...] = tuple(kind for kind in NEWS_KINDS if kind != "recovered")
"""Kinds that call an operator."""

JOINED = "_machine"
"""The metric of verdicts on a machine as a whole: needs no quotes in query strings of Elasticsearch and Kibana."""


class Novelty(Record):
    """What the detector says of one series in one window: the `novelties` topic (JSON) and the index of that name."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "window_start", "window_end")

    entity: Keyword = Field(alias="host.name", description="the machine")
    metric: Keyword = Field(
        description="the metric; `_machine`: the joined verdict over all of the machine; `logs`: its log"
    )
    metric_kind: MetricKind = Field("gauge", description="what kind of quantity the metric is")
    window_start: Instant = Field(description="first instant of the window")
    window_end: Instant = Field(alias="@timestamp", description="end of the window, exclusive")
    kind: NoveltyKind = Field(
        description="what kind of news it is: `anomaly` a surprise; `state_change` one that has lasted, said of the "
        "window in which it began, as a revision; `new_normal` another state is accepted, or an earlier one is back, "
        "told once; `absence` an expected window did not come, told once at the first such window; `recovered` an "
        "incident has ended, or values come again; `normal` and `learning` are no news"
    )
    record_score: Finite = Field(ge=0, le=100, description="calibrated novelty, 0 to 100, not rounded")
    probability: Finite = Field(ge=0, le=1, description="chance of a value at least as extreme, were all as before")
    actual: Finite | None = Field(None, description="the value judged")
    typical: Finite | None = Field(None, description="the value expected")
    lower: Finite | None = Field(None, description="lower bound of the band in which the value was expected")
    upper: Finite | None = Field(None, description="upper bound of that band")
    since: Instant | None = Field(None, description="onset of the incident: first instant of the window it began in")
    incident_state: Literal["open", "closed"] | None = Field(
        None,
        alias="incident.state",
        description="`open` on each window from the first one of which an incident was told, `normal` ones too; "
        "`closed` once, on the window with which it is over; absent where no incident is known",
    )
    decided: Instant | None = Field(
        None,
        alias="incident.decided",
        description="end of the later window at which the incident, of which this is the worst, turned out to be this",
    )
    evidence: dict[str, float] = Field(default_factory=dict, description="each evidence channel by name")
    experts: dict[str, float] | None = Field(
        None, description="of news: how much each expert, or family in their place, was believed; they add up to 1"
    )
    expected: dict[str, float] | None = Field(
        None,
        description="of news: what each expert expected; `hour`: usual at this hour on such days, known of two or more",
    )
    context: dict[str, float] | None = Field(
        None,
        description="of news: what the words rest on beside the other fields. Of a metric: `values` seen before, "
        "`watched` milliseconds since the first of them, the `lowest` and `highest` of them; `run` values in a row, "
        "this one included, above what was typical (negative: below), over `run_for` milliseconds, all of them "
        "`ordinary` (1) or not (0); `same_for` milliseconds exactly this value; of a change the values `before` and "
        "the `level` since, `known` 1 if it is one of before; `absent` 1: an absence has ended",
    )
    influencers: dict[str, float] = Field(
        default_factory=dict,
        description="of `_machine`: each metric's share of the verdict; of `logs`: templates' shares",
    )
    actuals: dict[str, float] | None = Field(None, description="of news of `_machine`: the value of each influencer")
    typicals: dict[str, float] | None = Field(None, description="of these: the value expected of each by itself")
    suggested: dict[str, float] | None = Field(
        None,
        description="of those of them that are ordinary by themselves: the value that the machine's other metrics "
        "suggest, where that is what is unusual",
    )
    template: Prose | None = Field(None, alias="log.template", description="of `logs`: the foremost log template")
    example: Prose | None = Field(None, alias="event.original", description="of `logs`: a line of that template")
    rules: list[str] = Field(default_factory=list, description="ids of the rules that had a say in it")
    reported_by: list[str] | None = Field(None, description="ids of the rules that had it reported, whatever its score")
    message: Prose | None = Field(None, description="of news: what happened and why it is news, in words")
    details: Prose | None = Field(None, description="of news: the figures behind it, in words")
    ingested: Instant | None = Field(None, alias="event.ingested", description="when the document was written")
    revision: int = Field(0, description="0 the on-time verdict; higher after late data, replacing the lower ones")
