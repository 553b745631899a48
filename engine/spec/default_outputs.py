"""Default outputs: the names and record types of the topics that a job writes if its builder does not give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from engine.spec.derived import record_type
from engine.spec.errors import NewnormalError
from engine.spec.output import Output, Side
from engine.spec.record import Record


def json_output(
    name: str, record: type[Record] | None, columns: pa.Schema | None, key: Sequence[str], where: str
) -> Output:
    """The main output: JSON in a topic of the job's name.

    Args:
        name: The job's.
        record: The type of its records; ``None``: one with all columns of the results.
        columns: The columns of the results, if they are known.
        key: The key of the stream.
        where: The call that needs the output, for messages.

    Raises:
        NewnormalError: ``OUTPUT_UNKNOWN`` if neither type nor columns are known, or no type can be made of them.
    """
    if record is not None:
        return Output(name, record, "json", by=_by(record, key))
    if columns is None:
        what = f"the columns of the results of {name} are not known: own logic may emit any"
        raise NewnormalError("OUTPUT_UNKNOWN", what, where, "a record type: write(name, Type)", "no job")
    there = [column for column in key if column in columns.names]
    if not there:
        what = f"the results of {name} have no column of the key {', '.join(key)}"
        raise NewnormalError("OUTPUT_UNKNOWN", what, where, "results that keep the key, or a record type", "no job")
    return Output(name, record_type(_title(name), columns, there, where), "json")


def late_output(name: str, forms: Iterable[pa.Schema], key: Sequence[str], where: str) -> Output:
    """The late topic: JSON with all columns that a late record may have.

    Args:
        name: The job's.
        forms: The columns of each kind of record that may be late.
        key: The key of the stream.
        where: The call that needs the output, for messages.
    """
    fields: dict[str, pa.Field] = {}
    for form in forms:
        for field in form:
            fields.setdefault(field.name, field)
    columns = fields.values() or [pa.field(column, pa.string()) for column in key]
    return Output(f"{name}.late", record_type(f"{_title(name)}Late", columns, key, where), "json")


def side_output(name: str, declared: Output | Side | type[Record] | str, main: Output) -> Side:
    """A side output from one of the values that `engine.Stream.write` accepts in ``side``."""
    if isinstance(declared, Side):
        return declared
    if isinstance(declared, Output):
        return Side(name, declared)
    if isinstance(declared, str):
        return Side(name, Output(name, main.record, main.format, main.partitions, main.by), declared)
    return Side(name, Output(name, declared, "json", by=_by(declared, [main.partitioned_by])))


def _by(record: type[Record], key: Sequence[str]) -> str:
    """The column by which a topic of such records is partitioned: the first one of its identity, else of the key."""
    return "" if record.identity else key[0]


def _title(name: str) -> str:
    """A name for a record type.

    >>> _title("word-counts.v2")
    'WordCountsV2'
    """
    return "".join(part.capitalize() for part in name.replace("-", ".").replace("_", ".").split("."))
