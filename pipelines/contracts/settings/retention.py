"""The settings of how long what is kept."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Length, OptionalLength
from pipelines.contracts.settings.section import Section


class RetentionSettings(Section):
    indices: OptionalLength = Field(
        None, description="how long the sink's indices are kept, by event time; empty: for ever"
    )
    archive: OptionalLength = Field(
        None, description="how long the days of the archive are kept, by event time; empty: for ever"
    )
    late: OptionalLength = Field(
        None, description="how long Kafka keeps the topics of late records; empty: as long as `kafka.retention`"
    )
    every: Length = Field("1h", description="time between two looks of a running pipeline for what is too old")
