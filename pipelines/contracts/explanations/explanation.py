"""The whole explanation of a novelty: a headline, sentences by the kind of novelty, and the figures behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from engine.columns.replicas import replicas_of
from pipelines.contracts.explanations import joined, logs, metric, peers
from pipelines.contracts.explanations.details import details
from pipelines.contracts.explanations.facts import Facts, ranked
from pipelines.contracts.records import Novelty
from pipelines.contracts.records.novelty import JOINED, PEERS, QUIET_KINDS, UNTIL_FULL

HEADLINES = {
    "anomaly": "Unusual",
    "state_change": "A change that lasts",
    "new_normal": "A new normal",
    "absence": "No data",
    "exhaustion": "Full soon",
    "outlier": "Unlike its peers",
    "recovered": "Normal again",
    "learning": "Still learning what is usual",
    "normal": "As usual",
}

_NAMES = {name: info.alias or name for name, info in Novelty.model_fields.items()}
_SENTENCES = {JOINED: joined.sentences, "logs": logs.sentences}
"""The function that writes the sentences, by metric; all others have `metric.sentences`, or `peers.sentences`."""


def explained(verdicts: pl.DataFrame, zone: str = "UTC") -> pl.DataFrame:
    """Adds `message`, `details` and `workload` to verdicts: filled where a verdict is news or closes an incident.

    Args:
        verdicts: A row per verdict, with columns of `pipelines.jobs.detectors.metrics.detection.SCHEMA`; only `kind` is
            required, facts whose columns are missing are left out of the text.
        zone: IANA name of the time zone in which instants are written.

    Returns:
        The same rows; these columns are null where a verdict is no news.
    """
    news = ~verdicts["kind"].is_in(QUIET_KINDS)
    if "incident_state" in verdicts.columns:
        news |= (verdicts["incident_state"] == "closed").fill_null(False)
    names = ("workload", "message", "details")
    columns: dict[str, list[str | None]] = {name: [None] * verdicts.height for name in names}
    for place, row in zip(news.arg_true(), verdicts.filter(news).iter_rows(named=True), strict=True):
        row["workload"] = columns["workload"][place] = replicas_of(row.get("entity") or "")
        explanation = explain({_NAMES[name]: value for name, value in row.items() if name in _NAMES}, zone)
        columns["message"][place] = " ".join(explanation["sentences"])
        columns["details"][place] = " ".join(explanation["details"])
    return verdicts.with_columns(pl.Series(name, texts, dtype=pl.String) for name, texts in columns.items())


def explain(novelty: Mapping[str, Any], zone: str = "UTC") -> dict[str, Any]:
    """Explains one novelty document: its headline, its sentences and the figures behind them.

    Args:
        novelty: The fields of the document, by JSON name.
        zone: IANA name of the time zone in which instants are written.

    Returns:
        `headline`, `sentences` and `details` as text; `evidence` and `influencers` as (name, number) pairs, the largest
        numbers first.

    >>> document = {"host.name": "pay-01", "metric": "queue.depth", "kind": "anomaly", "actual": 180.0,
    ...     "typical": 100.0, "lower": 95.0, "upper": 108.0, "since": 1784802520000, "@timestamp": 1784802530000}
    >>> explain(document)["sentences"]
    ['queue.depth of pay-01 is 180; usual: 95 to 108.', 'Far outside.', 'Since 10:28:40 UTC.']
    """
    facts = Facts(novelty, zone)
    workload = novelty.get("k8s.workload.name")
    replica = f"It is a replica of {workload}." if workload and not facts.quiet else ""
    write = peers.sentences if facts.metric.startswith(PEERS) else _SENTENCES.get(facts.metric, metric.sentences)
    sentences = [*write(facts), facts.decided(), replica]
    return {
        "headline": _headline(facts),
        "sentences": [sentence for sentence in sentences if sentence],
        "details": details(facts),
        "evidence": ranked(novelty.get("evidence")),
        "influencers": ranked(novelty.get("influencers")),
    }


def _headline(facts: Facts) -> str:
    if facts.metric.endswith(UNTIL_FULL):
        if facts.kind == "recovered":
            return "No longer full soon"
        if (latest := facts.number("full_latest")) is not None and latest <= (facts.number("@timestamp") or 0):
            return "Full"
    return HEADLINES.get(facts.kind, "Unusual")
