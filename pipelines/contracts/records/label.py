"""A label: an operator's judgement of a novelty, given afterwards."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from engine.spec.record import Date, Keyword, Prose, Record
from pipelines.contracts.records.novelty import JOINED

LabelVerdict = Literal["true", "false_alarm", "expected_change", "new_normal"]

WEIGHED = ("false_alarm", "true")
"""The labels that change what evidence counts; the others accept a level."""


class Label(Record):
    """An operator's judgement of a novelty: the `labels` topic (JSON), kept for evaluation; see docs/rules.md.

    A label adjusts the model of its series from the label's event time on; it does not change earlier verdicts. If a
    novelty has several labels, evaluation uses the last one.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "start")

    entity: Keyword = Field(alias="host.name", min_length=1, max_length=512, description="the machine")
    metric: Keyword = Field(
        JOINED, min_length=1, max_length=1_024, description="the metric; `_machine`: the machine as a whole"
    )
    start: Date = Field(alias="event.start", description="first instant of the labelled time")
    end: Date | None = Field(None, alias="event.end", description="last instant of the labelled time")
    time: Date | None = Field(
        None,
        alias="event.created",
        description="event time at which the label was given; absent: the last instant of the labelled time",
    )
    verdict: LabelVerdict = Field(description="what the novelty was")
    note: Prose = Field("", max_length=4_096, description="a remark of the operator")

    @field_validator("metric")
    @classmethod
    def _whole(cls, metric: str) -> str:
        """Reads the metric `*`, with which rules name all metrics of a machine, as the machine as a whole."""
        return JOINED if metric == "*" else metric

    @property
    def effective_from(self) -> int:
        """The event time from which on the label takes effect, epoch milliseconds."""
        if self.time is not None:
            return self.time
        return self.start if self.end is None else self.end

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.end is not None and self.end < self.start:
            raise ValueError("event.end lies before event.start; accepted: the same instant or a later one")
        return self
