"""Checks the indices that the sink writes: can they be written, have they our mapping, does the alias show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elasticsearch import AuthorizationException, NotFoundError

from engine.spec.record import Record
from pipelines.contracts.elasticsearch_client import reason
from pipelines.contracts.records import Change, Incident, Novelty
from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.contracts.settings import Settings
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.jobs.sink.partition import Partition
from pipelines.jobs.sink.read_alias import ReadAlias, template_name

_kind = subject("Elasticsearch")
_BLOCKED = _kind(
    "INDEX_READ_ONLY",
    Severity.BROKEN,
    "an index that the sink writes has a block that forbids writing: the sink waits",
    "free disk space, then remove the block: `PUT INDEX/_settings {\"index.blocks.read_only_allow_delete\": null}`",
)  # fmt: skip
_CONFLICT = _kind(
    "MAPPING_CONFLICT",
    Severity.BROKEN,
    "a field of an index has another type than its records: the sink does not start, or its documents are refused",
    "another `elasticsearch.index`, or delete that index and write it again by a replay",
)
_OLD = _kind(
    "TEMPLATE_OUTDATED",
    Severity.AT_RISK,
    "the index template was written by another version of Newnormal or changed by hand: new indices get other fields",
    "restart the sink (`newnormal run`), which writes its template",
)
_ABSENT = _kind(
    "TEMPLATE_MISSING",
    Severity.AT_RISK,
    "there are indices, but no index template: the next day's index would get no types and not join the alias",
    "restart the sink (`newnormal run`), which writes its template",
)
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

_FORBIDDEN = _kind(
    "CHANGES_NOT_STORED",
    Severity.AT_RISK,
    "the account lacks privileges for the indices of changes: the sink stores verdicts and incidents only",
    "give the account the index privileges `manage`, `read`, `write` and `view_index_metadata` for them (security.md)",
)  # fmt: skip


def stored(settings: Settings) -> tuple[tuple[str, str, type[Record]], ...]:
    """What the sink stores: alias, first part of the indices' names, and type of the records."""
    return (
        (settings.alias, settings.index, Novelty),
        (settings.incident_alias, settings.incident_index, Incident),
        (settings.change_alias, settings.change_alias, Change),
    )


def indices(context: Context) -> list[Finding]:
    """Finds blocked indices, other mappings, and a template that is missing or not ours."""
    findings: list[Finding] = []
    for _, base, record in stored(context.settings):
        try:
            findings += _of(context, base, record)
        except AuthorizationException as error:
            if record is not Change:
                raise
            findings.append(Finding(_FORBIDDEN, reason(error), f"{base}*"))
    return findings


def _of(context: Context, base: str, record: type[Record]) -> Iterator[Finding]:
    client, ours = context.elasticsearch, mapping(record)
    patterns = ",".join(Partition(base, 0).patterns)
    there = client.indices.get(index=patterns, allow_no_indices=True, flat_settings=True)
    for name, index in sorted(there.items()):
        blocks = [key for key, on in index["settings"].items() if key.startswith("index.blocks.") and on == "true"]
        if blocks:
            yield Finding(_BLOCKED, f"it has {', '.join(blocks)}", name)
        if wrong := _differences(ours["properties"], index["mappings"].get("properties", {})):
            yield Finding(_CONFLICT, "; ".join(wrong), name)
    try:
        kept: Any = client.indices.get_index_template(name=template_name(base))["index_templates"][0]["index_template"]
    except (NotFoundError, IndexError):
        if there:
            yield Finding(_ABSENT, f"{len(there)} indices, no template", template_name(base))
        return
    theirs = kept["template"].get("mappings", {}).get("properties", {})
    if wrong := [*_differences(ours["properties"], theirs), *_unknown(ours["properties"], theirs)]:
        yield Finding(_OLD, "; ".join(wrong), template_name(base))
    elif lacking := _unknown(theirs, ours["properties"]):
        yield Finding(_OLD, "; ".join(f"lacks {text}" for text in lacking), template_name(base))


def _differences(ours: dict[str, Any], there: dict[str, Any], path: str = "") -> list[str]:
    """Fields of both mappings that have another type in the second."""
    differences = []
    for name in sorted(ours.keys() & there.keys()):
        full, mine, theirs = f"{path}{name}", _type(ours[name]), _type(there[name])
        if mine != theirs:
            differences.append(f"{full} is {theirs}, {mine} is needed")
        else:
            inner = (ours[name].get("properties", {}), there[name].get("properties", {}))
            differences += _differences(*inner, path=f"{full}.")
    return differences


def _unknown(ours: dict[str, Any], there: dict[str, Any], path: str = "") -> list[str]:
    """Fields of the second mapping that the first does not have; keys of objects that accept any key are left out."""
    paths = []
    for name in sorted(there):
        if name not in ours:
            paths.append(f"{path}{name}")
        elif ours[name].get("dynamic") != "true":
            inner = (ours[name].get("properties", {}), there[name].get("properties", {}))
            paths += _unknown(*inner, path=f"{path}{name}.")
    return paths


def _type(field: dict[str, Any]) -> str:
    return str(field.get("type", "object"))


def aliases(context: Context) -> list[Finding]:
    """Finds aliases that show nothing although there are documents, or more than one version, or are an index."""
    findings: list[Finding] = []
    for alias, base, record in stored(context.settings):
        try:
            findings += _shown(context, alias, base)
        except AuthorizationException:
            if record is not Change:
                raise  # of changes `indices` says it
    return findings


def _shown(context: Context, alias: str, base: str) -> Iterator[Finding]:
    client = context.elasticsearch
    try:
        if alias in client.indices.get_alias(index=alias):
            yield Finding(_TAKEN, f"{alias!r} is an index, and cannot be an alias too", alias)
            return
    except NotFoundError:
        pass
    shown = ReadAlias(client, alias).indices()
    bases = sorted({name.rsplit("-", 1)[0] for name in shown})
    if len(bases) > 1:
        yield Finding(_SEVERAL, f"it shows indices of {', '.join(bases)}", alias)
    there = client.indices.get(index=",".join(Partition(base, 0).patterns), allow_no_indices=True)
    if not shown and there:
        yield Finding(_NONE, f"it shows no index, though there is {min(there)}", alias)
