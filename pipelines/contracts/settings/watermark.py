"""The settings of the watermark."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Duration, Length, Time
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
