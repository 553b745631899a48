"""One sample of one metric of one machine."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Record

MetricKind = Literal["gauge", "counter", "rate", "count", "latency", "ratio"]


class Telemetry(Record):
    """One sample of one metric of one machine, as the `telemetry` topic carries it (columnar)."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "time")

    time: Instant = Field(alias="@timestamp", description="event time: when the value was read")
    entity: Keyword = Field(alias="host.name", min_length=1, max_length=512, description="the machine")
    metric: Keyword = Field(
        min_length=1, max_length=1_024, description="the metric, with the instance: disk.used{path=/}"
    )
    value: Finite = Field(description="the value read")
    kind: MetricKind = Field(
        "gauge", description="what kind of quantity the metric is; a counter only grows until it is reset"
    )
