"""Several inputs of one job: their common columns, and the column that says which input a record came from."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.spec.columns import require
from engine.spec.errors import NewnormalError
from engine.spec.source import Source

INPUT = "__input"
"""Column of the records of a job with several inputs: the number of the input that each came from."""


def checked(inputs: Sequence[Source]) -> None:
    """Refuses inputs that one job cannot read together.

    Raises:
        NewnormalError: ``INPUTS_CLASH`` if they work on different kinds of time, have their time in columns of
            different names, or have columns of one name and different types.
    """
    if len({source.clock for source in inputs}) > 1:
        what = "time is " + ", ".join(source.clock for source in inputs) + " time"
        raise NewnormalError("INPUTS_CLASH", what, "inputs of a job", "one of them for all: merge(...).timed(...)")
    if len({source.time for source in inputs}) > 1:
        what = "event time is in columns " + ", ".join(source.time for source in inputs)
        raise NewnormalError("INPUTS_CLASH", what, "inputs of a job", "one name: select(time=...)")
    if len(inputs) > 1:
        schema(inputs)


def check_key(inputs: Sequence[Source], key: Sequence[str]) -> None:
    """Refuses a key whose columns do not exist, or whose first column cannot decide the shard.

    Raises:
        NewnormalError: ``KEY_MISSING`` without a key; ``COLUMN_UNKNOWN`` if an input that is not broadcast lacks a
            column of it; ``KEY_INVALID`` if the first column is no text: its text is hashed to find the shard.
    """
    keyed = [source for source in inputs if not source.broadcast]
    if not key:
        columns = ", ".join(keyed[0].columns().names)
        raise NewnormalError("KEY_MISSING", "the stream has no key", "key_by()", f"some of {columns}", "no job")
    for source in keyed:
        columns = source.columns()
        require(key, columns, "key_by()")
        kind = columns.field(key[0]).type
        if not _text(kind):
            what = f"the first key column {key[0]} is {kind}"
            accepted = f'text, e.g. map({key[0]}="cast({key[0]} as varchar)") before key_by("{key[0]}")'
            raise NewnormalError("KEY_INVALID", what, "key_by()", accepted, "no job")


def schema(inputs: Sequence[Source]) -> pa.Schema:
    """The columns of all inputs together. With several inputs each column may be null, and `INPUT` is added."""
    if len(inputs) == 1:
        return inputs[0].columns()
    fields: dict[str, pa.Field] = {}
    for source in inputs:
        for field in source.columns():
            earlier = fields.get(field.name)
            kind = field.type if earlier is None else _common(field, earlier.type)
            fields[field.name] = pa.field(field.name, kind)
    return pa.schema([*fields.values(), pa.field(INPUT, pa.int8())])


def _common(field: pa.Field, other: pa.DataType) -> pa.DataType:
    if field.type == other:
        return other
    if _text(field.type) and _text(other):
        return pa.string()
    what = f"column {field.name!r} is {other} in one input and {field.type} in another"
    raise NewnormalError("INPUTS_CLASH", what, "inputs of a job", "one type, or names of their own: select(...)")


def _text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)))
