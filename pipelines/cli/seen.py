"""Checks that a rule or label names machines and metrics that exist: that verdicts in Elasticsearch have them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import typer
from elastic_transport import TransportError
from elasticsearch import ApiError, Elasticsearch

from deploy.embedded import services
from engine.printing import visible
from pipelines.cli.hints import hint
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.globs import wildcard
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import Settings

_SECONDS = 5.0
_NAMES = 1_000
_ANY = ("*", JOINED)
RULE = "it applies as soon as there is one"
LABEL = "on a series that the detector does not know it has no effect, also not later"


def warn_if_unseen(settings: Settings, entity: str, metric: str, otherwise: str = RULE) -> None:
    """Warns on standard error if no verdict has such a machine and metric, or if that could not be looked up.

    Args:
        settings: The settings; they name Elasticsearch, else the embedded server that runs is asked.
        entity: Glob over machines.
        metric: Glob over metrics; `*` and `_machine` match a metric of every machine.
        otherwise: What follows if there is really none.
    """
    if entity == "*" and metric in _ANY:
        return
    running = services.status(settings)
    quiet = "" if settings.detector.emit == "all" else _QUIET
    url = settings.elasticsearch.url or (running.endpoints.elasticsearch_url if running else "")
    if warning := _unseen(url, settings.alias, entity, metric, otherwise) if url else _UNCHECKED:
        more = "" if warning == _UNCHECKED else quiet.removeprefix("." if warning.endswith("?") else "")
        typer.echo(f"warning: {visible(hint(warning + more))}", err=True)


_QUIET = (
    ". Quiet series are not stored (detector.emit), so it may exist all the same: `newnormal query states` lists what "
    "`newnormal view` knows"
)
_UNCHECKED = "it could not be checked whether such a machine exists: Elasticsearch does not answer"


def _unseen(url: str, index: str, entity: str, metric: str, follows: str) -> str | None:
    try:
        with elasticsearch_client(url, request_timeout=_SECONDS, max_retries=0) as client:
            machines = [{"wildcard": {"host.name": {"value": wildcard(entity)}}}]
            if not _count(client, index, machines):
                names = _names(client, index)
                close = get_close_matches(entity, names, 1)
                there = f"there is no verdict on a machine {entity} yet; {follows}"
                return f"{there}; did you mean {close[0]}?" if close else there
            if metric in _ANY or _count(
                client, index, [*machines, {"wildcard": {"metric": {"value": wildcard(metric)}}}]
            ):
                return None
            return f"there is no verdict on a metric {metric} of {entity} yet; {follows}"
    except (TransportError, ApiError):
        return _UNCHECKED


def _count(client: Elasticsearch, index: str, clauses: list[dict[str, Any]]) -> int:
    query = {"bool": {"filter": clauses}}
    return int(client.count(index=index, query=query, ignore_unavailable=True, terminate_after=1)["count"])


def _names(client: Elasticsearch, index: str) -> list[str]:
    groups = {"names": {"terms": {"field": "host.name", "size": _NAMES}}}
    reply = client.search(index=index, size=0, aggs=groups, ignore_unavailable=True)
    return [bucket["key"] for bucket in reply.get("aggregations", {}).get("names", {}).get("buckets", [])]
