"""The whole verification: reads the topics and the index of a pipeline, and counts what is wrong in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from elasticsearch import Elasticsearch

from pipelines.chaos.verifier import log_reader, raw_records
from pipelines.chaos.verifier.dead_letter_checks import check_dead_letters
from pipelines.chaos.verifier.finding import Tally
from pipelines.chaos.verifier.verdict_checks import (
    Verdict,
    check_documents,
    check_reference,
    check_verdicts,
    newest,
)
from pipelines.chaos.verifier.window_checks import LINE, LOG_TYPES, METRIC_TYPES, SAMPLE, check_logs, check_metrics

_SAMPLE_TYPES = dict(zip(SAMPLE, (pl.String, pl.String, pl.Int64, pl.Float64), strict=True))
_LINE_TYPES = dict(zip(LINE, (pl.String, pl.String, pl.Int64, pl.String), strict=True))


@dataclass(frozen=True)
class Site:
    """What is verified.

    Attributes:
        bootstrap: ``host:port`` of Kafka.
        elasticsearch: URL of Elasticsearch.
        documents: The alias or the index pattern of the verdicts.
        reference: Suffix of the names of the topics that the run without faults wrote, e.g. ``-reference``.
        window: Length of the windows, milliseconds.
        out_of_orderness: How far records of a partition may be out of order, milliseconds.
        lateness: How late a sample may come, milliseconds.
        until: Windows that end by then are closed and compared, epoch milliseconds.
    """

    bootstrap: str
    elasticsearch: str
    documents: str
    reference: str
    window: int
    out_of_orderness: int
    lateness: int
    until: int


def verify(site: Site) -> Tally:
    """Compares all that the pipeline wrote with what it must have written.

    Raises:
        KafkaException: If Kafka does not answer.
        TransportError: If Elasticsearch does not answer.
    """
    tally = Tally()
    raw, raw_lines = (
        raw_records.samples(log_reader.read(site.bootstrap, "telemetry.json")),
        raw_records.lines(log_reader.read(site.bootstrap, "logs.json")),
    )
    tally.compared |= {"samples": raw.records.height, "lines": raw_lines.records.height}

    def rows(topic: str, types: Mapping[str, Any]) -> pl.DataFrame:
        return log_reader.columns(log_reader.read(site.bootstrap, topic), types)

    bounds = site.window, site.until
    late, late_lines = rows("features.late", _SAMPLE_TYPES), rows("logs.late", _LINE_TYPES)
    features, log_features = rows("features", METRIC_TYPES), rows("features.logs", LOG_TYPES)
    reach = site.out_of_orderness
    windows = check_metrics(tally, raw.records, features, late, *bounds, reach + site.lateness)
    log_windows = check_logs(tally, raw_lines.records, log_features, late_lines, *bounds, reach)

    verdicts = _verdicts(site, "novelties")
    final = check_verdicts(tally, verdicts, windows, log_windows, site.until)
    check_documents(tally, stored(site.elasticsearch, site.documents), final, site.until)
    check_reference(tally, final, newest(_verdicts(site, f"novelties{site.reference}"), site.until))

    letters = log_reader.objects(log_reader.read(site.bootstrap, "deadletter"))
    refused = {"telemetry.json": raw.refused, "logs.json": raw_lines.refused}
    for topic, fields, code in (
        ("rules", raw_records.RULE_FIELDS, "RULE_INVALID"),
        ("labels", raw_records.LABEL_FIELDS, "LABEL_INVALID"),
    ):
        refused[topic] = raw_records.refused_controls(log_reader.read(site.bootstrap, topic), fields, code)
    places = {(topic, *place): code for topic, each in refused.items() for place, code in each.items()}
    check_dead_letters(tally, letters, places)
    return tally


def stored(url: str, index: str) -> list[Verdict]:
    """All documents, read page by page."""
    found: list[Verdict] = []
    with Elasticsearch(url, request_timeout=60) as client:
        client.indices.refresh(index=index)
        page = client.search(index=index, size=5_000, scroll="2m", sort=["_doc"])
        while page["hits"]["hits"]:
            found += [hit["_source"] for hit in page["hits"]["hits"]]
            page = client.scroll(scroll_id=page["_scroll_id"], scroll="2m")
    return found


def _verdicts(site: Site, topic: str) -> list[Verdict]:
    return list(log_reader.objects(log_reader.read(site.bootstrap, topic)))
