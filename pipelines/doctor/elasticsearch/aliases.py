"""Checks that each alias shows one version of the documents."""

from __future__ import annotations

from elasticsearch import NotFoundError

from pipelines.doctor.context import Context
from pipelines.doctor.elasticsearch.indices import stored
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.jobs.sink.partition import Partition
from pipelines.jobs.sink.read_alias import ReadAlias

_kind = subject("Elasticsearch")
_TAKEN = _kind(
    "INDEX_NAME_TAKEN",
    Severity.BROKEN,
    "an index has the name of the alias: the sink does not start",
    "choose another `elasticsearch.index`, or delete that index",
)
_NONE = _kind(
    "ALIAS_EMPTY",
    Severity.BROKEN,
    "there are indices with documents, but the alias shows none: console, Kibana and Grafana are empty",
    "`newnormal promote v1`, or the version that readers are to see",
)
_SEVERAL = _kind(
    "ALIAS_SHOWS_SEVERAL",
    Severity.BROKEN,
    "the alias shows indices of several versions: each anomaly is seen more than once",
    "`newnormal promote` of the version that readers are to see; a repetition completes it",
)


def aliases(context: Context) -> list[Finding]:
    """Finds aliases that show nothing although there are documents, or more than one version, or are an index."""
    findings = []
    client, first = context.elasticsearch, context.settings
    for alias, base, _ in stored(first):
        try:
            if alias in client.indices.get_alias(index=alias):
                findings.append(Finding(_TAKEN, f"{alias!r} is an index, and cannot be an alias too", alias))
                continue
        except NotFoundError:
            pass
        shown = ReadAlias(client, alias).indices()
        bases = sorted({name.rsplit("-", 1)[0] for name in shown})
        if len(bases) > 1:
            findings.append(Finding(_SEVERAL, f"it shows indices of {', '.join(bases)}", alias))
        there = client.indices.get(index=",".join(Partition(base, 0).patterns), allow_no_indices=True)
        if not shown and there:
            findings.append(Finding(_NONE, f"it shows no index, though there is {min(there)}", alias))
    return findings
