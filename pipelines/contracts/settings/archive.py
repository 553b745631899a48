"""The settings of the archive."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Length, OptionalFolder
from pipelines.contracts.settings.section import Section


class ArchiveSettings(Section):
    path: OptionalFolder = Field(
        None, description="folder of the archive of `telemetry` and `logs` as Parquet files; empty: no archive"
    )
    every: Length = Field("1m", description="time between two writes to the archive; longer: fewer and larger files")
