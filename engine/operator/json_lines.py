"""Records as lines of JSON, by columns: what a record lacks is left out of its line."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from engine.record import Record

_ENTRY = r'^\{"key":(.*),"value":([^,]*)\}$'
_BITS = 60
_ROW = "__row"


def to_json_lines(records: pl.DataFrame, record: type[Record]) -> pl.Series:
    """The JSON of each record, by alias and without nulls; records that lack the same columns are encoded at once.

    Args:
        records: Columns of the record type. A map is a column of structs, whose nulls are left out too, or of lists of
            structs ``key`` and ``value``.
        record: The type.

    Returns:
        Text, in the order of the records.

    >>> from pipelines.records import Telemetry
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
    """Numbers that are the same in records which lack the same columns, and fields of structs."""
    absent = []
    for column in frame:
        fields = column.struct.fields if isinstance(column.dtype, pl.Struct) else []
        absent += [column.is_null(), *(column.struct.field(name).is_null() for name in fields)]
    codes = []
    for first in range(0, len(absent), _BITS):
        flags = np.array([flag.to_numpy() for flag in absent[first : first + _BITS]])
        codes.append(pl.Series(f"__code{first}", (1 << np.arange(len(flags), dtype=np.int64)) @ flags))
    return codes


def _line(part: pl.DataFrame, aliases: dict[str, str], maps: set[str]) -> pl.Series:
    """The lines of records that all lack what the first one lacks."""
    there = [column for column in part if column[0] is not None]
    lists = [column.name for column in there if column.name in maps and column.dtype == pl.List]
    plain = [_complete(column).alias(aliases[column.name]) for column in there if column.name not in lists]
    members = [pl.struct(plain).struct.json_encode().str.head(-1), *(_entries(name, aliases[name]) for name in lists)]
    return part.select(pl.concat_str(pl.concat_str(members, separator=","), pl.lit("}"))).to_series()


def _complete(column: pl.Series) -> pl.Series:
    """A struct without the fields that are null in all of it."""
    if not isinstance(column.dtype, pl.Struct):
        return column
    return pl.DataFrame([field for field in column.struct.unnest() if field[0] is not None]).to_struct()


def _entries(name: str, alias: str) -> pl.Expr:
    """A list of structs ``key`` and ``value`` as a member of an object."""
    member = pl.element().struct.json_encode().str.replace(_ENTRY, "${1}:${2}")
    inner = pl.col(name).list.eval(member).list.join(",")
    key = pl.struct(pl.lit(0).alias(alias)).struct.json_encode().str.slice(1).str.head(-2)
    return pl.concat_str(key, pl.lit("{"), inner, pl.lit("}"))
