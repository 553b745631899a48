"""What operators say of a novelty afterwards."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from engine.record import Instant, Keyword, Prose, Record


class Label(Record):
    """What operators say of a novelty afterwards. Fields only: labels take effect in a later release."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "start")

    entity: Keyword = Field(alias="host.name", description="the machine")
    metric: Keyword = Field("*", description="the metric")
    start: Instant = Field(alias="event.start", description="first instant it speaks of")
    end: Instant | None = Field(None, alias="event.end", description="last instant it speaks of")
    verdict: Literal["true", "false_alarm", "expected_change", "new_normal"] = Field(description="what it was")
    note: Prose = Field("", description="in the operator's words")
