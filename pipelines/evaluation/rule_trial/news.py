"""Reads stored verdicts with all that alarms and incidents follow from: of news, of open incidents, of high scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from elasticsearch import Elasticsearch
from elasticsearch.helpers import scan

from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.globs import wildcard
from pipelines.contracts.records import Novelty
from pipelines.contracts.records.novelty import NEWS_KINDS
from pipelines.contracts.settings import Settings
from pipelines.evaluation.comparison.verdicts import SCHEMA, WINDOW
from pipelines.evaluation.rule_trial.stored import (
    MOST,
    Stored,
    any_of,
    begin_of,
    in_time,
    incidents_of,
    refuse_more_than,
)

_PAGE = 5_000
_MORE = ("metric_kind", "template", "example", "reported_by", "probability")
_OF_CONTEXT = ("values", "watched", "metrics", "inherited")
_FIELDS: dict[str, Any] = {
    **SCHEMA,
    **dict.fromkeys(("metric_kind", "template", "example"), pl.String),
    "changed_by_rule": pl.Boolean,
    **dict.fromkeys(_OF_CONTEXT, pl.Float64),
}
NEWS = pl.Schema(_FIELDS)
"""The columns of `SCHEMA`, those that incidents need, and how much was known of a series at its news."""


def stored_news(
    settings: Settings,
    start: int,
    end: int,
    what: str,
    series: Sequence[tuple[str, str]] = (("*", "*"),),
    score: float | None = None,
    before: int = 0,
    most: int = MOST,
) -> Stored:
    """The stored verdicts of a time: news, windows of incidents that were reported, and perhaps those of high scores.

    Args:
        settings: The settings, with the servers' addresses filled in.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        what: What is tried, for errors.
        series: Globs of machine and metric, of which one has to match both.
        score: Also windows of this score or a higher one.
        before: For so long before the start, milliseconds, news only.
        most: So many verdicts are read at most.

    Raises:
        NewnormalError: ``VERSION_EMPTY`` if no verdict of that time is stored; ``USAGE_INVALID`` if there are more than
            ``most``.
        elasticsearch.ApiError: Elasticsearch refuses; a `TransportError` if it does not answer.
    """
    globs = [] if ("*", "*") in series else [any_of([_matches(*pair) for pair in series])]
    news: list[dict[str, Any]] = [{"terms": {"kind": list(NEWS_KINDS)}}, {"term": {"incident.state": "closed"}}]
    more: list[dict[str, Any]] = [{"exists": {"field": "incident.state"}}]
    more += [{"range": {"record_score": {"gte": score}}}] if score is not None else []
    recent = {"bool": {"filter": [*in_time(start, end), any_of([*news, *more])]}}
    times = (
        any_of([recent, {"bool": {"filter": [*in_time(start - before, start + 1), any_of(news)]}}])
        if before
        else recent
    )
    query = {"bool": {"filter": [*globs, times]}}
    with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=60) as client:
        there: dict[str, Any] = {"index": settings.alias, "ignore_unavailable": True, "allow_no_indices": True}
        began = begin_of(client, there, in_time(start, end), what)
        refuse_more_than(most, int(client.count(**there, query=query)["count"]), what)
        incidents = incidents_of(client, start, end, settings, what)
        rows = list(_rows(client, settings.alias, query))
    verdicts = pl.DataFrame(rows, NEWS, orient="row")
    verdicts = verdicts.sort(*WINDOW, "revision").unique(WINDOW, keep="last", maintain_order=True)
    return Stored(verdicts, incidents, began, None, False)


def _matches(entity: str, metric: str) -> dict[str, Any]:
    """A clause that holds for the series that two globs match."""
    names = {"host.name": entity, "metric": metric}
    return {"bool": {"filter": [{"wildcard": {name: {"value": wildcard(glob)}}} for name, glob in names.items()]}}


def _rows(client: Elasticsearch, index: str, query: dict[str, Any]) -> Iterator[list[Any]]:
    """The documents as rows of `NEWS`."""
    names = [Novelty.model_fields[name].alias or name for name in SCHEMA]
    more = [Novelty.model_fields[name].alias or name for name in _MORE]
    source = [*names, *more, "rules", *(f"context.{name}" for name in _OF_CONTEXT)]
    found = scan(
        client, {"query": query}, index=index, source=source, size=_PAGE, ignore_unavailable=True, allow_no_indices=True
    )
    for document in found:
        fields = document["_source"]
        kind, template, example, reported_by, probability = (fields.get(name) for name in more)
        muted = bool(fields.get("rules")) and probability == 1.0
        context = fields.get("context") or {}
        known = [fields.get(name) for name in names]
        known[-1] = known[-1] or 0
        yield [
            *known,
            kind,
            template,
            example,
            muted or bool(reported_by),
            *(context.get(name) for name in _OF_CONTEXT),
        ]
