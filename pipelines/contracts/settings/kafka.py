"""The settings of Kafka."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Brokers, Length, Whole
from pipelines.contracts.settings.section import Section


class KafkaSettings(Section):
    bootstrap: Brokers = Field(None, description="host:port of a Kafka broker; empty: the embedded one")
    partitions: Whole = Field(
        4, ge=1, le=1024, description="partitions of each topic that Newnormal creates; a multiple of engine.shards"
    )
    replication: Whole = Field(1, ge=1, le=7, description="replicas of each topic that Newnormal creates")
    retention: Length = Field(
        "7d",
        description="how long Kafka keeps messages; rules, labels and versions are kept for ever. A start changes "
        "existing topics to a value that was given, but not to the default",
    )
