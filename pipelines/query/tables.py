"""Reads topics as tables: the record type and decoder of each topic, its partitions, and its messages as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from engine.address import kafka_options
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.skipping import SkippingConsumer
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from pipelines.contracts import topics
from pipelines.contracts.records import (
    Acknowledgement,
    Change,
    Features,
    Incident,
    InferredPlacement,
    Label,
    Log,
    LogFeatures,
    News,
    Novelty,
    Placement,
    Rule,
    SeriesState,
    Silence,
    Telemetry,
)
from pipelines.contracts.version_names import plain
from pipelines.formats.placements.facts import Sighting

COLUMNAR: dict[str, type[Record]] = {
    topics.TELEMETRY: Telemetry,
    topics.FEATURES: Features,
    topics.FEATURES_LATE: Telemetry,
    topics.LOGS: Log,
    topics.LOGS_LATE: Log,
    topics.LOG_FEATURES: LogFeatures,
    topics.LOG_FEATURES_LATE: LogFeatures,
    topics.NOVELTIES_LATE: Features,
    topics.NEWS: News,
    topics.LOG_NEWS: News,
    topics.CALLS: Sighting,
}
JSON: dict[str, type[Record]] = {
    topics.RAW_JSON: Telemetry,
    topics.LOGS_JSON: Log,
    topics.NOVELTIES: Novelty,
    topics.STATE: SeriesState,
    topics.RULES: Rule,
    topics.LABELS: Label,
    topics.TOPOLOGY: Placement,
    topics.PLACES: InferredPlacement,
    topics.ACKNOWLEDGEMENTS: Acknowledgement,
    topics.SILENCES: Silence,
    topics.CHANGES: Change,
    topics.INCIDENTS: Incident,
    topics.DEADLETTER: DeadLetter,
}


@dataclass(frozen=True)
class RecordJson(Decoder):
    """Decodes JSON objects by the JSON names of a record type; missing fields are null, unknown ones are left out."""

    record: type[Record]

    def decode(self, messages: Messages) -> Decoded:
        names = {info.alias or name: name for name, info in self.record.model_fields.items()}
        schema = pa.schema([field.with_nullable(True) for field in self.record.arrow_schema()])
        rows, kept, refused = [], [], []
        for number, value in enumerate(messages.values.to_pylist()):
            try:
                row = {names[k]: _entries(v) for k, v in orjson.loads(value or b"").items() if k in names}
                pa.Table.from_pylist([row], schema)
            except (ValueError, AttributeError, pa.ArrowException) as error:
                refused.append((number, "JSON_MALFORMED", str(error)))
                continue
            rows.append(row)
            kept.append(number)
        table = pa.Table.from_pylist(rows, schema)
        return Decoded(table.append_column(ROW, pa.array(kept, pa.int32())), refused)


def decoder(topic: str) -> Decoder | None:
    """The decoder of a topic of any version, given without the namespace; ``None`` if it has no record type."""
    name = plain(topic)
    if name in COLUMNAR:
        return ColumnarDecoder(COLUMNAR[name])
    return RecordJson(JSON[name]) if name in JSON else None


def record_of(topic: str) -> type[Record] | None:
    """The record type of a topic of any version, given without the namespace; ``None`` if it has none."""
    name = plain(topic)
    return COLUMNAR.get(name) or JSON.get(name)


def frame(topic: str, values: list[bytes]) -> tuple[pl.DataFrame, int]:
    """Turns messages of a topic into a table.

    Args:
        topic: Name of the topic, without the namespace.
        values: The messages; heartbeats are ignored.

    Returns:
        The table, and the number of messages that could not be read.
    """
    values = [value for value in values if value != HEARTBEAT]
    by_type = decoder(topic)
    if by_type is None:
        return _free(values)
    empty = pa.array([0] * len(values), pa.int64()).to_numpy()
    decoded = by_type.decode(Messages(topic, 0, pa.array(values, pa.binary()), empty, empty))
    table = pl.from_arrow(decoded.records.drop_columns([ROW]))
    assert isinstance(table, pl.DataFrame)
    return table, len(decoded.refused)


def consumer(bootstrap: str, more: Mapping[str, str | bool] | None = None) -> Consumer:
    """A Kafka consumer that commits no offsets, and reads committed messages only.

    Args:
        bootstrap: host:port of Kafka.
        more: Further settings of the consumer.
    """
    return SkippingConsumer(
        {
            **kafka_options(bootstrap),
            "group.id": "newnormal.sql",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
            **(more or {}),
        }
    )


def topic_names(reader: Consumer, namespace: str) -> list[str]:
    """The names of all topics of a namespace, without the namespace."""
    names = (name for name in reader.list_topics(timeout=10).topics if not name.startswith("__"))
    return sorted(name.removeprefix(namespace) for name in names if name.startswith(namespace))


def partitions(reader: Consumer, topic: str) -> list[int]:
    """The partitions of a topic, given by its full name.

    Raises:
        NewnormalError: ``TOPIC_UNKNOWN`` if there is no such topic.
    """
    found = sorted(reader.list_topics(topic, 10).topics[topic].partitions)
    if not found:
        raise NewnormalError("TOPIC_UNKNOWN", f"there is no topic {topic}", "query", "an existing topic")
    return found


def partitions_with_messages(reader: Consumer, topic: str) -> list[int]:
    """The partitions of a topic that hold messages; a live query does not wait for the others."""
    bounds = {p: reader.get_watermark_offsets(TopicPartition(topic, p), 10) for p in partitions(reader, topic)}
    return [p for p, (low, high) in bounds.items() if high > low]


def _entries(value: Any) -> Any:
    """Turns an object into the entries of a map; other values stay."""
    return list(value.items()) if isinstance(value, dict) else value


def _free(values: list[bytes]) -> tuple[pl.DataFrame, int]:
    """Turns JSON objects of any shape into columns; if there are none, the messages become one column ``value``.

    Returns:
        The table, and the number of messages that are no JSON objects.
    """
    rows = []
    for value in values:
        try:
            row = orjson.loads(value)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    if values and not rows:
        return pl.DataFrame({"value": [value.decode("utf-8", "backslashreplace") for value in values]}), 0
    return pl.DataFrame(rows, infer_schema_length=None, strict=False), len(values) - len(rows)
