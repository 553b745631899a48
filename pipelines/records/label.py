"""What operators say of a novelty afterwards."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from engine.record import Instant, Keyword, Prose, Record

LabelVerdict = Literal["true", "false_alarm", "expected_change", "new_normal"]


class Label(Record):
    """What operators say of a novelty afterwards: the `labels` topic (JSON), kept for evaluation; see docs/rules.md.

    It adjusts its series from `time` on, not the past; a later label on the same novelty counts in its place.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "start")

    entity: Keyword = Field(alias="host.name", min_length=1, description="the machine")
    metric: Keyword = Field("*", min_length=1, description="the metric; `*`: the machine as a whole")
    start: Instant = Field(alias="event.start", description="first instant it speaks of")
    end: Instant | None = Field(None, alias="event.end", description="last instant it speaks of")
    time: Instant = Field(alias="event.created", description="event time at which it was said: it takes effect then")
    verdict: LabelVerdict = Field(description="what it was")
    note: Prose = Field("", description="in the operator's words")
