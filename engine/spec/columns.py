"""Checks, when a job is built, that the columns which a specification names exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from engine.spec.errors import NewnormalError


def require(names: Iterable[str], schema: pa.Schema, where: str) -> None:
    """Refuses names of columns that do not exist.

    Args:
        names: The names.
        schema: The columns at that point of the stream.
        where: The call that names them, for the message.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN`` with the columns that exist.

    >>> require(["word"], pa.schema([("word", pa.string())]), "key_by()")
    """
    if missing := [name for name in names if name not in schema.names]:
        raise unknown(", ".join(missing), schema, where)


def unknown(column: str | Exception, schema: pa.Schema, where: str) -> NewnormalError:
    """The error that there is no such column; what Polars says of one names it between quotes.

    >>> print(unknown("wrod", pa.schema([("word", pa.string())]), "key_by()").what)
    there is no column wrod
    """
    if isinstance(column, str):
        name = column
    else:
        first, _, rest = str(column).partition('"')
        name = rest.partition('"')[0] or first
    there = ", ".join(name for name in schema.names if not name.startswith("__"))
    return NewnormalError(
        "COLUMN_UNKNOWN", f"there is no column {name}", where, there or "none: no columns are left", "no job"
    )


def check_names(names: Sequence[str], where: str) -> None:
    """Refuses columns of one name, and names that begin with two underscores: these are the engine's own.

    Raises:
        NewnormalError: ``NAME_RESERVED``.

    >>> check_names(["k", "n"], "aggregate()")
    """
    if taken := sorted({name for name in names if names.count(name) > 1 or name.startswith("__")}):
        what = f"{', '.join(taken)} is the name of two columns of the results, or begins with two underscores"
        raise NewnormalError("NAME_RESERVED", what, where, "a name of its own: map(...), select(...)", "no job")


def require_numbers(names: Iterable[str], schema: pa.Schema, where: str) -> None:
    """Refuses columns that are no numbers; see `require` for the arguments.

    Raises:
        NewnormalError: ``AGGREGATE_INVALID``.
    """
    for name in names:
        kind = schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            accepted = ", ".join(f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type))
            raise NewnormalError("AGGREGATE_INVALID", f"{name} is {kind}, not a number", where, accepted, "no job")
