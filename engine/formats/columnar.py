"""The columnar log: each Kafka message is an Arrow IPC stream of some thousand records, with its writer's watermark.

With the watermark in a message, its writer promises to send no older record after this message, except late ones. A
message without rows only advances the watermark.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.errors import NewnormalError
from engine.spec.record import Record

_WATERMARK = b"watermark"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def encode(table: pa.Table, watermark: int | None = None) -> bytes:
    """Encodes one message.

    Args:
        table: The records, with the schema of their record type.
        watermark: The writer's watermark; `NEVER` if it has none yet, ``None`` if it sends no watermarks at all.

    >>> table = pa.table({"time": [1, 2]})
    >>> decoded, watermark = decode(encode(table, 5), table.schema)
    >>> decoded.num_rows, watermark
    (2, 5)
    """
    sink = pa.BufferOutputStream()
    schema = table.schema.with_metadata({} if watermark is None else {_WATERMARK: str(watermark).encode()})
    with pa.ipc.new_stream(sink, schema, options=_OPTIONS) as writer:
        writer.write_table(table.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue())


def decode(message: bytes | pa.Buffer, schema: pa.Schema) -> tuple[pa.Table, int | None]:
    """Decodes one message: its records, and its writer's watermark, or ``None`` if it carries none.

    Columns are found by name, as a log outlives its schema: columns that ``schema`` does not have are dropped, and
    missing nullable columns are null.

    Raises:
        NewnormalError: ``COLUMNAR_BROKEN`` if it is no Arrow stream; ``COLUMNAR_SCHEMA`` if a column is missing,
            holds nulls, or is of a type that does not cast.
    """
    try:
        with pa.ipc.open_stream(message) as reader:
            table = reader.read_all()
        table.validate(full=True)
        written = (table.schema.metadata or {}).get(_WATERMARK)
        watermark = None if written is None else int(written)
    except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        raise NewnormalError("COLUMNAR_BROKEN", f"no Arrow IPC stream: {_short(error)}") from error
    columns = []
    for field in schema:
        if field.name in table.schema.names and table.schema.names.count(field.name) == 1:
            columns.append(_cast(table.column(field.name), field))
        elif field.nullable:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)], field.type))
        else:
            raise NewnormalError(
                "COLUMNAR_SCHEMA", f"column {field.name!r} is missing or doubled", accepted=str(field.type)
            )
    return pa.Table.from_arrays(columns, schema=schema), watermark


def watermark(message: bytes) -> int | None:
    """Decodes only the watermark of a message.

    Raises:
        NewnormalError: ``COLUMNAR_BROKEN``.
    """
    try:
        with pa.ipc.open_stream(message) as reader:
            written = (reader.schema.metadata or {}).get(_WATERMARK)
        return None if written is None else int(written)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NewnormalError("COLUMNAR_BROKEN", f"no Arrow IPC stream: {_short(error)}") from error


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type != field.type:
        try:
            column = column.cast(field.type)
        except (pa.ArrowException, NotImplementedError) as error:
            what = f"column {field.name!r} is {column.type}: {_short(error)}"
            raise NewnormalError("COLUMNAR_SCHEMA", what, accepted=str(field.type)) from error
    if not field.nullable and column.null_count:
        raise NewnormalError(
            "COLUMNAR_SCHEMA", f"column {field.name!r} holds {column.null_count} nulls", accepted="values"
        )
    return column


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


@dataclass(frozen=True)
class ColumnarDecoder(Decoder):
    """Decodes the columnar log of one record type."""

    record: type[Record]

    def decode(self, messages: Messages) -> Decoded:
        schema = self.record.arrow_schema()
        tables, refused, watermarks = [], [], []
        for row, value in enumerate(messages.values):
            try:
                table, watermark = decode(value.as_buffer() if value.is_valid else b"", schema)
            except NewnormalError as error:
                refused.append((row, error.code, error.what))
                continue
            if watermark is not None:
                watermarks.append((row, min(max(watermark, NEVER), END_OF_TIME)))
            if table.num_rows:
                tables.append(table.append_column(ROW, pa.array(np.full(table.num_rows, row, np.int32))))
        empty = schema.append(pa.field(ROW, pa.int32())).empty_table()
        return Decoded(pa.concat_tables(tables) if tables else empty, refused, watermarks)

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        """The records without the writer's watermark: it was about the place of the message in the log."""
        with pa.ipc.open_stream(value) as reader:
            return encode(reader.read_all().take(pa.array(sorted(records), pa.int64())))
