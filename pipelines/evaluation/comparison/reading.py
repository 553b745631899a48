"""Reads the verdicts of a version from its topic or its indices, and what is known about the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from elasticsearch.helpers import scan
from pydantic import ValidationError

from engine.kafka.content import content, values
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Incident, Novelty
from pipelines.contracts.settings import Settings
from pipelines.evaluation import truth
from pipelines.evaluation.comparison.comparison import JudgedBy
from pipelines.evaluation.comparison.incidents import History
from pipelines.evaluation.comparison.verdicts import SCHEMA, final
from pipelines.jobs.sink.partition import Partition
from pipelines.versions.used import used
from pipelines.versions.version import Version

_PAGE = 5_000


def judged_by(version: Version, settings: Settings, *, indices: bool = False) -> tuple[JudgedBy, int]:
    """A version with its final verdicts, and the number of messages that are no verdicts.

    Args:
        version: The version.
        settings: The settings with which the version has run, with the servers' addresses filled in.
        indices: True if the verdicts are read from its indices, which may be kept for longer than its topic.

    Raises:
        NewnormalError: ``TOPIC_UNKNOWN``, ``KAFKA_READ_FAILED``; ``VERSION_EMPTY`` if it has no verdicts.
    """
    if indices:
        patterns = ",".join(Partition(settings.index, 0).patterns)
        raw, where = indexed(settings, patterns), f"{settings.index}-*"
    else:
        where = settings.reads(topics.NOVELTIES)
        raw = (message.value() or b"" for message in content(settings.kafka.bootstrap or "", where))
    verdicts, unreadable = final(raw)
    if not verdicts.height:
        accepted = "a version whose detector has written verdicts"
        raise NewnormalError(
            "VERSION_EMPTY", f"{version.name} has no verdicts", where, accepted, "nothing was compared"
        )
    detector, known = settings.detector, used(settings) | version.settings
    incidents = _histories(settings)
    return JudgedBy(version.name, verdicts, detector.threshold, known, detector.emit, incidents), unreadable


def _histories(settings: Settings) -> tuple[History, ...] | None:
    """The incidents of a version with all their revisions; ``None`` if its incidents job has not run."""
    histories: dict[str, dict[int, Incident]] = {}
    try:
        for value in values(settings.kafka.bootstrap or "", settings.reads(topics.INCIDENTS)):
            with suppress(ValidationError):  # a heartbeat; or what the sink sends to the dead letters
                incident = Incident.from_json(value)
                histories.setdefault(incident.id, {})[incident.revision] = incident
    except NewnormalError as error:
        if error.code == "TOPIC_UNKNOWN":
            return None
        raise
    return tuple(tuple(revisions[number] for number in sorted(revisions)) for revisions in histories.values())


def spans(settings: Settings, files: Sequence[Path], verdicts: Sequence[pl.DataFrame]) -> tuple[list[truth.Span], int]:
    """The labelled spans of files, or else of the topics of the ground truth and of labels.

    Args:
        settings: The settings, with the address of Kafka filled in.
        files: Files as `newnormal evaluate` reads them; empty: the topics.
        verdicts: The verdicts of both versions; they name the machines.

    Returns:
        The spans, and the number of messages that could not be read.

    Raises:
        NewnormalError: ``TRUTH_UNREADABLE``, ``KAFKA_READ_FAILED``.
    """
    if files:
        entities = sorted({name for frame in verdicts for name in frame["entity"].unique()})
        return [span for path in files for span in truth.read(path, entities)], 0
    known = [_of_topic(settings, name) for name in (topics.GROUNDTRUTH, topics.LABELS)]
    return truth.of_messages(value for some in known for value in some)


def _of_topic(settings: Settings, name: str) -> list[bytes]:
    try:
        return values(settings.kafka.bootstrap or "", settings.topic(name))
    except NewnormalError as error:
        if error.code == "TOPIC_UNKNOWN":
            return []
        raise


def indexed(settings: Settings, index: str, query: dict[str, Any] | None = None) -> Iterator[bytes]:
    """The documents in indices of verdicts, which hold the last revision of each; with the fields of `SCHEMA`.

    Args:
        settings: The settings, with the address of Elasticsearch filled in.
        index: Names or patterns of indices, or an alias.
        query: What the documents must match, in the query language of Elasticsearch; ``None``: all.
    """
    names = [Novelty.model_fields[name].alias or name for name in SCHEMA.names()]
    body = None if query is None else {"query": query}
    with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=60) as client:
        found = scan(
            client, body, index=index, source=names, size=_PAGE, ignore_unavailable=True, allow_no_indices=True
        )
        yield from (orjson.dumps(document["_source"]) for document in found)
