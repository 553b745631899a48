"""Whether the late topic's record type can hold what may come too late; asked when a job is made, not when it runs."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from engine.spec.errors import NewnormalError
from engine.spec.output import Output


def check(job: str, late: Output | None, forms: Iterable[pa.Schema]) -> None:
    """Refuses a late topic whose records lack what they need, or would have to change their type.

    Args:
        job: Name of the job.
        late: Its late topic; ``None``: what comes too late is counted, not written.
        forms: The columns of each sort of record that may come too late.

    Raises:
        NewnormalError: ``LATE_MISFIT``.
    """
    if late is None:
        return
    for form in forms:
        for field in late.record.arrow_schema():
            _fits(field, form, job, late)


def _fits(field: pa.Field, form: pa.Schema, job: str, late: Output) -> None:
    record = late.record.__name__
    if field.name in form.names:
        kind = form.field(field.name).type
        if _turns_into(kind, field.type):
            return
        what = f"{record}.{field.name} is {field.type}, but {field.name} of late records is {kind}"
    elif field.nullable:
        return
    else:
        what = f"{record} needs {field.name}, but records with {', '.join(form.names)} can be late"
    raise NewnormalError(
        "LATE_MISFIT",
        what,
        f"late topic {late.topic} of job {job}",
        "a record type with each column of its type, and optional fields for those that some records lack",
        "the job was not made",
    )


def _turns_into(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether no value of one type can fail to become one of another."""
    if kind == wanted or pa.types.is_null(kind) or pa.types.is_nested(wanted):
        return True
    if pa.types.is_floating(wanted):
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(kind) and kind.bit_width <= wanted.bit_width)
    return _text(kind) and _text(wanted)


def _text(kind: pa.DataType) -> bool:
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_string_view(values))
