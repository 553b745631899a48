"""`newnormal tail`: shows the records of any topic, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import typer
from confluent_kafka import Consumer, KafkaError, TopicPartition

from deploy.embedded.services import running
from engine.formats.dead_letters import payload_text
from engine.formats.heartbeat import HEARTBEAT
from engine.spec.decoder import ROW, Messages
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.options import Overrides, with_kafka
from pipelines.contracts.globs import matches
from pipelines.contracts.records import Novelty
from pipelines.contracts.settings import load
from pipelines.query import tables

_LAST, _LAST_OF_SOME = 5, 1_000
"""How many messages of each partition are read first: without a filter, and with one."""

_AROUND = (
    "Verdicts on quiet windows are written around incidents only, unless the pipeline runs with detector.emit = all. "
    "All windows of a series: `newnormal query windows MACHINE METRIC`, or the topic features."
)


@with_kafka
def tail(
    overrides: Overrides,
    topic: Annotated[str, typer.Argument(help="e.g. telemetry, features, novelties, deadletter")],
    limit: Annotated[int, typer.Option(help="Records to show; 0: run until Ctrl-C.")] = 20,
    beginning: Annotated[bool, typer.Option("--from-beginning", help="Start from the oldest record.")] = False,
    kind: Annotated[
        list[str] | None, typer.Option(help="Show only records of this kind, e.g. anomaly; repeatable.")
    ] = None,
    entity: Annotated[str, typer.Option(help="Show only records of these machines, a glob of * and ?.")] = "*",
    where: Annotated[
        str, typer.Option(help="Show only records for which this SQL condition is true, e.g. 'record_score > 80'.")
    ] = "",
) -> None:
    """Show a topic's newest records and those that arrive, one JSON object per line; columnar batches are unpacked.

    Fields have the names of the columns (docs/records.md), as in [bold]newnormal sql[/bold]; times are ISO 8601, UTC.
    In --where, times are integers, UTC epoch milliseconds.

    Example: [bold]newnormal tail novelties --kind anomaly --entity 'db-*' --where "metric <> 'logs'"[/bold]
    """
    choice = RecordFilter(topic, tuple(kind or ()), entity, where)
    settings = running(load(**overrides), elasticsearch=False)
    if settings.detector.emit != "all" and tables.record_of(topic) is Novelty:
        typer.echo(hint(_AROUND), err=True)
    reader, shown = tables.consumer(settings.kafka.bootstrap or "", {"enable.partition.eof": True}), 0
    try:
        for line in _lines(reader, settings.topic(topic), choice, beginning):
            if line is None:  # all that was there has been shown
                if limit:
                    typer.echo(f"{shown:,} of {limit:,} so far; waiting for more, Ctrl-C ends it", err=True)
                continue
            typer.echo(line)
            shown += 1
            if shown == limit:
                return
    finally:
        reader.close()


@dataclass(frozen=True)
class RecordFilter:
    """Selects the records of a topic that are shown.

    Args:
        topic: Name of the topic, without the namespace.
        kinds: The kinds that are shown; empty: all.
        entity: Glob over machines.
        where: A SQL condition over the columns; empty: all records.

    Raises:
        NewnormalError: ``SQL_INVALID`` if the records lack such a column, or the condition does not parse.
    """

    topic: str
    kinds: tuple[str, ...]
    entity: str
    where: str

    def __post_init__(self) -> None:
        record = tables.record_of(self.topic)
        if record is not None:
            empty = pl.from_arrow(record.arrow_schema().empty_table())
            assert isinstance(empty, pl.DataFrame)
            self.of(empty)

    @property
    def all(self) -> bool:
        """True if all records are shown."""
        return not self.kinds and self.entity == "*" and not self.where

    def of(self, records: pl.DataFrame) -> pl.DataFrame:
        """The records that are shown, among some records.

        Raises:
            NewnormalError: ``SQL_INVALID`` if the condition cannot be applied to these records.
        """
        if self.all:
            return records
        shown = records.with_columns(pl.col(pl.Categorical).cast(pl.String))
        try:
            if self.kinds:
                shown = shown.filter(pl.col("kind").is_in(self.kinds))
            if self.entity != "*":
                shown = shown.filter(pl.Series(matches(self.entity, shown["entity"])))
            return shown.filter(pl.sql_expr(self.where)) if self.where else shown
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            what, columns = str(error).splitlines()[0], ", ".join(records.columns)
            raise NewnormalError("SQL_INVALID", what, "--where, --kind, --entity", f"columns: {columns}") from None


def _lines(reader: Consumer, full: str, choice: RecordFilter, beginning: bool) -> Iterator[str | None]:
    """The lines of the records that are shown; ``None`` once, when those that the topic had at first were shown."""
    starts, behind = [], set()
    for partition in tables.partitions(reader, full):
        low, high = reader.get_watermark_offsets(TopicPartition(full, partition), 10)
        last = max(low, high - (_LAST if choice.all else _LAST_OF_SOME))
        starts.append(TopicPartition(full, partition, low if beginning else last))
        behind.add(partition)
    reader.assign(starts)
    while True:
        got = reader.consume(500, 0.5)
        some = [message for message in got if not message.error()]
        some.sort(key=lambda m: (m.timestamp()[1], m.partition(), m.offset()))
        yield from _shown([m.value() or b"" for m in some if m.value() != HEARTBEAT], choice)
        ended = {each.partition() for each in got if (why := each.error()) and why.code() == KafkaError._PARTITION_EOF}
        if ended & behind and not (behind := behind - ended):
            yield None


def _shown(values: list[bytes], choice: RecordFilter) -> Iterator[str]:
    decoder = tables.decoder(choice.topic)
    if decoder is None:
        yield from (text for value in values if (text := _free(value, choice)))
        return
    nothing = np.zeros(len(values), np.int64)
    decoded = decoder.decode(Messages(choice.topic, 0, pa.array(values, pa.binary()), nothing, nothing))
    table = pl.from_arrow(decoded.records)
    assert isinstance(table, pl.DataFrame)
    found = [(row.pop(ROW), rows.line(_objects(row))) for row in choice.of(table).to_dicts()]
    refused = [(row, _free(values[row], choice, why)) for row, _, why in decoded.refused]
    yield from (text for _, text in sorted([*found, *refused], key=lambda pair: pair[0]) if text)


def _free(value: bytes, choice: RecordFilter, why: str = "") -> str:
    """The line for a message that does not fit its topic's record type, or whose topic has none; empty if not shown."""
    try:
        tree = orjson.loads(value)
    except ValueError:
        tree = None
    if not isinstance(tree, dict):
        return rows.line({"unreadable": payload_text(value)} | ({"reason": why} if why else {})) if choice.all else ""
    record = tables.record_of(choice.topic)
    names = {info.alias or name: name for name, info in record.model_fields.items()} if record else {}
    row = {names.get(str(name), str(name)): found for name, found in tree.items()}
    if choice.all:
        return rows.line(row)
    flat = {name: found for name, found in row.items() if isinstance(found, str | int | float | bool)}
    return rows.line(row) if choice.of(pl.DataFrame([flat])).height else ""


def _objects(row: dict[str, Any]) -> dict[str, Any]:
    """A row without nulls, in which lists of map entries have become objects."""
    known = {name: value for name, value in row.items() if value is not None}
    return {n: {each["key"]: each["value"] for each in v} if _is_map(v) else v for n, v in known.items()}


def _is_map(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and each.keys() == {"key", "value"} for each in value)
