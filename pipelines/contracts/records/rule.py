"""A rule: an operator's instruction to the detector, given in advance."""

from __future__ import annotations

from datetime import date
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from engine.spec.record import Date, Finite, Record
from pipelines.contracts.globs import Glob
from pipelines.contracts.records.zone import Zone
from pipelines.contracts.week_times import ACCEPTED, WeekTimes

EFFECTS = ("skip_result", "skip_learning", "report", "weekend", "only", "min_change", "min_change_share", "store")


def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


Day = Annotated[str, AfterValidator(_day)]


def _week_times(text: str) -> str:
    try:
        return _WEEK_TIMES.validate_python(text)
    except ValueError:
        raise ValueError(f"no times of the week; accepted: {ACCEPTED}") from None


_WEEK_TIMES: TypeAdapter[str] = TypeAdapter(WeekTimes)
Times = Annotated[str, AfterValidator(_week_times)]


class Rule(Record):
    """An operator's instruction to the detector: the `rules` topic (JSON); see docs/rules.md.

    A rule applies to windows that overlap the time in which it is in force and match its globs (`*` and `?`), dates,
    times and values. The other fields say what the detector then does. A newer version of a rule (a record with the
    same id) replaces the older one from the start of the newer one on; and at once, if the older one has not begun by
    then.
    """

    identity: ClassVar[tuple[str, ...]] = ("id", "time")

    id: str = Field(min_length=1, max_length=256, description="name of the rule")
    time: Date = Field(alias="@timestamp", description="event time at which this version was given")
    active: bool = Field(True, description="`false`: the rule is withdrawn")
    entity: Glob = Field("*", alias="host.name", description="glob over machines")
    metric: Glob = Field("*", description="glob over metrics; `*` also matches the joined verdict, `_machine`")
    start: Date | None = Field(
        None, alias="event.start", description="in force from this instant, but not before `time`; absent: from `time`"
    )
    end: Date | None = Field(
        None, alias="event.end", description="in force before this instant; absent: until the rule is withdrawn"
    )
    dates: list[Day] = Field(
        default_factory=list, max_length=1_000, description="applies only on these days, YYYY-MM-DD; empty: on all days"
    )
    times: Times = Field(
        "",
        max_length=512,
        description="applies only to windows that begin at these times of the week, e.g. `02:00-03:00` or "
        "`mon-fri 08:00-18:00, sat`; empty: at all times",
    )
    timezone: Zone = Field("UTC", description="IANA name of the time zone of the days and times")
    above: Finite | None = Field(None, description="applies only to values above this one")
    below: Finite | None = Field(None, description="applies only to values below this one")
    skip_result: bool = Field(False, description="do not report the windows")
    skip_learning: bool = Field(False, description="do not learn from the windows")
    report: bool = Field(False, description="report the windows as an anomaly, whatever their score")
    weekend: bool = Field(False, description="treat the windows as those of a weekend: for holidays")
    only: Literal["up", "down"] | None = Field(
        None, description="report only values above (`up`) or below (`down`) the typical one"
    )
    min_change: Finite | None = Field(
        None, ge=0, description="report only values that differ from the typical one by this much or more"
    )
    min_change_share: Finite | None = Field(
        None, ge=0, description="the same as `min_change`, as a share of the typical value: 0.1 is 10 %"
    )
    store: bool = Field(
        False, description="write the verdicts on all windows, also those that `detector.emit = context` leaves out"
    )
    note: str = Field("", max_length=4_096, description="the operator's reason")

    @property
    def effective_from(self) -> int:
        """The event time at which this version was given, epoch milliseconds; the rule has no effect before."""
        return self.time

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.end is not None and self.end <= max(self.time, self.time if self.start is None else self.start):
            raise ValueError("event.end lies before the rule is in force; accepted: a later instant")
        if self.active and not any(getattr(self, name) not in (None, False) for name in EFFECTS):
            raise ValueError(f"the rule has no effect; accepted: at least one of {', '.join(EFFECTS)}")
        if self.above is not None and self.below is not None and self.above >= self.below:
            raise ValueError("no value is above `above` and below `below`; accepted: above < below")
        return self
