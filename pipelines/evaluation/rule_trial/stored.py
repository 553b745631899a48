"""Reads what a rule can change: stored verdicts from Elasticsearch, and windows without one from the topic `features`.

The indices keep the final verdicts for longest. Unless `detector.emit` is ``all``, most quiet windows are not among
them; a rule that reports quiet windows is tried on their values in `features`, as far back as Kafka keeps these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from elasticsearch import Elasticsearch

from engine.kafka.content import content
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.globs import wildcard
from pipelines.contracts.records import Incident, Rule
from pipelines.contracts.records.novelty import JOINED, NEWS_KINDS, UNTIL_FULL
from pipelines.contracts.settings import Settings
from pipelines.evaluation.comparison.reading import indexed
from pipelines.evaluation.comparison.verdicts import SCHEMA, WINDOW, final
from pipelines.jobs.detectors.rules import effects
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.query.recent_windows import windows_of

MOST = 300_000
"""So many verdicts or windows are read at most: it bounds memory and time."""
_INCIDENTS = 10_000
RULE, LABEL, BUDGET = "rule", "label", "budget"
"""What is tried."""

_NARROWER = {RULE: ", or narrower --entity, --metric or limits", LABEL: ", or narrower globs"}


@dataclass(frozen=True)
class Stored:
    """What is stored of the time for which a rule is tried.

    Attributes:
        verdicts: Of the series that the rule matches, and of their machines as a whole: all news, and the other windows
            that it would report; the columns `SCHEMA`. A window of which only the value is stored has no score.
        incidents: The incidents of that time.
        verdicts_from: End of the first window of any series and any time with a verdict, epoch milliseconds.
        values_from: Start of the first window of which Kafka still has the value; ``None`` if it was not needed, or
            there is none.
        values_needed: True if quiet windows without a verdict count.
    """

    verdicts: pl.DataFrame
    incidents: Sequence[Incident]
    verdicts_from: int
    values_from: int | None
    values_needed: bool


def stored(rule: Rule, start: int, end: int, settings: Settings, most: int = MOST) -> Stored:
    """What is stored of the windows that a rule matches and that overlap a time.

    Args:
        rule: The rule.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        settings: The settings, with the servers' addresses filled in.
        most: So many verdicts or windows are read at most.

    Raises:
        NewnormalError: ``VERSION_EMPTY`` if no verdict of that time is stored; ``USAGE_INVALID`` if there are more than
            ``most``; ``KAFKA_READ_FAILED``.
        elasticsearch.ApiError: Elasticsearch refuses; a `TransportError` if it does not answer.
    """
    time = in_time(start, end)
    query = {"bool": {"filter": [*time, *_of_rule(rule)]}}
    with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=60) as client:
        there: dict[str, Any] = {"index": settings.alias, "ignore_unavailable": True, "allow_no_indices": True}
        began = begin_of(client, there, time, RULE)
        refuse_more_than(most, int(client.count(**there, query=query)["count"]), RULE)
        incidents = incidents_of(client, start, end, settings, RULE)
    verdicts, _ = final(indexed(settings, settings.alias, query))
    if not rule.report or settings.detector.emit == "all":
        return Stored(verdicts, incidents, began, None, False)
    values, values_from = _quiet(rule, start, end, settings, most)
    verdicts = pl.concat([verdicts, values.join(verdicts, on=WINDOW, how="anti")]).sort(WINDOW)
    return Stored(verdicts, incidents, began, values_from, True)


def begin_of(client: Elasticsearch, there: dict[str, Any], time: list[dict[str, Any]], what: str) -> int:
    """End of the first window with a verdict, if there are verdicts of a time.

    Raises:
        NewnormalError: ``VERSION_EMPTY``.
    """
    bounds = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    reply = client.search(**there, size=0, aggs={**bounds, "within": {"filter": {"bool": {"filter": time}}}})
    found = reply.get("aggregations", {})
    if found and found["within"]["doc_count"]:
        return int(found["first"]["value"])
    missing = "no verdict is stored of that time"
    known = bool(found) and found["first"]["value"] is not None
    accepted = (
        f"from {iso(int(found['first']['value']))} to {iso(int(found['last']['value']))}" if known else "any verdict"
    )
    raise NewnormalError("VERSION_EMPTY", missing, there["index"], accepted, f"the {what} was not tried")


def incidents_of(client: Elasticsearch, start: int, end: int, settings: Settings, what: str) -> list[Incident]:
    """The incidents that lasted in a time, without what is not needed of them."""
    lasted: list[dict[str, Any]] = [
        {"range": {"event.start": {"lt": end, "format": "epoch_millis"}}},
        {"range": {"updated": {"gte": start, "format": "epoch_millis"}}},
    ]
    found = client.search(
        index=settings.incident_alias,
        ignore_unavailable=True,
        allow_no_indices=True,
        query={"bool": {"filter": lasted, "must_not": [{"term": {"incident.state": "merged"}}]}},
        size=_INCIDENTS,
        track_total_hits=True,
        source_excludes=["machines", "metrics", "candidates", "log_changes"],
    )["hits"]
    refuse_more_than(_INCIDENTS, int(found["total"]["value"]), what, "incidents")
    return [Incident.model_validate(hit["_source"]) for hit in found["hits"]]


def in_time(start: int, end: int) -> list[dict[str, Any]]:
    """The clauses that hold for windows that overlap a time."""
    return [
        {"range": {"@timestamp": {"gt": start, "format": "epoch_millis"}}},
        {"range": {"window_start": {"lt": end, "format": "epoch_millis"}}},
    ]


def _of_rule(rule: Rule) -> list[dict[str, Any]]:
    """What a verdict must be so that the rule can change it: news, or one whose value the rule would report."""
    clauses: list[dict[str, Any]] = []
    if rule.entity != "*":
        clauses.append({"wildcard": {"host.name": {"value": wildcard(rule.entity)}}})
    if rule.metric != "*":
        joined = [{"term": {"metric": JOINED}}]
        globs = (rule.metric, rule.metric + UNTIL_FULL)  # as `pipelines.jobs.detectors.rules.are_of`
        clauses.append(any_of([*({"wildcard": {"metric": {"value": wildcard(glob)}}} for glob in globs), *joined]))
    limits = {name: limit for name, limit in (("gt", rule.above), ("lt", rule.below)) if limit is not None}
    if rule.report and not limits:
        return clauses
    either: list[dict[str, Any]] = [{"terms": {"kind": list(NEWS_KINDS)}}]
    if rule.report:
        either.append({"range": {"actual": limits}})
    return [*clauses, any_of(either)]


def any_of(clauses: list[dict[str, Any]]) -> dict[str, Any]:
    """A clause that holds if one of some does."""
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def _quiet(rule: Rule, start: int, end: int, settings: Settings, most: int) -> tuple[pl.DataFrame, int | None]:
    """The windows in `features` that the rule applies to, as quiet verdicts; and the start of the first window of any.

    Those of logs are not there.
    """
    first: list[int] = []
    count = 0

    def wanted(rows: pl.DataFrame) -> pl.DataFrame:
        nonlocal count
        first.append(int(rows["window_start"].min()))  # type: ignore[arg-type]
        within = rows.filter(pl.col("window_end") > start, pl.col("window_start") < end)
        effect = effects([RuleInForce(rule, start, end)], within)
        concerned = pl.Series(effect.concerned[0][1]) if effect else pl.lit(value=False)
        chosen = within.filter(concerned | (pl.col("revision") > 0))
        count += chosen.height
        refuse_more_than(most, count, RULE)
        return chosen

    messages = content(settings.kafka.bootstrap or "", settings.topic(topics.FEATURES))
    try:
        rows = windows_of((message.value() or b"" for message in messages), rule.entity, rule.metric, wanted)
    except NewnormalError as error:
        if error.code != "TOPIC_UNKNOWN":
            raise
        rows = pl.DataFrame()
    if not rows.height:
        return pl.DataFrame(schema=SCHEMA), min(first, default=None)
    known = rows.with_columns(actual="value", kind=pl.lit("normal"))
    columns = [
        (pl.col(name) if name in (*WINDOW, "actual", "kind") else pl.lit(None)).cast(type_).alias(name)
        for name, type_ in SCHEMA.items()
    ]
    return known.select(columns), min(first)


def refuse_more_than(most: int, count: int, what: str, of: str = "windows") -> None:
    """Refuses to read more than fits into memory, and into some seconds.

    Raises:
        NewnormalError: ``USAGE_INVALID``.
    """
    if count > most:
        more = f"the {what} concerns more than {most:,} stored {of} of that time"
        accepted = f"a shorter time (--from, --until){_NARROWER.get(what, '')}"
        raise NewnormalError("USAGE_INVALID", more, f"{what} try", accepted, f"the {what} was not tried")
