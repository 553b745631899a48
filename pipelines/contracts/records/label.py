"""What operators say of a novelty afterwards."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from engine.spec.record import Date, Keyword, Prose, Record
from pipelines.contracts.records.novelty import JOINED

LabelVerdict = Literal["true", "false_alarm", "expected_change", "new_normal"]


class Label(Record):
    """What operators say of a novelty afterwards: the `labels` topic (JSON), kept for evaluation; see docs/rules.md.

    It adjusts its series from the time on at which it was said, not the past. For evaluation the last one on a novelty
    counts.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "start")

    entity: Keyword = Field(alias="host.name", min_length=1, max_length=512, description="the machine")
    metric: Keyword = Field(
        JOINED, min_length=1, max_length=512, description="the metric; `_machine`: the machine as a whole"
    )
    start: Date = Field(alias="event.start", description="first instant it speaks of")
    end: Date | None = Field(None, alias="event.end", description="last instant it speaks of")
    time: Date | None = Field(
        None, alias="event.created", description="event time at which it was said; absent: the last that it speaks of"
    )
    verdict: LabelVerdict = Field(description="what it was")
    note: Prose = Field("", max_length=4_096, description="in the operator's words")

    @field_validator("metric")
    @classmethod
    def _whole(cls, metric: str) -> str:
        """All metrics of a machine, as a rule's glob names them, are the machine as a whole."""
        return JOINED if metric == "*" else metric

    @property
    def said(self) -> int:
        """The event time from which on it takes effect."""
        if self.time is not None:
            return self.time
        return self.start if self.end is None else self.end

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.end is not None and self.end < self.start:
            raise ValueError("event.end lies before event.start; accepted: the same instant or a later one")
        return self
