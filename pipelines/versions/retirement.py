"""Frees what a version keeps: topics, indices, checkpoints and ledgers. What other versions read stays."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from elasticsearch import Elasticsearch

from engine.kafka.admin import delete_groups, delete_topics
from engine.kafka.exactly_once import ledger_group
from engine.spark.hadoop_path import delete
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings
from pipelines.jobs.links import LINKS
from pipelines.jobs.sink.partition import Partition
from pipelines.jobs.sink.read_alias import ReadAlias, template_name
from pipelines.runtime.ownership import Ownership
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version


@dataclass(frozen=True)
class Retirement:
    """What the retirement of a version frees and keeps.

    Attributes:
        version: The version.
        freed: Names of the jobs that end.
        kept: Names of the jobs that stay, as other versions read what they write.
        topics: Full names of the topics that are deleted.
        indices: Patterns of the indices that are deleted; empty if the sink stays.
    """

    version: Version
    freed: tuple[str, ...]
    kept: tuple[str, ...]
    topics: tuple[str, ...]
    indices: tuple[str, ...]


def planned(version: Version, others: Iterable[Version], settings: Settings) -> Retirement:
    """Says what the retirement of a version would free.

    Args:
        version: The version.
        others: All other versions.
        settings: The settings.

    Raises:
        NewnormalError: ``VERSION_NEEDED`` if other versions read what each of its jobs writes.
    """
    others = [other for other in others if other.name != version.name]
    kept = _needed(version, others)
    freed = tuple(name for name in version.jobs if name not in kept)
    if not freed:
        readers = ", ".join(other.name for other in others if version.name in other.sources.values())
        what = f"{readers} reads what every job of {version.name} writes"
        accepted = f"`newnormal retire {readers}` first"
        raise NewnormalError("VERSION_NEEDED", what, "newnormal retire", accepted, "nothing was deleted")
    mine = settings.of(version.names)
    staying = {topic for name in kept for topic in LINKS[name].outputs} | ({topics.DEADLETTER} if kept else set())
    leaving = {topic for name in freed for topic in LINKS[name].outputs} | {topics.DEADLETTER}
    named = tuple(sorted(mine.writes(topic) for topic in leaving - staying))
    indices = _patterns(mine) if "sink" in freed else ()
    return Retirement(version, freed, kept, named, indices)


def retire(plan: Retirement, registry: Registry, settings: Settings) -> None:
    """Deletes what a plan says; a repetition completes a retirement that was interrupted.

    Args:
        plan: What is freed and kept.
        registry: Where the version is forgotten, or stays with the jobs that are kept.
        settings: The settings, with the servers' addresses filled in.

    Raises:
        NewnormalError: ``VERSION_SHOWN`` if readers see the version; ``ALREADY_RUNNING`` if one of the jobs runs.
    """
    mine, bootstrap = settings.of(plan.version.names), settings.kafka.bootstrap or ""
    checkpoints, ledger = mine.folder("checkpoints"), settings.topic(topics.LEDGER)
    with ExitStack() as stack:
        client = stack.enter_context(_client(settings)) if plan.indices else None
        _refuse_shown(plan, settings, client)
        with Ownership(bootstrap, mine.owner, ledger, checkpoints, plan.freed, take_over=False) as ownership:
            ownership.check_others()
            _refuse_shown(plan, settings, client)  # somebody may have promoted it meanwhile
            if client:
                _delete_indices(client, plan.indices, [template_name(n) for n in (mine.index, mine.incident_index)])
            delete_topics(bootstrap, plan.topics)
            for name in plan.freed:
                delete_groups(bootstrap, ledger_group(f"{mine.owner}{name}"))
                delete(checkpoints / name)
    if plan.kept:
        registry.put(plan.version.model_copy(update={"jobs": plan.kept}))
    else:
        for folder in (checkpoints, mine.folder("job_metrics"), mine.folder("view")):
            delete(folder)
        ownership.forget()
        registry.remove(plan.version.name)


def _client(settings: Settings) -> Elasticsearch:
    return elasticsearch_client(settings.elasticsearch.url or "", request_timeout=30, max_retries=0)


def _refuse_shown(plan: Retirement, settings: Settings, client: Elasticsearch | None) -> None:
    if client and ReadAlias(client, settings.alias).shows(settings.of(plan.version.names).index):
        what = f"the alias {settings.alias} shows {plan.version.name}"
        accepted = "`newnormal promote` of another version first"
        raise NewnormalError("VERSION_SHOWN", what, "newnormal retire", accepted, "nothing was deleted")


def _needed(version: Version, others: Iterable[Version]) -> tuple[str, ...]:
    """The jobs of a version whose output another version reads, and the jobs of the version that these read.

    A job that only one version has stays with the topics that it reads, as the archive, or that another version reads,
    as the places of machines.
    """
    needed = {
        topic
        for other in others
        for job in other.jobs
        for topic in LINKS[job].inputs
        if other.sources.get(topic) == version.name or topic in topics.OF_ALL_VERSIONS
    }
    kept: set[str] = set()
    for name in reversed(version.jobs):  # against the flow of data: readers come before writers
        if needed & set(LINKS[name].outputs):
            kept.add(name)
            needed |= set(LINKS[name].inputs)
    written = {topic for name in kept for topic in LINKS[name].outputs}
    kept |= {name for name in version.jobs if not LINKS[name].replayed and written & set(LINKS[name].inputs)}
    return tuple(name for name in version.jobs if name in kept)


def _patterns(settings: Settings) -> tuple[str, ...]:
    """Patterns of the indices of a version's verdicts and incidents."""
    return tuple(
        pattern for index in (settings.index, settings.incident_index) for pattern in Partition(index, 0).patterns
    )


def _delete_indices(client: Elasticsearch, patterns: Iterable[str], templates: Iterable[str]) -> None:
    for template in templates:
        client.options(ignore_status=404).indices.delete_index_template(name=template)
    names = list(client.indices.get(index=",".join(patterns), allow_no_indices=True))
    for name in names:  # by name: servers may refuse to delete by patterns
        client.options(ignore_status=404).indices.delete(index=name)
