"""What the checks look at: the settings with the servers' addresses, the processes that run jobs, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from elasticsearch import Elasticsearch

from engine.clock import now_ms
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings
from pipelines.doctor.tails import Tails, tails
from pipelines.jobs.links import LINKS
from pipelines.runtime.processes import JobProcess

_SECONDS = 10.0


@dataclass(frozen=True)
class Context:
    """What the checks look at.

    Attributes:
        settings: The settings, with the addresses of servers that run filled in.
        processes: The processes of this machine that run jobs of the state directory and namespace.
        clock: The present, epoch milliseconds.
    """

    settings: Settings
    processes: Sequence[JobProcess] = ()
    clock: Callable[[], int] = field(default=now_ms)

    @property
    def bootstrap(self) -> str:
        """Address of Kafka; empty: none is known."""
        return self.settings.kafka.bootstrap or ""

    @property
    def url(self) -> str:
        """Address of Elasticsearch; empty: none is known."""
        return self.settings.elasticsearch.url or ""

    @property
    def checkpoints(self) -> Path:
        """Directory of the jobs' checkpoints."""
        return self.settings.folder("checkpoints")

    @property
    def jobs(self) -> list[str]:
        """Names of the jobs that a start without names would run."""
        return [name for name, link in LINKS.items() if link.runs(self.settings)]

    @cached_property
    def elasticsearch(self) -> Elasticsearch:
        """A client that asks once, and waits some seconds for the answer."""
        return elasticsearch_client(self.url, request_timeout=_SECONDS, max_retries=0)

    @cached_property
    def tails(self) -> Tails:
        """The last messages of each partition of the agents' topics."""
        return tails(self.bootstrap, [self.settings.reads(name) for name in topics.FROM_AGENTS])

    def runs(self, job: str) -> bool:
        """Whether a process of this machine runs a job of the version that the settings name."""
        return any(job in each.jobs and each.version == self.settings.version for each in self.processes)

    def close(self) -> None:
        """Closes the connections."""
        if "elasticsearch" in self.__dict__:
            self.elasticsearch.close()
