"""What operators tell the detector in advance."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.record import Finite, Instant, Record


class Rule(Record):
    """What operators tell the detector in advance. Fields only: rules take effect in a later release."""

    identity: ClassVar[tuple[str, ...]] = ("id",)

    id: str = Field(description="name of the rule")
    entity: str = Field("*", alias="host.name", description="glob over machines")
    metric: str = Field("*", description="glob over metrics")
    start: Instant | None = Field(None, alias="event.start", description="in force from this event time")
    end: Instant | None = Field(None, alias="event.end", description="in force until this event time")
    skip_result: bool = Field(False, description="report nothing that matches")
    skip_learning: bool = Field(False, description="learn nothing from what matches")
    above: Finite | None = Field(None, description="applies to values above this only")
    below: Finite | None = Field(None, description="applies to values below this only")
