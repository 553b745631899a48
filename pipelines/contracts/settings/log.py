"""The settings of the log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.contracts.settings.section import Section


class LogSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest level that is logged")
    format: Literal["text", "json"] = Field("text", description="`text`: lines for people; `json`: one object per line")
