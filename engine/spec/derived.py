"""Makes record types from columns, for outputs for which nobody has defined a record type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pydantic import create_model

from engine.spec.errors import NewnormalError
from engine.spec.record import Instant, Keyword, Record

_INSTANTS = frozenset({"window_start", "window_end", "left_time", "right_time"})


def record_type(name: str, columns: Iterable[pa.Field], key: Sequence[str], where: str) -> type[Record]:
    """A record type with the given columns. Those of the key are required, the others are optional.

    Args:
        name: Name of the type.
        columns: The columns; those that begin with two underscores are the engine's own and left out.
        key: The columns that make up its identity, together with the bounds of a window if it has them.
        where: The call that needs the type, for messages.

    Raises:
        NewnormalError: ``OUTPUT_UNKNOWN`` if a column is of a type that no record can have.

    >>> columns = pa.schema([("word", pa.string()), ("window_end", pa.int64()), ("n", pa.int64())])
    >>> Counts = record_type("Counts", columns, ["word"], "write()")
    >>> Counts(word="a", window_end=10, n=2).to_json(), Counts.identity
    (b'{"word":"a","window_end":10,"n":2}', ('word', 'window_end'))
    """
    fields: dict[str, Any] = {}
    for column in columns:
        if column.name.startswith("__"):
            continue
        kind = Instant if column.name in _INSTANTS else _annotation(column.type)
        if kind is None:
            what = f"column {column.name} is of type {column.type}"
            raise NewnormalError("OUTPUT_UNKNOWN", what, where, "a record type of its own: write(name, Type)", "no job")
        fields[column.name] = (kind, ...) if column.name in key else (kind | None, None)
    record: type[Record] = create_model(name, __base__=Record, **fields)
    record.identity = (*key, *(bound for bound in ("window_start", "window_end") if bound in fields))
    return record


_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
    (pa.types.is_dictionary, Keyword),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_string_view, str),
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_null, float),
)


def _annotation(kind: pa.DataType) -> Any:
    """The Python type of a column; ``None`` if a record cannot have a field of its type."""
    for is_kind, python in _PLAIN:
        if is_kind(kind):
            return python
    if pa.types.is_map(kind):
        return dict[_annotation(kind.key_type), _annotation(kind.item_type)]  # type: ignore[misc]
    if pa.types.is_struct(kind):
        parts: dict[str, Any] = {field.name: (_annotation(field.type) | None, None) for field in kind}
        return create_model("Part", __base__=Record, **parts)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    inner = kind.value_type
    if pa.types.is_struct(inner) and [field.name for field in inner] == ["key", "value"]:
        return dict[_annotation(inner.field(0).type), _annotation(inner.field(1).type)]  # type: ignore[misc]
    return list[_annotation(inner)] if _annotation(inner) else None  # type: ignore[misc]
