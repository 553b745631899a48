"""The settings of the windows of features."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Duration, Length, OptionalLength
from pipelines.contracts.settings.section import Section


class WindowSettings(Section):
    size: Length = Field("10s", description="length of the feature windows")
    every: OptionalLength = Field(
        None, description="slide of the windows, a divisor of the size; empty: tumbling windows"
    )
    allowed_lateness: Duration = Field(
        "10m", description="how far the watermark may be past a window's end while late records still revise it"
    )
