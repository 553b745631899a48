"""Checks, when a job is built, that the record types of its outputs can hold what is written to them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from engine.spec.errors import NewnormalError
from engine.spec.output import Output

BOOKKEEPING = frozenset(
    {"window_start", "window_end", "revision", "pane", "timing", "retraction", "left_time", "right_time"}
)
"""Columns that the engine adds to results: the record type of an output may leave them out."""


def check_results(job: str, output: Output, results: pa.Schema | None, time: str) -> None:
    """Refuses an output whose record type lacks a column of the results, or has one that the results miss.

    Args:
        job: Name of the job.
        output: The output.
        results: The columns of the results; ``None`` if they are not known: then nothing is refused.
        time: The event-time column of the results, which an output may leave out.

    Raises:
        NewnormalError: ``OUTPUT_MISFIT``.
    """
    if results is None:
        return
    declared, name = output.record.arrow_schema(), output.record.__name__
    wrong = []
    for field in results:
        if (
            field.name not in declared.names
            and not field.name.startswith("__")
            and field.name not in {*BOOKKEEPING, time}
        ):
            wrong.append(f"{name} lacks {field.name}, which the results have")
    for field in declared:
        if misfit := _misfit(field, results, name, "the results", "which the results miss"):
            wrong.append(misfit)
    if wrong:
        columns = ", ".join(f"{field.name} ({field.type})" for field in results if not field.name.startswith("__"))
        accepted = f"a record type for the columns {columns}; or select(...) before write()"
        raise NewnormalError(
            "OUTPUT_MISFIT", "; ".join(wrong), f"output {output.topic} of job {job}", accepted, "no job"
        )


def check_late(job: str, late: Output | None, forms: Iterable[pa.Schema]) -> None:
    """Refuses a late topic whose record type needs columns that late records lack, or have in another type.

    Args:
        job: Name of the job.
        late: Its late topic; ``None``: late records are counted but not written.
        forms: The columns of each kind of record that may be late.

    Raises:
        NewnormalError: ``LATE_MISFIT``.
    """
    if late is None:
        return
    for form in forms:
        for field in late.record.arrow_schema():
            missing = f"but records with {', '.join(form.names)} can be late"
            if misfit := _misfit(field, form, late.record.__name__, "late records", missing):
                accepted = (
                    "a record type with each column of its type, and optional fields for those that some records lack"
                )
                where = f"late topic {late.topic} of job {job}"
                raise NewnormalError("LATE_MISFIT", misfit, where, accepted, "the job was not made")


def _misfit(field: pa.Field, columns: pa.Schema, record: str, of: str, missing: str) -> str:
    """Why a field of a record type cannot be written from some columns; empty if it can.

    Args:
        field: The field.
        columns: The columns that are written.
        record: Name of the record type.
        of: Name for the owner of the columns, for the message.
        missing: End of the message if a required column does not exist.
    """
    if field.name in columns.names:
        kind = columns.field(field.name).type
        fits = _turns_into(kind, field.type)
        return "" if fits else f"{record}.{field.name} is {field.type}, but {field.name} of {of} is {kind}"
    return "" if field.nullable else f"{record} needs {field.name}, {missing}"


def _turns_into(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of one type can be converted to another type."""
    if kind == target or pa.types.is_null(kind) or pa.types.is_nested(target):
        return True
    if pa.types.is_floating(target):
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
    if pa.types.is_integer(target):
        return bool(pa.types.is_integer(kind) and kind.bit_width <= target.bit_width)
    return _text(kind) and _text(target)


def _text(kind: pa.DataType) -> bool:
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_string_view(values))
