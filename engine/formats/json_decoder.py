"""Decodes JSON with one record in each message; parsed by the column, and one by one only around bad messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Literal, get_args, get_origin

import orjson
import polars as pl
import pyarrow as pa
from pydantic import ConfigDict, ValidationError

from engine.columns.dictionaries import compact
from engine.formats.dead_letters import payload_text
from engine.formats.instants import ACCEPTED, instant, instants
from engine.formats.refusals import explain, misspelt, near, unknown
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.errors import NewnormalError
from engine.spec.record import Record, TimeMs, Without, unwrap

_SMALLEST, _CUTS = 64, 8
_DTYPES: dict[Any, pl.DataType | type[pl.DataType]] = {int: pl.Int64, float: pl.Float64, str: pl.String}
_EXACT = 2**53
"""Below this an integer is the same as a float of 64 bits."""
JSON_MALFORMED, FIELD_INVALID = "JSON_MALFORMED", "FIELD_INVALID"


@dataclass(frozen=True)
class JsonDecoder(Decoder):
    """Decodes JSON objects whose fields are named by the aliases of a record type; other fields are ignored.

    A number must be a JSON number: text and booleans are refused. A whole number is read exactly, however it is written
    (``1e3`` is 1000), and refused beyond 64 bits. Instants may be text, see `engine.formats.instants`. Record types
    with booleans, lists, maps or records in them are read message by message, which is slower.
    """

    record: type[Record]

    def decode(self, messages: Messages) -> Decoded:
        if not _by_column(self.record):
            rows, refused = self._rows(messages.values)
            schema = self.record.arrow_schema().append(pa.field(ROW, pa.int32()))
            return Decoded(pa.Table.from_pylist(rows, schema), refused)
        good: list[pl.DataFrame] = []
        refused = []
        for start, frame, bad in self._parsed(messages.values, 0):
            good.append(frame.select(*self.record.model_fields, (pl.col(ROW) + start).cast(pl.Int32)))
            refused += [(start + row, code, why) for row, code, why in bad]
        records = pl.concat(good) if good else self._one_by_one(messages.values)[0]
        return Decoded(_arrow(records, self.record), refused)

    def _parsed(self, values: pa.Array, start: int) -> Iterator[tuple[int, pl.DataFrame, list[tuple[int, str, str]]]]:
        """Yields pieces of the messages as columns, with their start; a piece with a bad message is split further."""
        frame = self._columns(values)
        if frame is not None:
            yield start, frame, []
        elif len(values) <= _SMALLEST:
            yield start, *self._one_by_one(values)
        else:
            size = -(-len(values) // _CUTS)
            for at in range(0, len(values), size):
                yield from self._parsed(values.slice(at, size), start + at)

    def _columns(self, chunk: pa.Array) -> pl.DataFrame | None:  # noqa: PLR0911
        """The messages of a chunk as columns, or ``None`` if any of them may be bad.

        Polars parses the messages as the elements of one array. So each must look like one object, and there must be as
        many objects as messages.
        """
        if chunk.null_count or not len(chunk):
            return None
        try:
            lines = pl.Series(values=pl.from_arrow(chunk)).cast(pl.String).str.strip_chars()
            objects = lines.str.starts_with("{") & lines.str.ends_with("}")
            if not objects.all() or lines.str.contains(_suspicious(self.record)).any():
                return None
            texts = bool(re.search(_text_instant(self.record), lines[0]))
            parsed = lines.str.json_decode(_json_type(self.record, texts))
        except pl.exceptions.PolarsError:
            return None
        if len(parsed) != len(chunk) or parsed.null_count():
            return None
        frame = parsed.struct.unnest()
        names = {info.alias or name: name for name, info in self.record.model_fields.items()}
        frame = frame.rename(names)
        if texts:
            frame = frame.with_columns(instants(pl.col(name)).alias(name) for name in _instants(self.record))
        if _doubtful(self.record, frame, lines):
            return None
        exact = _exact(self.record, frame, lines)
        if exact is None:
            return None
        frame = exact.with_columns(_defaults(self.record))
        if not frame.select(pl.all_horizontal(_checks(self.record)).fill_null(False).all()).item():
            return None
        return frame.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int32))

    def _one_by_one(self, chunk: pa.Array) -> tuple[pl.DataFrame, list[tuple[int, str, str]]]:
        rows, refused = self._rows(chunk)
        schema = {n: _DTYPES[_plain(i)] for n, i in self.record.model_fields.items()} | {ROW: pl.Int32}
        return pl.DataFrame(rows, schema), refused

    def _rows(self, chunk: pa.Array) -> tuple[list[dict[str, Any]], list[tuple[int, str, str]]]:
        """Reads messages one by one; returns the records and the refused messages."""
        rows: list[dict[str, Any]] = []
        refused: list[tuple[int, str, str]] = []
        for row, value in enumerate(chunk.to_pylist()):
            try:
                rows.append(_one(value, self.record) | {ROW: row})
            except NewnormalError as error:
                refused.append((row, error.code, error.what))
        return rows, refused


def _one(value: bytes | None, record: type[Record]) -> dict[str, Any]:
    """The columns of one message.

    Raises:
        NewnormalError: ``JSON_MALFORMED`` or ``FIELD_INVALID``.
    """
    try:
        fields = orjson.loads(value or b"")
        if isinstance(fields, dict) and value and _repeats(value, fields):
            fields = json.loads(value, object_pairs_hook=_first_of_each)
    except ValueError as error:
        raise NewnormalError(JSON_MALFORMED, f"{error}: {payload_text(value)[:80]}") from None
    if not isinstance(fields, dict):
        what = f"a JSON object is accepted, not {type(fields).__name__}: {payload_text(value)[:80]}"
        raise NewnormalError(JSON_MALFORMED, what)
    present = {name: field for name, field in fields.items() if field is not None}
    for name in misspelt(present, record):
        raise NewnormalError(FIELD_INVALID, unknown(name, record))
    for name, info in record.model_fields.items():
        alias = info.alias or name
        field = present.get(alias)
        if isinstance(field, float) and _plain(info) is int and field.is_integer():
            present[alias] = _whole(value or b"", alias) if abs(field) >= _EXACT else int(field)
        elif isinstance(field, str) and name in _instants(record):
            try:
                present[alias] = instant(field)
            except ValueError:
                what = f"{alias}: {field[:60]!r} is no time; accepted: {ACCEPTED}"
                raise NewnormalError(FIELD_INVALID, what) from None
    try:
        columns = _strict(record).model_validate(present).model_dump()
    except ValidationError as error:
        raise NewnormalError(FIELD_INVALID, explain(error, record, present)) from None
    for name, column in columns.items():
        if (number := _beyond(column)) is not None:
            alias = record.model_fields[name].alias or name
            what = f"{alias}: {number:.6g} does not fit into 64 bits; accepted: whole numbers from -2^63 to 2^63 - 1"
            raise NewnormalError(FIELD_INVALID, what)
    return columns


def _repeats(message: bytes, fields: dict[str, Any]) -> bool:
    """Whether a message may have a field twice."""
    return b"\\u" in message or any(message.count(f'"{name}"'.encode()) > 1 for name in fields)


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The first of each field: so Polars reads a field that stands twice, orjson takes the last.

    >>> _first_of_each([("k", "a"), ("k", "b")])
    {'k': 'a'}
    """
    return dict(reversed(pairs))


def _whole(message: bytes, alias: str) -> int | float:
    """The exact number in a field of a message that is too large for a float; the float if it is not whole."""
    number = json.loads(message, parse_float=Decimal, parse_int=Decimal)[alias]
    return int(number) if number == number.to_integral_value() else float(number)


def _beyond(value: Any) -> Decimal | None:
    """A whole number in a value, or in the lists, maps and records in it, that 64 bits cannot hold."""
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else Decimal(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((number for element in inner if (number := _beyond(element)) is not None), None)


def _plain(info: Any) -> Any:
    kind, _ = unwrap(info.annotation)
    return kind if kind in _DTYPES else str


@cache
def _by_column(record: type[Record]) -> bool:
    """Whether messages can be read by the column: all fields are numbers or text."""
    kinds = [unwrap(info.annotation)[0] for info in record.model_fields.values()]
    return all(kind in _DTYPES or get_origin(kind) is Literal for kind in kinds)


@cache
def _json_type(record: type[Record], texts: bool) -> pl.Struct:
    """The types of the fields in JSON; ``texts``: instants are text."""
    kinds = {n: pl.String if _plain(info) is str else pl.Float64 for n, info in record.model_fields.items()}
    kinds |= dict.fromkeys(_instants(record), pl.String) if texts else {}
    return pl.Struct({info.alias or name: kinds[name] for name, info in record.model_fields.items()})


@cache
def _instants(record: type[Record]) -> tuple[str, ...]:
    fields = record.model_fields.items()
    return tuple(name for name, info in fields if any(isinstance(mark, TimeMs) for mark in info.metadata))


@cache
def _text_instant(record: type[Record]) -> str:
    """A pattern that finds an instant written as text."""
    names = [record.model_fields[name].alias or name for name in _instants(record)]
    return rf'"(?:{"|".join(map(re.escape, names))})"\s*:\s*"'


@cache
def _suspicious(record: type[Record]) -> str:
    """A pattern that finds messages which Polars may read differently from a parser of single messages.

    These have escapes of lone surrogates, or of ASCII (which may hide a field name); or ``},{`` (a message with two
    objects, which could make up for a missing one in the count); or a text field whose value is no text.
    """
    fields = [info.alias or name for name, info in record.model_fields.items() if _plain(info) is str]
    names = "|".join(map(re.escape, fields))
    return rf'\\u(?:[dD][89a-fA-F]|00[0-7])|\}}\s*,\s*\{{|"(?:{names})"\s*:\s*[^"\sn]'


def _doubtful(record: type[Record], frame: pl.DataFrame, lines: pl.Series) -> bool:
    """Whether a message may have a boolean, which Polars reads as 0 or 1, or a misspelt name of a missing field."""
    for name, info in record.model_fields.items():
        alias, column = info.alias or name, frame[name]
        rows, pattern = column.is_null(), rf'"{near(alias)}"\s*:'
        if column.dtype == pl.Float64:
            rows, pattern = (column == 0) | (column == 1), rf'"{re.escape(alias)}"\s*:\s*[tf]'
        elif info.is_required():
            continue
        if rows.any() and lines.filter(rows).str.contains(pattern).any():
            return True
    return False


@cache
def _strict(record: type[Record]) -> type[Record]:
    """The record type for single messages: fields only by their names in JSON, strict numbers, other fields ignored."""
    config = ConfigDict(extra="ignore", strict=True, populate_by_name=False)
    return type(record.__name__, (record,), {"model_config": config, "__module__": __name__})


def _defaults(record: type[Record]) -> list[pl.Expr]:
    optional = {name: info for name, info in record.model_fields.items() if not info.is_required()}
    defaults = {name: info.get_default(call_default_factory=True) for name, info in optional.items()}
    return [pl.col(name).fill_null(pl.lit(value)) for name, value in defaults.items() if value is not None]


def _exact(record: type[Record], frame: pl.DataFrame, lines: pl.Series) -> pl.DataFrame | None:
    """The columns with whole numbers as integers of 64 bits; ``None`` if one may be no such number.

    Polars reads them as floats, by which it can be seen that 1.5 is no integer. A column with numbers that floats
    may not hold exactly is read once more, as integers; numbers in it that are written as floats are doubtful.
    """
    whole = [n for n, info in record.model_fields.items() if _plain(info) is int and frame[n].dtype == pl.Float64]
    if not frame.select(pl.all_horizontal(True, *((pl.col(n).floor() == pl.col(n)) for n in whole)).all()).item():
        return None
    large = {n: record.model_fields[n].alias or n for n in whole if (frame[n].abs() >= _EXACT).any()}
    columns = [pl.col(n).cast(pl.Int64) for n in whole if n not in large]
    if large:
        again = lines.str.json_decode(pl.Struct(dict.fromkeys(large.values(), pl.Int64))).struct.unnest()
        for name, alias in large.items():
            as_float = lines.str.contains(rf'"{re.escape(alias)}"\s*:\s*-?\d+[.eE]')
            beyond = again[alias].is_null() != frame[name].is_null()
            if (beyond | (as_float & (frame[name].abs() >= _EXACT))).any():
                return None
        columns += [again[alias].alias(name) for name, alias in large.items()]  # type: ignore[misc]
    return frame.with_columns(columns)


def _checks(record: type[Record]) -> list[pl.Expr]:
    """Conditions under which a parsed row is certainly valid; pydantic checks the other rows."""
    checks = []
    for name, info in record.model_fields.items():
        column, kind = pl.col(name), unwrap(info.annotation)[0]
        if kind is int:
            checks.append(column.is_not_null())
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
            checks += [~column.str.contains(m.pattern) for m in info.metadata if isinstance(m, Without)]
            checks.append(size >= 0)
    return checks


def _arrow(records: pl.DataFrame, record: type[Record]) -> pa.Table:
    schema = record.arrow_schema().append(pa.field(ROW, pa.int32()))
    strings = [f.name for f in schema if pa.types.is_dictionary(f.type)]
    table = records.select(schema.names).with_columns(pl.col(c).cast(pl.Categorical) for c in strings).to_arrow()
    return pa.Table.from_arrays([_as(table.column(f.name), f.type) for f in schema], schema=schema)


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return compact(column, kind) if pa.types.is_dictionary(kind) else column.cast(kind)
