"""The base of every record type: one pydantic definition from which the Arrow and Spark schemas and the JSON derive.

A field's Python name is its column name; its alias is its name in JSON (ECS or Elastic ML vocabulary).
"""

from __future__ import annotations

import re
import types
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

import orjson
import pyarrow as pa
from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from engine.spec.columns import require
from engine.spec.errors import NewnormalError


class TimeMs:
    """Marks an ``int`` field as an instant in UTC epoch milliseconds (a ``date`` in Elasticsearch)."""


class Text:
    """Marks a ``str`` field as full text for searches, not a keyword that is matched as a whole."""


class Low:
    """Marks a ``str`` field of few distinct values: dictionary-encoded in the columnar log."""


@dataclass(frozen=True)
class Without:
    """Marks a ``str`` field that must not match a pattern anywhere.

    Args:
        pattern: The pattern, as Polars and Python both read it.
        why: What is wrong with a text that matches.
    """

    pattern: str
    why: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the field, with the check."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, text: str) -> str:
        if re.search(self.pattern, text):
            raise ValueError(self.why)
        return text


Instant = Annotated[int, TimeMs(), Field(ge=-(2**53), le=2**53)]
Date = Annotated[int, TimeMs(), Field(ge=0, le=253_402_300_799_999)]
"""An instant that any calendar can show: from 1970 to the year 9999."""
Prose = Annotated[str, Text()]
Keyword = Annotated[str, Low()]
Finite = Annotated[float, AllowInfNan(False)]

_ARROW: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}


class Record(BaseModel):
    """An immutable record. Unknown fields are refused, so that a misspelt name is an error instead of a silent loss."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    identity: ClassVar[tuple[str, ...]] = ()
    """The fields that identify a record: a record with the same values in them replaces it (a revision)."""

    @classmethod
    def arrow_schema(cls) -> pa.Schema:
        """The columns of this record, in order of definition."""
        return _arrow_schema(cls)

    def to_json(self) -> bytes:
        """One line of JSON, by alias; absent optional values are left out."""
        return orjson.dumps(self.model_dump(by_alias=True, exclude_none=True, mode="json"))

    @classmethod
    def from_json(cls, raw: bytes | str) -> Self:
        """Inverse of `to_json`.

        Raises:
            pydantic.ValidationError: If the text is not one such record.
        """
        return cls.model_validate_json(raw)


@cache
def _arrow_schema(record: type[Record]) -> pa.Schema:
    fields = []
    for name, info in record.model_fields.items():
        try:
            fields.append(arrow_field(name, info))
        except NewnormalError as error:
            where = f"{record.__name__}.{name}"
            raise NewnormalError(error.code, error.what, where, error.accepted, error.now) from None
    return pa.schema(fields)


def arrow_field(name: str, info: FieldInfo) -> pa.Field:
    """The Arrow field of one pydantic field."""
    kind, optional = unwrap(info.annotation)
    low = any(isinstance(mark, Low) for mark in info.metadata)
    field = pa.field(name, _arrow_type(kind, low), nullable=optional or not info.is_required())
    default = info.get_default(call_default_factory=False)
    if not info.is_required() and isinstance(default, (int, float, str)) and not _holds(field.type, default):
        what = f"its default {default!r} is no {field.type}"
        raise NewnormalError("RECORD_INVALID", what, name, f"{field.type}", "no job")
    return field


def _holds(kind: pa.DataType, value: float | str) -> bool:
    """Whether a column can hold a value. Arrow itself would import pandas to say so, a third of a second.

    >>> [_holds(pa.int64(), value) for value in (1, 2**63, 1.0, "1")], _holds(pa.float64(), 1)
    ([True, False, False, False], True)
    """
    if pa.types.is_integer(kind):
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    return isinstance(value, (int, float)) if pa.types.is_floating(kind) else isinstance(value, str)


def _arrow_type(kind: Any, low: bool) -> pa.DataType:
    origin, inner = get_origin(kind), get_args(kind)
    mixed = origin in (Union, types.UnionType) or (origin is tuple and len({*inner} - {...}) > 1)
    if mixed or (origin is Literal and not all(isinstance(value, str) for value in inner)):
        accepted = "one type, with | None where it may be missing; the values of a Literal are text"
        what = f"no column can hold {kind}"
        raise NewnormalError("RECORD_INVALID", what, "a field of a record type", accepted, "no job")
    if origin is Literal or low:
        return pa.dictionary(pa.int32(), pa.string())
    if origin is dict:
        key, value = get_args(kind)
        return pa.map_(_arrow_type(key, False), _arrow_type(value, False))
    if origin in (list, tuple):
        return pa.list_(_arrow_type(unwrap(get_args(kind)[0])[0], False))
    if isinstance(kind, type) and issubclass(kind, Record):
        return pa.struct(list(kind.arrow_schema()))
    if kind not in _ARROW:
        accepted = "str, int, float, bool, bytes, Instant, Keyword, Literal, list, dict, a Record; each with | None"
        raise NewnormalError(
            "RECORD_INVALID", f"no column can hold {kind}", "a field of a record type", accepted, "no job"
        )
    return _ARROW[kind]


def check_time(record: type[Record], time: str) -> None:
    """Refuses a record type without a time, or with a field that no column can hold.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN``; ``RECORD_INVALID``.
    """
    schema, where = record.arrow_schema(), f"record type {record.__name__}"
    require([time], schema, f"{where}, time={time!r}")
    field = schema.field(time)
    if field.type != pa.int64() or field.nullable:
        what = f"the time column {time} is {field.type}{', which may be missing' if field.nullable else ''}"
        raise NewnormalError("RECORD_INVALID", what, where, f"{time}: Instant, or int: epoch milliseconds", "no job")


def check_instants(columns: pa.Schema, time: str, where: str) -> None:
    """Refuses an event time that steps have made anything but epoch milliseconds.

    Raises:
        NewnormalError: ``EXPRESSION_INVALID``.
    """
    if time in columns.names and columns.field(time).type != pa.int64():
        what = f"the event time {time} is {columns.field(time).type}"
        raise NewnormalError("EXPRESSION_INVALID", what, where, "whole numbers: epoch milliseconds", "no job")


def unwrap(annotation: Any) -> tuple[Any, bool]:
    """The plain type below ``Annotated`` and ``| None``, and whether ``None`` was allowed."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return unwrap(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        rest = [a for a in get_args(annotation) if a is not type(None)]
        kind = unwrap(rest[0])[0] if len(rest) == 1 else Union[tuple(rest)]  # noqa: UP007
        return kind, len(rest) < len(get_args(annotation))
    return annotation, False
