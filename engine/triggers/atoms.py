"""The triggers that others are made of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError
from engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterWatermark(Trigger):
    """When the watermark passes the window's end: its *on-time* pane, which comes even if it brings nothing new.

    Args:
        early: Fires speculative panes before that.
        late: Fires revisions after that; by default at the end of each micro-batch that brought late records.
    """

    early: Trigger | None = None
    late: Trigger | None = None

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """Its early and its late trigger."""
        return tuple(part for part in (self.early, self.late) if part is not None)


@dataclass(frozen=True)
class AfterProcessingTime(Trigger):
    """In processing time, at each multiple of ``period``; not if there was no record since the last one.

    Args:
        period: A duration.
        aligned: If not, ``period`` after the first record of the pane instead.

    Raises:
        NewnormalError: ``TRIGGER_INVALID`` if the period is not above 0.
    """

    period: DurationField = DurationField("trigger.period")
    aligned: bool = True

    def __post_init__(self) -> None:
        if self.period_ms <= 0:
            raise NewnormalError("TRIGGER_INVALID", f"{self.period} is no period", "trigger", "a duration above 0")

    @property
    def period_ms(self) -> int:
        """`period` in milliseconds."""
        return int(self.period)


@dataclass(frozen=True)
class AfterCount(Trigger):
    """As soon as ``n`` records have come since the window last fired.

    Raises:
        NewnormalError: ``TRIGGER_INVALID`` if ``n`` is below 1.
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise NewnormalError("TRIGGER_INVALID", f"cannot count to {self.n}", "trigger", "1 or more")

    @property
    def by_record(self) -> bool:
        """True: this trigger counts records."""
        return True


@dataclass(frozen=True)
class Never(Trigger):
    """Not at all: the window's one result comes when its allowed lateness is over."""
