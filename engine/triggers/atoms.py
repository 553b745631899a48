"""The basic triggers, from which composite triggers are made."""

from __future__ import annotations

from dataclasses import dataclass

from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError
from engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterWatermark(Trigger):
    """Fires when the watermark passes the end of the window: the *on-time* pane, which comes even without new records.

    Args:
        early: Trigger for panes before that.
        late: Trigger for panes after that; by default the end of each micro-batch with late records.
    """

    early: Trigger | None = None
    late: Trigger | None = None

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The early and the late trigger."""
        return tuple(part for part in (self.early, self.late) if part is not None)


@dataclass(frozen=True)
class AfterProcessingTime(Trigger):
    """Fires at each multiple of ``period`` in processing time, if there was a record since it last fired.

    Args:
        period: A duration.
        aligned: False: fires ``period`` after the first record of the pane instead.

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
    """Fires as soon as ``n`` records have come since the window last fired.

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
    """Never fires: the one result of the window comes when its allowed lateness is over."""
