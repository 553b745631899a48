"""Our own JSON: one record a message, parsed by the column; only the few around a bad message one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

import orjson
import polars as pl
import pyarrow as pa
from pydantic import ConfigDict, ValidationError

from engine.deadletters import payload_text
from engine.dictionaries import compact
from engine.record import Record, unwrap
from engine.sources import ROW, Decoded, Decoder, Messages
from pipelines.refusals import explain

_SMALLEST, _CUTS = 64, 8
_DTYPES: dict[Any, pl.DataType | type[pl.DataType]] = {int: pl.Float64, float: pl.Float64, str: pl.String}
JSON_MALFORMED, FIELD_INVALID = "JSON_MALFORMED", "FIELD_INVALID"


@dataclass(frozen=True)
class JsonDecoder(Decoder):
    """JSON objects by the aliases of a record type; fields that it does not know are ignored."""

    record: type[Record]

    def decode(self, messages: Messages) -> Decoded:
        good: list[pl.DataFrame] = []
        refused: list[tuple[int, str, str]] = []
        for start, frame, bad in self._parsed(messages.values, 0):
            good.append(frame.select(*self.record.model_fields, (pl.col(ROW) + start).cast(pl.Int32)))
            refused += [(start + row, code, why) for row, code, why in bad]
        records = pl.concat(good) if good else self._one_by_one(messages.values)[0]
        return Decoded(_arrow(records, self.record), refused)

    def _parsed(self, values: pa.Array, start: int) -> Iterator[tuple[int, pl.DataFrame, list[tuple[int, str, str]]]]:
        """Pieces of the messages as columns, with their start; one that has a bad message is cut into smaller ones."""
        frame = self._columns(values)
        if frame is not None:
            yield start, frame, []
        elif len(values) <= _SMALLEST:
            yield start, *self._one_by_one(values)
        else:
            size = -(-len(values) // _CUTS)
            for at in range(0, len(values), size):
                yield from self._parsed(values.slice(at, size), start + at)

    def _columns(self, chunk: pa.Array) -> pl.DataFrame | None:
        """The chunk as columns, or ``None`` if any message in it may be bad.

        Polars parses the messages as the elements of one array, so each must look like one object, and there must be
        as many objects as messages.
        """
        if chunk.null_count:
            return None
        try:
            lines = pl.Series(values=pl.from_arrow(chunk)).cast(pl.String).str.strip_chars()
            objects = lines.str.starts_with("{") & lines.str.ends_with("}")
            if not objects.all() or lines.str.contains(_suspicious(self.record)).any():
                return None
            parsed = lines.str.json_decode(_json_type(self.record))
        except pl.exceptions.PolarsError:
            return None
        if len(parsed) != len(chunk) or parsed.null_count():
            return None
        frame = parsed.struct.unnest()
        names = {info.alias or name: name for name, info in self.record.model_fields.items()}
        frame = frame.rename(names).with_columns(_defaults(self.record))
        if not frame.select(pl.all_horizontal(_checks(self.record)).fill_null(False).all()).item():
            return None
        return frame.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int32), *_integers(self.record))

    def _one_by_one(self, chunk: pa.Array) -> tuple[pl.DataFrame, list[tuple[int, str, str]]]:
        lenient = _lenient(self.record)
        rows: list[dict[str, Any]] = []
        refused: list[tuple[int, str, str]] = []
        for row, value in enumerate(chunk.to_pylist()):
            try:
                fields = orjson.loads(value or b"")
                if not isinstance(fields, dict):
                    raise TypeError(f"a JSON object is accepted, not {type(fields).__name__}")
                record = lenient.model_validate({k: v for k, v in fields.items() if v is not None})
                rows.append(record.model_dump() | {ROW: row})
            except ValidationError as error:
                refused.append((row, FIELD_INVALID, explain(error, self.record)))
            except (ValueError, TypeError, RecursionError) as error:
                refused.append((row, JSON_MALFORMED, f"{error}: {payload_text(value)[:80]}"))
        schema = {n: _DTYPES[_plain(i)] for n, i in self.record.model_fields.items()} | {ROW: pl.Int32}
        return pl.DataFrame(rows, schema).with_columns(*_integers(self.record)), refused


def _plain(info: Any) -> Any:
    kind, _ = unwrap(info.annotation)
    return kind if kind in _DTYPES else str


@cache
def _json_type(record: type[Record]) -> pl.Struct:
    return pl.Struct({info.alias or name: _DTYPES[_plain(info)] for name, info in record.model_fields.items()})


@cache
def _suspicious(record: type[Record]) -> str:
    """A pattern of all that Polars reads otherwise than a JSON parser does that sees one message at a time.

    Escapes of lone surrogates, and of ASCII (which may hide a name below); ``},{`` (a message of two objects, by which
    the count of objects still fits that of messages); a text field that holds no text.
    """
    fields = [info.alias or name for name, info in record.model_fields.items() if _plain(info) is str]
    names = "|".join(map(re.escape, fields))
    return rf'\\u(?:[dD][89a-fA-F]|00[0-7])|\}}\s*,\s*\{{|"(?:{names})"\s*:\s*[^"\sn]'


@cache
def _lenient(record: type[Record]) -> type[Record]:
    return type(record.__name__, (record,), {"model_config": ConfigDict(extra="ignore"), "__module__": __name__})


def _defaults(record: type[Record]) -> list[pl.Expr]:
    given = {name: info.default for name, info in record.model_fields.items() if not info.is_required()}
    return [pl.col(name).fill_null(pl.lit(value)) for name, value in given.items() if value is not None]


def _integers(record: type[Record]) -> list[pl.Expr]:
    return [pl.col(name).cast(pl.Int64) for name, info in record.model_fields.items() if _plain(info) is int]


def _checks(record: type[Record]) -> list[pl.Expr]:
    """Conditions under which a parsed row is surely valid; the others are left to pydantic."""
    checks = []
    for name, info in record.model_fields.items():
        column, kind = pl.col(name), unwrap(info.annotation)[0]
        if kind is int:
            checks.append((column.floor() == column) & (column.abs() <= 2**53))
            checks += [column >= m.ge for m in info.metadata if hasattr(m, "ge")]
            checks += [column <= m.le for m in info.metadata if hasattr(m, "le")]
        elif kind is float:
            checks.append(column.is_finite())
        elif get_args(kind):
            checks.append(column.is_in(list(get_args(kind))))
        else:
            size = column.str.len_bytes()
            checks += [size >= m.min_length for m in info.metadata if hasattr(m, "min_length")]
            checks += [size <= m.max_length for m in info.metadata if hasattr(m, "max_length")]
            checks.append(size >= 0)
    return checks


def _arrow(records: pl.DataFrame, record: type[Record]) -> pa.Table:
    schema = record.arrow_schema().append(pa.field(ROW, pa.int32()))
    strings = [f.name for f in schema if pa.types.is_dictionary(f.type)]
    table = records.select(schema.names).with_columns(pl.col(c).cast(pl.Categorical) for c in strings).to_arrow()
    return pa.Table.from_arrays([_as(table.column(f.name), f.type) for f in schema], schema=schema)


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return compact(column, kind) if pa.types.is_dictionary(kind) else column.cast(kind)
