"""The meaning of every aggregate but `Rate`, in plain Python, over the records of one window in event-time order.

The results of sketches (`Quantile`, `Distinct`, `TopK` beyond its capacity) lie within their stated errors of these.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from engine.aggregates import (
    AnyAggregate,
    Constant,
    Count,
    CustomAggregate,
    Distinct,
    First,
    Histogram,
    Last,
    Max,
    MaxBy,
    Mean,
    Min,
    MinBy,
    Quantile,
    Signed,
    Std,
    Sum,
    TopK,
    Variance,
    as_text,
)
from engine.spec.errors import NewnormalError
from engine.spec.operator import Row


@singledispatch
def aggregated(aggregate: AnyAggregate, records: Sequence[Row]) -> object:
    """The result of an aggregate; ``aggregated.register(Mine, function)`` adds a user's own aggregate.

    Raises:
        NewnormalError: ``PROCESSOR_UNKNOWN`` if none is registered for its type.
    """
    name = type(aggregate).__name__
    raise NewnormalError("PROCESSOR_UNKNOWN", f"{name} has no reference", accepted=f"aggregated.register({name}, ...)")


def values_of(records: Sequence[Row], column: str) -> list[float]:
    """The values of a column as floats, without nulls."""
    return [float(value) for value in numbers_of(records, column)]


def numbers_of(records: Sequence[Row], column: str) -> list[float]:
    """The values of a column, without nulls."""
    return [record[column] for record in records if record[column] is not None]


def held(total: int) -> int:
    """A sum that 64 bits hold.

    Raises:
        OverflowError: They do not; nor do those of a float, which `math.fsum` says in the same way.
    """
    if not -(2**63) <= total < 2**63:
        raise OverflowError(f"{total} leaves 64 bits")
    return total


@aggregated.register
def _(aggregate: Count, records: Sequence[Row]) -> object:
    return len(records)


@aggregated.register
def _(aggregate: Sum, records: Sequence[Row]) -> object:
    values = numbers_of(records, aggregate.column)
    if not all(isinstance(value, int) for value in values):
        return math.fsum(values)
    return held(sum(map(int, values))) if values else None


@aggregated.register
def _(aggregate: Signed, records: Sequence[Row]) -> object:
    """A row that takes back another one removes it, before the aggregate is computed of what is left."""
    weights = [-1 if record["retraction"] else 1 for record in records]
    if aggregate.column is None:
        return sum(weights)
    known = [(r[aggregate.column], w) for r, w in zip(records, weights, strict=True) if r[aggregate.column] is not None]
    n, parts = sum(w for _, w in known), [value * w for value, w in known]
    if n <= 0:
        return None
    if isinstance(aggregate.of, Mean) or not all(isinstance(part, int) for part in parts):
        return math.fsum(parts) / (n if isinstance(aggregate.of, Mean) else 1)
    return held(sum(parts))


@aggregated.register
def _(aggregate: Mean, records: Sequence[Row]) -> object:
    values = values_of(records, aggregate.column)
    return math.fsum(values) / len(values) if values else None


@aggregated.register
def _(aggregate: Variance, records: Sequence[Row]) -> object:
    values = values_of(records, aggregate.column)
    if len(values) > 1:
        return statistics.variance(values)
    return aggregate.of_one if values else None


@aggregated.register
def _(aggregate: Std, records: Sequence[Row]) -> object:
    values = values_of(records, aggregate.column)
    if len(values) > 1:
        return statistics.stdev(values)
    return aggregate.of_one if values else None


@aggregated.register
def _(aggregate: Min, records: Sequence[Row]) -> object:
    return min(numbers_of(records, aggregate.column), default=None)


@aggregated.register
def _(aggregate: Max, records: Sequence[Row]) -> object:
    return max(numbers_of(records, aggregate.column), default=None)


@aggregated.register
def _(aggregate: MinBy, records: Sequence[Row]) -> object:
    return min(_by(records, aggregate.by, aggregate.column), default=(None, None))[1]


@aggregated.register
def _(aggregate: MaxBy, records: Sequence[Row]) -> object:
    known = _by(records, aggregate.by, aggregate.column)
    best = max((by for by, _ in known), default=None)
    return min((value for by, value in known if by == best), default=None)


def _by(records: Sequence[Row], by: str, column: str) -> list[tuple[Any, Any]]:
    """The pairs of two columns of the records that have both."""
    return [(r[by], r[column]) for r in records if r[by] is not None and r[column] is not None]


@aggregated.register
def _(aggregate: First, records: Sequence[Row]) -> object:
    return min(_timed(records, aggregate.time, aggregate.column), default=(None, None))[1]


@aggregated.register
def _(aggregate: Last, records: Sequence[Row]) -> object:
    return max(_timed(records, aggregate.time, aggregate.column), default=(None, None))[1]


@aggregated.register
def _(aggregate: Constant, records: Sequence[Row]) -> object:
    return next((record[aggregate.column] for record in records if record[aggregate.column] is not None), None)


@aggregated.register
def _(aggregate: Distinct, records: Sequence[Row]) -> object:
    return len({record[aggregate.column] for record in records} - {None}) or None


@aggregated.register
def _(aggregate: Histogram, records: Sequence[Row]) -> object:
    counts = [0] * (len(aggregate.edges) + 1)
    for value in values_of(records, aggregate.column):
        counts[sum(edge <= value for edge in aggregate.edges)] += 1
    return counts if any(counts) else None


@aggregated.register
def _(aggregate: Quantile, records: Sequence[Row]) -> object:
    values = sorted(values_of(records, aggregate.column))
    return values[max(0, math.ceil(aggregate.q * len(values)) - 1)] if values else None


@aggregated.register
def _(aggregate: TopK, records: Sequence[Row]) -> object:
    values = (record[aggregate.column] for record in records)
    counts = Counter(as_text(value) for value in values if value is not None)
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: aggregate.k]
    return [{"key": key, "value": n} for key, n in top] or None


@aggregated.register
def _(aggregate: CustomAggregate, records: Sequence[Row]) -> object:
    """The result of ``exact``; without it, of one partial of all records, which tests merging but not the lift."""
    return aggregate.exact(records) if aggregate.exact is not None else aggregate.of_all(records)


def _timed(records: Sequence[Row], time: str, column: str) -> list[tuple[int, object]]:
    """Time and value of the records that have a value."""
    return [(record[time], record[column]) for record in records if record[column] is not None]
