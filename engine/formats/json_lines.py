"""Encodes records as lines of JSON, by columns; fields that a record lacks are left out of its line."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from engine.spec.record import Record

_BITS = 60
_ROW = "__row"


def to_json_lines(records: pl.DataFrame, record: type[Record]) -> pl.Series:
    """The JSON of each record, with aliases and without nulls; records that lack the same columns are encoded at once.

    Args:
        records: Columns of the record type. A map is a column of structs, whose nulls are left out too, or of lists of
            structs with ``key`` and ``value``.
        record: The record type.

    Returns:
        The lines, in the order of the records.

    >>> from pipelines.contracts.records import Telemetry
    >>> sample = {"time": 1, "entity": "a", "metric": "m", "value": 0.5, "kind": "gauge", "unit": None}
    >>> to_json_lines(pl.DataFrame([sample]), Telemetry).to_list()
    ['{"@timestamp":1,"host.name":"a","metric":"m","value":0.5,"kind":"gauge"}']
    """
    names = [name for name in record.model_fields if name in records.columns]
    aliases = {name: record.model_fields[name].alias or name for name in names}
    maps = {field.name for field in record.arrow_schema() if pa.types.is_map(field.type)}
    frame = records.select(names)
    codes = _patterns(frame)
    parts = frame.with_columns(*codes).with_row_index(_ROW).partition_by([code.name for code in codes])
    lines = [part.select(_ROW, line=_line(part.select(names), aliases, maps)) for part in parts]
    return pl.concat(lines).sort(_ROW)["line"] if lines else pl.Series("line", [], pl.String)


def _patterns(frame: pl.DataFrame) -> list[pl.Series]:
    """Columns of numbers that are equal for records which lack the same columns and fields of structs."""
    columns = []
    for column in frame:
        fields = column.struct.fields if isinstance(column.dtype, pl.Struct) else []
        columns += [column, *(column.struct.field(name) for name in fields)]
    absent = [column.is_null() for column in columns if 0 < column.null_count() < len(column)]
    codes = [] if absent else [pl.Series("__code0", np.zeros(frame.height, np.int64))]
    for first in range(0, len(absent), _BITS):
        flags = np.array([flag.to_numpy() for flag in absent[first : first + _BITS]])
        codes.append(pl.Series(f"__code{first}", (1 << np.arange(len(flags), dtype=np.int64)) @ flags))
    return codes


def _line(part: pl.DataFrame, aliases: dict[str, str], maps: set[str]) -> pl.Series:
    """The lines of records that all lack the same columns."""
    there = [column for column in part if column[0] is not None]
    lists = [column.name for column in there if column.name in maps and column.dtype == pl.List]
    plain = [_complete(column).alias(aliases[column.name]) for column in there if column.name not in lists]
    line = pl.struct(plain).struct.json_encode()
    if lists:
        members = [line.str.head(-1), *(_entries(name, aliases[name]) for name in lists)]
        line = pl.concat_str(pl.concat_str(members, separator=","), pl.lit("}"))
    return part.select(line).to_series()


def _complete(column: pl.Series) -> pl.Series:
    """A struct without the fields that are null in all rows."""
    if not isinstance(column.dtype, pl.Struct):
        return column
    return pl.DataFrame([field for field in column.struct.unnest() if field[0] is not None]).to_struct()


def _entries(name: str, alias: str) -> pl.Expr:
    """A list of structs ``key`` and ``value`` as a member of an object."""
    texts = [_text(pl.element().struct.field(part)) for part in ("key", "value")]
    member = pl.concat_str(texts, separator=":")
    inner = pl.col(name).list.eval(member).list.join(",")
    return pl.concat_str(_text(pl.lit(alias)), pl.lit(":{"), inner, pl.lit("}"))


def _text(value: pl.Expr) -> pl.Expr:
    """A value as JSON."""
    return pl.struct(value.alias("v")).struct.json_encode().str.slice(len('{"v":')).str.head(-1)
