"""The settings of the embedded servers."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Broker, FilePath, Heap, ListenAddress
from pipelines.contracts.settings.section import Section


class EmbeddedSettings(Section):
    address: ListenAddress = Field(
        "127.0.0.1",
        description="address on which the embedded servers listen; they have no TLS and Kafka has no login, so name "
        "another one only where a firewall or a container's network lets nobody else in",
    )
    kafka_published: Broker = Field(
        None,
        description="host:port at which clients elsewhere find Kafka, if its port 29092 is opened to them there, as a "
        "container's port is; empty: there is no such port",
    )
    kafka_heap: Heap = Field("512m", description="heap of the embedded Kafka broker")
    elasticsearch_heap: Heap = Field("768m", description="heap of the embedded Elasticsearch node")
    elasticsearch_login: bool = Field(
        True,
        description="whether the embedded Elasticsearch wants a password, which all commands with the same state "
        "directory know by themselves; without one, web pages may change its indices",
    )
    elasticsearch_password_file: FilePath = Field(
        "",
        description="file with that password in one line; empty: one is generated in `elasticsearch.password` of the "
        "state directory",
    )
