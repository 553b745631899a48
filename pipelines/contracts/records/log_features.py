"""How many lines of one log template, or of one severity, a machine wrote in one window."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.spec.record import Instant, Keyword, Prose, Record
from pipelines.contracts.records.telemetry import MetricKind


class LogFeatures(Record):
    """Log lines of one template or severity of a machine in one event-time window: topic `features.logs` (columnar)."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "window_start", "window_end")

    entity: Keyword = Field(alias="host.name", description="the machine")
    metric: Keyword = Field(description="`log.template.<id>`, or `log.severity.<name>`")
    kind: MetricKind = Field("count", description="what kind of quantity the metric is")
    window_start: Instant = Field(description="first instant of the window")
    window_end: Instant = Field(alias="@timestamp", description="end of the window, exclusive")
    count: int = Field(description="lines in the window")
    severity: int = Field(
        6, ge=0, le=8, description="as in `Log`; for a template, that of its most severe line, 8 being the least severe"
    )
    template: Keyword | None = Field(None, description="program and text of the template, `<*>` where lines differ")
    example: Prose | None = Field(None, alias="message", description="the first line, at most 1024 characters of it")
    revision: int = Field(0, description="always 0: a line that is too late for its window goes to `logs.late`")
