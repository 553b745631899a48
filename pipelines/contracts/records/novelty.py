"""A novelty: the detector's verdict on one series in one window."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Prose, Record
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.records.telemetry import MetricKind

NoveltyKind = Literal[
    "normal", "anomaly", "state_change", "new_normal", "absence", "exhaustion", "outlier", "recovered", "learning"
]

QUIET_KINDS = ("normal", "learning")
"""The kinds of verdict that are no news: nothing is reported."""

NEWS_KINDS: tuple[str, ...] = tuple(kind for kind in get_args(NoveltyKind) if kind not in QUIET_KINDS)
"""The kinds of verdict that are news: they are reported."""

ALARM_KINDS: tuple[str, ...] = tuple(kind for kind in NEWS_KINDS if kind != "recovered")
"""The kinds of verdict that an operator should look at: all news but `recovered`."""

UNTIL_FULL = "~full"
"""Ends the metric name of verdicts on when a metric is full: they have incidents of their own."""

JOINED = "_machine"
"""The metric name of verdicts on a machine as a whole. In query strings of Elasticsearch it needs no quotes."""

PEERS = "_peers."
"""Before the name of a metric: verdicts on that metric beside the same of the machine's peers."""


def judged_metric(metric: str) -> str:
    """The metric that a verdict is on, beside its own past or beside peers.

    >>> judged_metric("_peers.cpu.util"), judged_metric("cpu.util")
    ('cpu.util', 'cpu.util')
    """
    return metric.removeprefix(PEERS)


def sent_metric(metric: str) -> str:
    """The metric of whose values a verdict tells: beside their past or peers, or when it is full.

    >>> sent_metric("_peers.cpu.util"), sent_metric("disk.used_percent{path=/}~full"), sent_metric("cpu.util")
    ('cpu.util', 'disk.used_percent{path=/}', 'cpu.util')
    """
    return judged_metric(metric).removesuffix(UNTIL_FULL)


def is_derived(metric: str) -> bool:
    """Whether verdicts alone have a metric: it is said beside peers, or of when a metric is full.

    >>> is_derived("_peers.cpu.util"), is_derived("cpu.util")
    (True, False)
    """
    return sent_metric(metric) != metric


def shown_metric(metric: str) -> str:
    """The name of a metric as people read it, also of those that only verdicts have.

    >>> [shown_metric(name) for name in ("cpu.util", "_peers.cpu.util", "disk.used_ratio~full", "_machine")]
    ['cpu.util', 'cpu.util beside peers', 'disk.used_ratio until full', 'all metrics']
    """
    if metric == JOINED:
        return "all metrics"
    if metric.startswith(PEERS):
        return f"{judged_metric(metric)} beside peers"
    return f"{metric.removesuffix(UNTIL_FULL)} until full" if metric.endswith(UNTIL_FULL) else metric


class Novelty(Record):
    """The detector's verdict on one series in one window: the `novelties` topic (JSON) and the index of that name.

    A verdict is *news* unless its kind is `normal` or `learning`.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "window_start", "window_end")
    seldom_sought: ClassVar[tuple[str, ...]] = ("state_score", "probability", "actual", "typical", "lower", "upper")
    """Numbers that have no index of their own in Elasticsearch: they are searched by their columns on disk."""

    entity: Keyword = Field(alias="host.name", description="the machine")
    workload: Keyword | None = Field(
        None,
        alias="k8s.workload.name",
        description="for news: what the machine is a replica of by its name, as Kubernetes and Swarm generate names: "
        "the deployment of a pod as `namespace/name`",
    )
    metric: Keyword = Field(
        description="the metric; `_machine`: the joined verdict on all metrics of the machine; `logs`: its log; "
        "with `~full` at the end: when that metric is full; "
        "`_peers.` and a metric: that metric beside the same of the machine's peers"
    )
    metric_kind: MetricKind = Field("gauge", description="what kind of quantity the metric is")
    window_start: Instant = Field(description="first instant of the window")
    window_end: Instant = Field(alias="@timestamp", description="end of the window, exclusive")
    kind: NoveltyKind = Field(
        description="`anomaly`: the value is unusual; `state_change`: an anomaly has lasted (a revision of the window "
        "in which it began); `new_normal`: a changed state is accepted, or an earlier state is back (once); `absence`: "
        "an expected window is missing (once, at the first such window); `exhaustion`: it will be full soon (when that "
        "is told, and when the forecast has changed considerably); `outlier`: the machine has become unlike its peers, "
        "or more so (once each); `recovered`: an incident has ended, or values arrive again; `normal` and `learning`: "
        "no news"
    )
    record_score: Finite = Field(ge=0, le=100, description="calibrated score of novelty, 0 to 100, not rounded")
    state_score: Finite = Field(
        0.0,
        ge=0,
        le=100,
        description="how far the window lies from what was normal before, 0 to 100, while an incident of the series is "
        "open, announced or not; 0 where none is. `_machine`: the same of its metrics together",
    )
    severity: Severity | None = Field(
        None, description="`record_score` in a word: from 0, 25, 50 and 75 on; absent in verdicts of earlier versions"
    )
    probability: Finite = Field(
        ge=0, le=1, description="probability of a value at least as extreme, if nothing has changed"
    )
    actual: Finite | None = Field(None, description="the value judged")
    typical: Finite | None = Field(None, description="the value expected")
    lower: Finite | None = Field(
        None, description="lower bound of the band in which the value was expected; from a series' third value on"
    )
    upper: Finite | None = Field(None, description="upper bound of that band")
    full_earliest: Instant | None = Field(
        None, description="for `exhaustion`: when it is full at the earliest; that and the latest hold it with 95 %"
    )
    full_median: Instant | None = Field(None, description="for `exhaustion`: the median of when it is full")
    full_latest: Instant | None = Field(None, description="for `exhaustion`: when it is full at the latest")
    since: Instant | None = Field(
        None, description="onset of the incident: first instant of the window in which it began"
    )
    incident_state: Literal["open", "closed"] | None = Field(
        None,
        alias="incident.state",
        description="`open` on each window from the first that reported the incident, also on `normal` windows; "
        "`closed` on the one window that ends it; absent where there is no incident",
    )
    decided: Instant | None = Field(
        None,
        alias="incident.decided",
        description="if this kind was decided later, for the worst window of its incident: end of the window that "
        "decided it",
    )
    evidence: dict[str, float] = Field(default_factory=dict, description="evidence of each channel by name, in nats")
    experts: dict[str, float] | None = Field(
        None,
        description="for news: the weight of each expert of the model, or of the family used instead; the weights add "
        "up to 1",
    )
    expected: dict[str, float] | None = Field(
        None,
        description="for news: the value that each expert expected; `hour`: the usual value at this hour on similar "
        "days, absent until two such days are known",
    )
    context: dict[str, float] | None = Field(
        None,
        description="for news: further numbers that `message` is written from. `values`: number of values seen before; "
        "`inherited`: how many those of its predecessors are worth to a replica of a workload; "
        "`watched`: milliseconds since the first of them; `metrics`: how many metrics of the machine were "
        "judged at the same time; `lowest` and `highest` of them; `run`: how many values in a row, with this "
        "one, were above the typical value (negative: below it), `run_for`: for how many milliseconds, "
        "`ordinary`: 1 if none of them was unusual by itself, else 0; `same_for`: milliseconds for which the "
        "value has been exactly the same; for a change: the level `before` it, the `level` since, and "
        "`known`: 1 if that level was seen earlier; `absent`: 1 if an absence has ended; beside `peers`: how many they "
        "are, `theirs`: the median of their values, `early`: 1 if the machine has been unlike them from its start",
    )
    influencers: dict[str, float] = Field(
        default_factory=dict,
        description="for `_machine`: each metric's share of the verdict; for `logs`: each template's share",
    )
    actuals: dict[str, float] | None = Field(None, description="for news of `_machine`: the value of each influencer")
    typicals: dict[str, float] | None = Field(
        None, description="for news of `_machine`: the expected value of each influencer, from that metric alone"
    )
    suggested: dict[str, float] | None = Field(
        None,
        description="for news of `_machine`, of each influencer that is ordinary by itself but does not fit the "
        "machine's other metrics: the value that these suggest",
    )
    template: Prose | None = Field(
        None, alias="log.template", description="for `logs`: the log template with the largest share"
    )
    example: Prose | None = Field(None, alias="event.original", description="for `logs`: a line of that template")
    rules: list[str] = Field(default_factory=list, description="ids of the rules that influenced the verdict")
    reported_by: list[str] | None = Field(
        None, description="ids of the rules that had the window reported, whatever its score"
    )
    message: Prose | None = Field(None, description="for news: what happened and why it is news, in words")
    details: Prose | None = Field(None, description="for news: the figures behind the verdict, in words")
    ingested: Instant | None = Field(None, alias="event.ingested", description="when the document was written")
    revision: int = Field(
        0,
        description="0: the on-time verdict; higher: a later verdict, as after late data, which replaces all lower "
        "revisions. It is the number of milliseconds of event time from the end of the window to that verdict, or more "
        "if there were several at one time; in records of earlier versions a count",
    )
