"""The whole verification: reads the topics and the index of a pipeline, and counts what is wrong in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from elasticsearch import Elasticsearch

from tests.chaos.runs.verifier import log_reader, raw_records
from tests.chaos.runs.verifier.dead_letter_checks import check_dead_letters
from tests.chaos.runs.verifier.expected_windows import WINDOW
from tests.chaos.runs.verifier.finding import Tally
from tests.chaos.runs.verifier.lives import ARRIVED, Restored
from tests.chaos.runs.verifier.log_reader import LogMessage
from tests.chaos.runs.verifier.raw_records import RawTopic
from tests.chaos.runs.verifier.verdict_checks import (
    Final,
    Verdict,
    check_documents,
    check_reference,
    check_verdicts,
    identity,
)
from tests.chaos.runs.verifier.window_checks import LINE, LOG_TYPES, METRIC_TYPES, SAMPLE, check_logs, check_metrics

_SAMPLE_TYPES = dict(zip(SAMPLE, (pl.String, pl.String, pl.Int64, pl.Float64), strict=True))
_LINE_TYPES = dict(zip(LINE, (pl.String, pl.String, pl.Int64, pl.String), strict=True))


@dataclass(frozen=True)
class Written:
    """What one version of the chain has written.

    Attributes:
        name: Name of the version, for findings.
        suffix: What the names of its topics end with, e.g. ``-v2``; nothing for the first version.
        documents: The pattern of its indices; ``None`` if it stores none.
        restored: If its jobs went back to a savepoint: when. docs/savepoints.md says that what they had written since
            then is in their topics twice; the last one counts.
        since: The event time of ``newnormal replay --from``, epoch milliseconds, before which the version read nothing;
            ``None``: it read all. No record but those that are too late may lie before it.
    """

    name: str
    suffix: str
    documents: str | None
    restored: Restored | None = None
    since: int | None = None


@dataclass(frozen=True)
class Site:
    """What is verified.

    Attributes:
        bootstrap: ``host:port`` of Kafka.
        elasticsearch: URL of Elasticsearch.
        versions: What was written while there were faults.
        reference: What the run without faults wrote.
        window: Length of the windows, milliseconds.
        out_of_orderness: How far records of a partition may be out of order, milliseconds.
        lateness: How late a sample may come, milliseconds.
        until: Windows that end by then are closed and compared, epoch milliseconds.
    """

    bootstrap: str
    elasticsearch: str
    versions: Sequence[Written]
    reference: Written
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
    raw = raw_records.samples(log_reader.read(site.bootstrap, "telemetry.json"))
    raw_lines = raw_records.lines(log_reader.read(site.bootstrap, "logs.json"))
    tally.compared |= {"samples": raw.records.height, "lines": raw_lines.records.height}
    reference = _check(site, site.reference, tally, raw, raw_lines, None)
    for version in site.versions:
        _check(site, version, tally, raw, raw_lines, reference)
    _check_dead_letters(site, tally, raw, raw_lines)
    return tally


def _check(
    site: Site, version: Written, tally: Tally, raw: RawTopic, raw_lines: RawTopic, reference: Final | None
) -> Final:
    """Checks what one version has written; returns the final revision of each of its verdicts."""
    own, bounds, reach = Tally(), (site.window, site.until), site.out_of_orderness
    raw, raw_lines = raw.since(version.since), raw_lines.since(version.since)

    def rows(topic: str, types: Mapping[str, Any]) -> pl.DataFrame:
        return log_reader.columns(log_reader.read(site.bootstrap, topic + version.suffix), types)

    late, late_lines = rows("features.late", _SAMPLE_TYPES), rows("logs.late", _LINE_TYPES)
    features, log_features = rows("features", METRIC_TYPES), rows("features.logs", LOG_TYPES)
    novelties = log_reader.read(site.bootstrap, f"novelties{version.suffix}")
    verdicts = log_reader.objects(novelties)
    if restored := version.restored:
        late, late_lines = (restored.once(late, SAMPLE), restored.once(late_lines, LINE))
        windows_of = (*WINDOW, "revision")
        features, log_features = restored.once(features, windows_of), restored.once(log_features, windows_of)
        verdicts = _once(restored, novelties, verdicts, [(*identity(v), v.get("revision", 0)) for v in verdicts])
    windows = check_metrics(own, raw.records, features, late, *bounds, reach + site.lateness)
    log_windows = check_logs(own, raw_lines.records, log_features, late_lines, *bounds, reach)
    final = check_verdicts(own, verdicts, windows, log_windows, site.until)
    if version.documents:
        check_documents(own, stored(site.elasticsearch, version.documents), final, site.until)
    if reference is not None:
        check_reference(own, final, reference)
    tally.take(own, version.name)
    return final


def _check_dead_letters(site: Site, tally: Tally, raw: RawTopic, raw_lines: RawTopic) -> None:
    messages = log_reader.read(site.bootstrap, "deadletter")
    letters = log_reader.objects(messages)
    refused = {"telemetry.json": raw.refused, "logs.json": raw_lines.refused}
    for topic, fields, code in (
        ("rules", raw_records.RULE_FIELDS, "RULE_INVALID"),
        ("labels", raw_records.LABEL_FIELDS, "LABEL_INVALID"),
    ):
        refused[topic] = raw_records.refused_controls(log_reader.read(site.bootstrap, topic), fields, code)
    for version in site.versions:
        if version.restored:
            about = [_about(number, each) for number, each in enumerate(letters)]
            letters = _once(version.restored, messages, letters, about)
    places = {(topic, *place): code for topic, each in refused.items() for place, code in each.items()}
    check_dead_letters(tally, letters, places)


def _about(number: int, letter: Mapping[str, Any]) -> tuple[object, ...]:
    """What a dead letter is about: a restored detector reads rules and labels again, and refuses the same ones."""
    of_operators = letter["kafka.topic"] in ("rules", "labels")
    return (letter["kafka.topic"], letter["kafka.partition"], letter["kafka.offset"]) if of_operators else (number,)


def _once(
    restored: Restored,
    messages: Sequence[LogMessage],
    records: Sequence[dict[str, Any]],
    keys: Sequence[tuple[object, ...]],
) -> list[dict[str, Any]]:
    """The records of some messages without those that were written again, by what they are recognised by."""
    arrived = [message.arrived for message in messages]
    table = pl.DataFrame({"key": [repr(key) for key in keys], ARRIVED: arrived}, {"key": pl.String, ARRIVED: pl.Int64})
    return [records[n] for n in restored.once(table.with_row_index("place"), ["key"])["place"]]


def stored(url: str, index: str) -> list[Verdict]:
    """All documents, read page by page."""
    found: list[Verdict] = []
    login = getattr(url, "client", {})  # of an address that knows how its clients log in
    with Elasticsearch(str(url), **login, request_timeout=60) as client:
        client.indices.refresh(index=index)
        page = client.search(index=index, size=5_000, scroll="2m", sort=["_doc"])
        while page["hits"]["hits"]:
            found += [hit["_source"] for hit in page["hits"]["hits"]]
            page = client.scroll(scroll_id=page["_scroll_id"], scroll="2m")
    return found
