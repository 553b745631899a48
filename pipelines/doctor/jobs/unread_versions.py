"""Checks that each version of the chain has readers."""

from __future__ import annotations

from engine.kafka.admin import partition_counts
from pipelines.contracts import topics
from pipelines.contracts.quantities.cells import size
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.jobs.links import LINKS
from pipelines.versions.overview import view
from pipelines.versions.registry import Registry

_UNREAD = subject("Jobs")(
    "VERSION_UNREAD",
    Severity.NOTE,
    "readers do not see a version, and no other version builds on it, but it keeps topics, indices and state",
    "`newnormal promote` shows it to readers; `newnormal retire` frees what it keeps (replay.md)",
)


def unread_versions(context: Context) -> list[Finding]:
    """Finds versions that the alias does not show and on which no other version builds."""
    registry = context.settings.topic(topics.VERSIONS)
    if registry not in partition_counts(context.bootstrap, [registry], timeout=10.0):
        return []  # the registry would create its topic
    versions = Registry(context.settings).all()
    if len(versions) < 2:
        return []
    needed = {name for each in versions.values() for name in each.sources.values()}
    findings = []
    for name, version in versions.items():
        seen, mine = view(version, context.settings), context.settings.of(version.names)
        written = {topic for job in version.jobs for topic in LINKS[job].writes(mine)}
        kept = (seen.index_bytes or 0) + sum(job.state_bytes for job in seen.jobs)
        keeps = kept or partition_counts(context.bootstrap, written, timeout=10.0)  # neither: it was never started
        if seen.shown is False and name not in needed and keeps:
            running = f", and process {', '.join(map(str, seen.pids))} runs it" if seen.pids else ""
            what = f"nobody reads {name}: {seen.documents or 0:,} documents, {size(kept)} of indices and state{running}"
            findings.append(Finding(_UNREAD, what, name))
    return findings
