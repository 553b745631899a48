"""Packs several key columns into one 64-bit integer, by which sorting and grouping are several times faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

LARGEST = 2**62
_GROUP = "__group"


def packed(frame: pl.DataFrame, columns: Sequence[str], room: int = 1) -> pl.Series | None:
    """One unsigned integer for each distinct combination of columns, valid within one frame only.

    Args:
        frame: The rows. Only integer and categorical columns can be packed.
        columns: The columns to pack.
        room: Factor by which the caller will multiply the numbers.

    Returns:
        The numbers, or ``None`` if they do not fit into 64 bits or a column cannot be packed.

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


def alike(frames: Sequence[pl.DataFrame], columns: Sequence[str]) -> list[npt.NDArray[np.uint64]]:
    """One integer for each distinct combination of columns, the same in all frames; nulls are equal.

    >>> a, b = pl.DataFrame({"k": ["x", None]}), pl.DataFrame({"k": [None, "y"]})
    >>> [codes.tolist() for codes in alike([a, b], ["k"])]
    [[0, 1], [1, 2]]
    """
    rows = pl.concat([frame.select(columns) for frame in frames], how="vertical_relaxed")
    codes = packed(rows, columns)
    if codes is None:
        distinct = rows.unique(maintain_order=True).with_row_index(_GROUP)
        codes = rows.join(distinct, on=columns, how="left", nulls_equal=True, maintain_order="left")[_GROUP]
    return np.split(codes.to_numpy().astype(np.uint64), np.cumsum([frame.height for frame in frames])[:-1])


def firsts(codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """For each row, the row at which its number occurs for the first time.

    >>> firsts(np.array([5, 2, 5, 2], np.uint64)).tolist()
    [0, 1, 0, 1]
    """
    order, same = ordered(codes)
    starts = np.flatnonzero(np.concatenate([[True], same[1:] != same[:-1]])) if len(same) else np.zeros(0, np.int64)
    first = np.empty(len(codes), np.int64)
    first[order] = np.repeat(order[starts], np.diff(np.append(starts, len(codes))))
    return first


def ordered(codes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """The stable order that sorts some numbers, and the numbers in that order.

    If both fit into 64 bits, a number and its row are sorted as one integer, which is several times faster.

    >>> [some.tolist() for some in ordered(np.array([7, 3, 7], np.uint64))]
    [[1, 0, 2], [3, 7, 7]]
    """
    bits = max(len(codes) - 1, 0).bit_length()
    if not len(codes) or int(codes.max()).bit_length() + bits > 64:
        order = np.argsort(codes, kind="stable")
        return order, codes[order]
    both = np.sort((codes << np.uint64(bits)) | np.arange(len(codes), dtype=np.uint64))
    return (both & np.uint64((1 << bits) - 1)).astype(np.int64), both >> np.uint64(bits)


def _bounds(values: pl.Series) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)  # type: ignore[arg-type]
