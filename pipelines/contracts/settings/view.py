"""The settings of the state view."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import ListenHost, Names, Whole
from pipelines.contracts.settings.section import Section


class ViewSettings(Section):
    host: ListenHost = Field("127.0.0.1", description="address on which the state view listens")
    port: Whole = Field(8890, ge=0, le=65535, description="port of the state view; if taken, the next free one is used")
    hosts: Names = Field(
        "", description="further host names under which the state view is reached, separated by commas; `*`: any"
    )
    windows: Whole = Field(
        240, ge=1, le=100_000, description="how many of the last windows of each series the state view keeps"
    )
