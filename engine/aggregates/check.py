"""Checks, when a job is built, that its aggregates can be computed together, and finds the types of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from engine.aggregates.aggregate import Aggregate, RowAggregate
from engine.aggregates.histogram import Histogram
from engine.aggregates.quantile import Quantile
from engine.aggregates.rate import ELAPSED, INCREASE, Rate
from engine.spec.columns import require, require_numbers, unknown
from engine.spec.errors import NewnormalError

_ROW = "__aggregated"


def check(aggregates: Mapping[str, object]) -> None:
    """Refuses aggregates that cannot be computed together.

    Raises:
        NewnormalError: ``AGGREGATE_INVALID`` for a value that is no aggregate; ``RATE_TWICE`` for a second `Rate`;
            ``PARTIAL_CLASH`` if two use the same column name of their partials with different meanings.
    """
    lifted: dict[str, tuple[str, pl.Expr]] = {}
    rates = [name for name, aggregate in aggregates.items() if isinstance(aggregate, Rate)]
    if len(rates) > 1:
        what = f"{len(rates)} rates: {', '.join(rates)}"
        raise NewnormalError("RATE_TWICE", what, "aggregate()", "one Rate a job; a second job for another", "no job")
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate | RowAggregate | Rate):
            what = f"{name} is {aggregate!r}"
            raise NewnormalError("AGGREGATE_INVALID", what, "aggregate()", "what engine.aggregates has", "no job")
        if not isinstance(aggregate, Aggregate):
            continue
        if set(aggregate.lift()) != set(aggregate.merge()):
            what = f"{name} lifts {sorted(aggregate.lift())}, merges {sorted(aggregate.merge())}"
            raise NewnormalError("AGGREGATE_INVALID", what, "aggregate()", "the same columns", "no job")
        for column, expr in aggregate.lift().items():
            owner, other = lifted.setdefault(column, (name, expr))
            if not expr.meta.eq(other):
                what = f"{owner} and {name} both have a partial column {column!r}, of different meaning"
                raise NewnormalError("PARTIAL_CLASH", what, "aggregate()", "names of one's own", "no job")


def result_types(
    aggregates: Mapping[str, Aggregate | RowAggregate | Rate], columns: pa.Schema, key: Sequence[str] = ()
) -> dict[str, pa.DataType]:
    """The type of each result column, found by aggregating one record.

    Args:
        aggregates: The aggregate of each result column.
        columns: The columns of the records.
        key: The key columns.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN`` if an aggregate reads a column that does not exist; ``AGGREGATE_INVALID`` if
            it cannot be computed for the type of its column, or keeps a column that has the name of the key's.

    >>> from engine.aggregates import Count, Mean
    >>> result_types({"n": Count(), "mean": Mean("v")}, pa.schema([("v", pa.float64())]))
    {'n': DataType(int64), 'mean': DataType(double)}
    """
    frame = pl.DataFrame(schema=pl.Schema(columns)).clear(1)  # a row of nulls; Arrow, asked to make it, loads pandas
    frame = frame.with_columns(pl.lit(0, pl.Int64).alias(_ROW))
    return {name: _type(name, aggregate, frame, columns, [*key, _ROW]) for name, aggregate in aggregates.items()}


def _type(name: str, aggregate: Any, frame: pl.DataFrame, columns: pa.Schema, by: list[str]) -> pa.DataType:
    where = f"aggregate({name}={aggregate!r})"
    read = [getattr(aggregate, attribute, None) for attribute in ("column", "by", "time")]
    require([column for column in read if isinstance(column, str)], columns, where)
    if isinstance(aggregate, (Histogram, Quantile, Rate)):
        require_numbers([aggregate.column], columns, where)
    try:
        results = _result(name, aggregate, frame, by)
    except pl.exceptions.ColumnNotFoundError as error:
        raise unknown(error, columns, where) from None
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        what = f"{name} cannot be computed: {str(error).splitlines()[0]}"
        raise NewnormalError(
            "AGGREGATE_INVALID", what, where, "a column of a type that it can aggregate", "no job"
        ) from None
    return plain_type(results.to_arrow().type)


def _result(name: str, aggregate: Any, frame: pl.DataFrame, by: list[str]) -> pl.Series:
    if isinstance(aggregate, Rate):
        samples = frame.select(*by, aggregate.time, aggregate.column)  # as they are kept, and what is made of them
        samples.select(*by, *(pl.lit(None).alias(name) for name in (INCREASE, ELAPSED)))
        return pl.Series([None] * samples.height, dtype=pl.Float64)
    if isinstance(aggregate, Aggregate):
        lifted = frame.group_by(by).agg(expr.alias(column) for column, expr in aggregate.lift().items())
        merged = lifted.group_by(by).agg(expr.alias(column) for column, expr in aggregate.merge().items())
        return merged.select(aggregate.finish().alias(name))[name]
    return aggregate.finish(aggregate.lift(frame, by, None), by, {name: aggregate})[name]  # type: ignore[no-any-return]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that our records use: text and lists with 32-bit offsets, text without a dictionary."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain_type(field.type)) for field in kind])
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind
