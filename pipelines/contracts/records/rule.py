"""What operators tell the detector in advance."""

from __future__ import annotations

from datetime import date
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from engine.spec.record import Date, Finite, Record
from pipelines.contracts.globs import Glob
from pipelines.contracts.records.zone import Zone

EFFECTS = ("skip_result", "skip_learning", "report", "weekend", "only", "min_change", "min_change_share")


def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


Day = Annotated[str, AfterValidator(_day)]


class Rule(Record):
    """What operators tell the detector in advance: the `rules` topic (JSON); see docs/rules.md.

    A rule concerns the windows that overlap its time in force, by its globs (`*` and `?`), dates and values; each other
    field is what is then done. A newer version of an id replaces the older one from its own start on.
    """

    identity: ClassVar[tuple[str, ...]] = ("id", "time")

    id: str = Field(min_length=1, max_length=256, description="name of the rule")
    time: Date = Field(alias="@timestamp", description="event time at which this version was said")
    active: bool = Field(True, description="no: the rule is withdrawn")
    entity: Glob = Field("*", alias="host.name", description="glob over machines")
    metric: Glob = Field("*", description="glob over metrics; `*` also matches the joined verdict, `_machine`")
    start: Date | None = Field(
        None, alias="event.start", description="in force from; absent, or before it: from `time`"
    )
    end: Date | None = Field(None, alias="event.end", description="in force until, exclusive; absent: until withdrawn")
    dates: list[Day] = Field(
        default_factory=list, max_length=1_000, description="only on these days, YYYY-MM-DD; empty: on all"
    )
    timezone: Zone = Field("UTC", description="IANA name of the time zone of the days")
    above: Finite | None = Field(None, description="concerns values above this only")
    below: Finite | None = Field(None, description="concerns values below this only")
    skip_result: bool = Field(False, description="report nothing of what it concerns")
    skip_learning: bool = Field(False, description="learn nothing from what it concerns")
    report: bool = Field(False, description="report what it concerns as an anomaly, whatever its score")
    weekend: bool = Field(False, description="hours of these windows count as those of a weekend: for holidays")
    only: Literal["up", "down"] | None = Field(
        None, description="report only values above (up) what is typical, or below"
    )
    min_change: Finite | None = Field(None, ge=0, description="report only values so far from what is typical")
    min_change_share: Finite | None = Field(None, ge=0, description="the same, as a share of what is typical")
    note: str = Field("", max_length=4_096, description="why, in the operator's words")

    @property
    def said(self) -> int:
        """The event time from which on it counts."""
        return self.time

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.end is not None and self.end <= max(self.time, self.time if self.start is None else self.start):
            raise ValueError("event.end lies before the rule is in force; accepted: a later instant")
        if self.active and not any(getattr(self, name) not in (None, False) for name in EFFECTS):
            raise ValueError(f"it does nothing; accepted: at least one of {', '.join(EFFECTS)}")
        if self.above is not None and self.below is not None and self.above >= self.below:
            raise ValueError("no value is above `above` and below `below`; accepted: above < below")
        return self
