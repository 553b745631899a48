"""One sample of one metric of one machine."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Record, Without

RESERVED = Without(
    r"^_(machine|living)\n*$|^_peers\.|~full\n*$",
    "reserved for verdicts: `_machine`, `_living`, `_peers.` at the beginning, `~full` at the end",
)
"""The names of metrics that no agent may send, as what the detector says has them: they would be taken for one."""

MetricKind = Literal["gauge", "counter", "rate", "count", "latency", "ratio"]


class Telemetry(Record):
    """One sample of one metric of one machine, as the `telemetry` topic carries it (columnar)."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "time")

    time: Instant = Field(alias="@timestamp", description="event time: when the value was read")
    entity: Keyword = Field(alias="host.name", min_length=1, max_length=512, description="the machine")
    metric: Annotated[Keyword, RESERVED] = Field(
        min_length=1, max_length=1_024, description="the metric, with the instance: disk.used{path=/}"
    )
    value: Finite = Field(description="the value read")
    kind: MetricKind = Field(
        "gauge", description="what kind of quantity the metric is; a counter only grows until it is reset"
    )
