"""The addresses of the servers, which is all that a client needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the supervisor of the servers, which has no settings, starts sooner without
    from pipelines.contracts.settings import Settings


@dataclass(frozen=True)
class Endpoints:
    """Addresses of the servers; empty for a server that was not asked for.

    Args:
        bootstrap: ``host:port`` of a Kafka broker.
        elasticsearch_url: ``http://host:port`` of an Elasticsearch node.
    """

    bootstrap: str = ""
    elasticsearch_url: str = ""

    def settings(self, settings: Settings) -> Settings:
        """``settings`` with these addresses filled in, so that whoever gets them starts no servers of its own."""
        kafka = settings.kafka.model_copy(update={"bootstrap": self.bootstrap or settings.kafka.bootstrap})
        url = self.elasticsearch_url or settings.elasticsearch.url
        elasticsearch = settings.elasticsearch.model_copy(update={"url": url})
        return settings.model_copy(update={"kafka": kafka, "elasticsearch": elasticsearch})
