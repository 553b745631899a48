"""The settings of the embedded servers."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Heap, ListenAddress
from pipelines.contracts.settings.section import Section


class EmbeddedSettings(Section):
    address: ListenAddress = Field(
        "127.0.0.1",
        description="address on which the embedded servers listen; they have no login, so name another one only where "
        "a firewall or a container's network lets nobody else in",
    )
    kafka_heap: Heap = Field("512m", description="heap of the embedded Kafka broker")
    elasticsearch_heap: Heap = Field("768m", description="heap of the embedded Elasticsearch node")
