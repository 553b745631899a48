"""Several key columns as one integer: what is sorted or grouped by one 64-bit number is several times faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

LARGEST = 2**62
_GROUP = "__group"


def packed(frame: pl.DataFrame, columns: Sequence[str], room: int = 1) -> pl.Series | None:
    """One unsigned integer for each distinct combination of columns; of rows of one frame only.

    Args:
        frame: Its columns are integers or categoricals; others cannot be packed.
        columns: What to pack.
        room: Factor by which the caller will multiply the numbers.

    Returns:
        The numbers, or ``None`` where they would not fit or a column cannot be packed.

    >>> packed(pl.DataFrame({"a": [5, 5, 7], "b": [1, 2, 1]}), ["a", "b"]).to_list()
    [0, 1, 4]
    """
    total, codes = 1, pl.lit(0, pl.UInt64)
    for column in columns:
        values = frame[column]
        number = pl.col(column)
        if values.dtype == pl.Categorical:
            values, number = values.to_physical(), number.to_physical()
        if not values.dtype.is_integer() or values.null_count():
            return None
        low, high = _bounds(values)
        codes = codes * (high - low + 1) + (number - low).cast(pl.UInt64)
        total *= high - low + 1
    if total * room > LARGEST:
        return None
    return frame.select(codes.alias("packed")).to_series()


def grouped(
    rows: pl.DataFrame, by: Sequence[str], columns: Mapping[str, pl.Expr], group: pl.Series | None = None
) -> pl.DataFrame:
    """Aggregates rows by some columns, through one packed integer where the columns allow it."""
    group = packed(rows, by) if group is None else group
    named = [expr.alias(name) for name, expr in columns.items()]
    if group is None:
        return rows.group_by(by).agg(named)
    firsts = [pl.col(column).first() for column in by]
    return rows.with_columns(group.alias(_GROUP)).group_by(_GROUP).agg(*firsts, *named).drop(_GROUP)


def _bounds(values: pl.Series) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)  # type: ignore[arg-type]
