"""The base of the sections of settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Settings with a common first part of their names; they do not change, and unknown names are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
