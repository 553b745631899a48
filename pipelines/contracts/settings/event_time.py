"""The settings of event time: the watermark and the windows of features."""

from __future__ import annotations

from pydantic import Field

from engine.spec.duration import duration_ms
from pipelines.contracts.setting_types import Duration, Length, OptionalLength, Time
from pipelines.contracts.settings.section import Section


class WatermarkSettings(Section):
    out_of_orderness: Duration = Field("5s", description="how far records of one input partition may be out of order")
    idle_after: Length = Field(
        "10s", description="a partition without records for this long no longer holds the watermark back"
    )
    max_ahead: Duration = Field("1m", description="how far an event time may lie after its record's arrival at Kafka")
    earliest: Time = Field(
        "2000-01-01T00:00:00Z", description="records with an earlier event time are rejected: a wrong clock"
    )


class WindowSettings(Section):
    size: Length = Field("10s", description="length of the feature windows")
    every: OptionalLength = Field(
        None, description="slide of the windows, a divisor of the size; empty: tumbling windows"
    )
    allowed_lateness: Duration = Field(
        "10m", description="how far the watermark may be past a window's end while late records still revise it"
    )

    @property
    def size_ms(self) -> int:
        """Length of a window, milliseconds."""
        return duration_ms(self.size)

    @property
    def step(self) -> str:
        """Time between the ends of two windows of a series: their slide, or their size if they do not overlap."""
        return self.every or self.size

    @property
    def step_ms(self) -> int:
        """The same, milliseconds."""
        return duration_ms(self.step)

    @property
    def lateness_ms(self) -> int:
        """How far the watermark may be past a window's end while late records still revise it, milliseconds."""
        return duration_ms(self.allowed_lateness)

    @property
    def open_for_ms(self) -> int:
        """How long a window may still change after it began, in event time: its length and the allowed lateness."""
        return self.size_ms + self.lateness_ms
