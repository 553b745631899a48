"""Looks at all versions: what each is, what it keeps, how far it has read, and which one the alias shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from elasticsearch import ApiError, TransportError

from engine.kafka.unread import unread
from engine.spark.checkpoint_offsets import committed_offsets
from engine.spark.hadoop_path import files
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings
from pipelines.jobs.links import LINKS
from pipelines.jobs.sink.partition import Partition
from pipelines.jobs.sink.read_alias import ReadAlias
from pipelines.runtime import processes
from pipelines.versions.version import Version


@dataclass(frozen=True)
class JobView:
    """One job of a version.

    Attributes:
        name: Its name.
        offsets: The next offset of each partition that it reads, by topic and partition.
        lag: Kafka messages that it has not read yet, as `engine.kafka.unread` counts them.
        state_bytes: Size of its checkpoint on this machine, bytes.
        pid: The process of this machine that runs it; ``None``: none does.
    """

    name: str
    offsets: dict[str, dict[str, int]]
    lag: int
    state_bytes: int
    pid: int | None


@dataclass(frozen=True)
class VersionView:
    """One version at one moment.

    Attributes:
        version: The version.
        shown: True if readers see it; ``None`` if Elasticsearch does not answer.
        documents: Number of its documents; ``None`` as above.
        index_bytes: Size of its indices, bytes; ``None`` as above.
        jobs: Its jobs.
    """

    version: Version
    shown: bool | None
    documents: int | None
    index_bytes: int | None
    jobs: tuple[JobView, ...] = field(default_factory=tuple)

    @property
    def lag(self) -> int:
        """Kafka messages that its jobs have not read yet."""
        return sum(job.lag for job in self.jobs)

    @property
    def pids(self) -> list[int]:
        """The processes of this machine that run its jobs."""
        return sorted({job.pid for job in self.jobs if job.pid is not None})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.version.model_dump(),
            **{name: value for name, value in asdict(self).items() if name != "version"},
        }


def view(version: Version, settings: Settings) -> VersionView:
    """Looks at one version.

    Args:
        version: The version.
        settings: The settings, with the servers' addresses filled in.

    Raises:
        KafkaException: Kafka does not answer; a `TimeoutError` if it takes too long.
    """
    mine = settings.of(version.names)
    bootstrap = settings.kafka.bootstrap or ""
    running = {
        job: each.pid for each in processes.job_processes(settings) if each.version == version.name for job in each.jobs
    }

    def seen(name: str) -> JobView:
        checkpoint = mine.folder("checkpoints") / name
        offsets = committed_offsets(checkpoint)
        lag = unread(bootstrap, LINKS[name].reads(mine), offsets)
        return JobView(name, offsets, lag, _bytes(checkpoint), running.get(name))

    names = [name for name in version.jobs if LINKS[name].runs(mine)]
    with ThreadPoolExecutor(len(names) or 1) as at_once:  # each waits for answers of Kafka most of the time
        jobs = list(at_once.map(seen, names))
    shown, documents, size = _stored(mine)
    return VersionView(version, shown, documents, size, tuple(jobs))


def shown(version: Version, settings: Settings) -> bool | None:
    """Whether readers see a version; ``None`` if Elasticsearch does not answer.

    Args:
        version: The version.
        settings: The settings, with the servers' addresses filled in.
    """
    client = elasticsearch_client(settings.elasticsearch.url or "", request_timeout=10, max_retries=0)
    try:
        return ReadAlias(client, settings.alias).shows(settings.of(version.names).index)
    except (ApiError, TransportError):
        return None
    finally:
        client.close()


def _stored(settings: Settings) -> tuple[bool | None, int | None, int | None]:
    """Whether the alias shows a version, the number of its documents, and their size in bytes."""
    client = elasticsearch_client(settings.elasticsearch.url or "", request_timeout=10, max_retries=0)
    patterns = ",".join(Partition(settings.index, 0).patterns)
    try:
        shown = ReadAlias(client, settings.alias).shows(settings.index)
        total = client.indices.stats(index=patterns, metric="docs,store")["_all"]["total"]
    except (ApiError, TransportError):
        return None, None, None
    finally:
        client.close()
    return shown, total.get("docs", {}).get("count", 0), total.get("store", {}).get("size_in_bytes", 0)


def _bytes(folder: Path) -> int:
    """Size of the files below a folder; files that vanish meanwhile do not count."""
    total = 0
    for file in files(folder):
        try:
            total += file.stat().st_size
        except OSError:
            continue
    return total
