"""Checks, when a job is built, that its aggregates can be computed together."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from engine.aggregates.aggregate import Aggregate, RowAggregate
from engine.aggregates.rate import Rate
from engine.spec.errors import NewnormalError


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
