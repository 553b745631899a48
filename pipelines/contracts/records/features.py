"""The statistics of one metric of one machine in one window."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Record
from pipelines.contracts.records.telemetry import MetricKind


class Features(Record):
    """The statistics of one series (metric of a machine) in one event-time window: the `features` topic (columnar)."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "window_start", "window_end")

    entity: Keyword = Field(alias="host.name", description="the machine")
    metric: Keyword = Field(description="the metric")
    kind: MetricKind = Field("gauge", description="what kind of quantity the metric is")
    window_start: Instant = Field(description="first instant of the window")
    window_end: Instant = Field(alias="@timestamp", description="end of the window, exclusive")
    count: int = Field(description="samples in the window")
    mean: Finite = Field(description="arithmetic mean")
    std: Finite = Field(description="sample standard deviation; 0 if there is only one sample")
    min: Finite = Field(description="smallest value")
    max: Finite = Field(description="largest value")
    last: Finite = Field(description="value with the latest event time")
    p50: Finite = Field(description="median, relative error at most 2 %")
    p95: Finite = Field(description="95th percentile, relative error at most 2 %")
    p99: Finite = Field(description="99th percentile, relative error at most 2 %")
    rate: Finite | None = Field(
        None, description="for a counter: its increase per second, without the jumps of resets; absent for other kinds"
    )
    revision: int = Field(
        0,
        description="0: the on-time result; higher: a result after late data, which replaces all lower revisions. An "
        "extractor that went back to a savepoint counts anew: of two results of a window that with the larger `count` "
        "is the later one",
    )
