"""The settings of an agent's buffer."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import DiskSize, Length
from pipelines.contracts.settings.section import Section


class BufferSettings(Section):
    size: DiskSize = Field("256m", description="disk space for samples that an agent keeps while Kafka does not answer")
    age: Length = Field("1d", description="how long an agent keeps a sample; it drops older ones and says so")
