"""What the detector believes of one series: the present state of its model, said when it has changed."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Record
from pipelines.contracts.records.novelty import NoveltyKind


class SeriesState(Record):
    """What the detector believes of a series: the compacted `detector.state` topic (JSON), the last message applies.

    The detector writes a record when its belief has changed, not with each window; see docs/state-view.md. Rules change
    what is reported, not what is believed: a muted incident is open here.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric")

    entity: Keyword = Field(alias="host.name", description="the machine")
    metric: Keyword = Field(description="the metric; `_machine`: all metrics of the machine together")
    window_start: Instant = Field(description="first instant of the window with which the belief changed")
    window_end: Instant = Field(alias="@timestamp", description="end of that window, exclusive")
    kind: NoveltyKind = Field(description="the model's verdict on that window, before rules")
    record_score: Finite = Field(ge=0, le=100, description="score of that window, 0 to 100")
    actual: Finite | None = Field(None, description="the value in that window")
    typical: Finite | None = Field(None, description="the value that was expected")
    lower: Finite | None = Field(
        None, description="lower bound of the band in which the value was expected; from a series' third value on"
    )
    upper: Finite | None = Field(None, description="upper bound of that band")
    since: Instant | None = Field(None, description="onset of the incident or absence")
    incident_state: Literal["open", "closed"] | None = Field(
        None,
        alias="incident.state",
        description="`open`: an incident is open; `closed`: it ended with that window; with `absence`: gone for a day",
    )
    values: int = Field(0, description="number of values that the model has learned from")
    regime: int | None = Field(None, description="place in `regimes` of the regime that the series is in, from 0")
    regimes: list[float] | None = Field(
        None, description="level of each regime that the series is known in: the mean of its latest values in it"
    )
    full_earliest: Instant | None = Field(
        None,
        description="of a series with a bound: when it is full at the earliest; that and `full_latest` hold it with "
        "95 %; see time-to-full.md",
    )
    full_median: Instant | None = Field(None, description="the median of when it is full")
    full_latest: Instant | None = Field(None, description="when it is full at the latest; absent: perhaps never")
    full_rate: Finite | None = Field(None, description="the slope from which that follows, units per hour")
