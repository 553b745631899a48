"""Results that their type cannot hold: they are left out, while the operator makes dead letters of them."""

from __future__ import annotations

from collections.abc import Sequence

from engine.aggregates import AnyAggregate
from engine.reference.aggregates import aggregated
from engine.spec.operator import Row

_BEYOND = "__beyond"


def computed(name: str, aggregate: AnyAggregate, records: Sequence[Row]) -> Row:
    """The column of an aggregate; or the mark that its result cannot be held."""
    try:
        return {name: aggregated(aggregate, records)}
    except OverflowError:
        return {name: None, _BEYOND: name}


def without_beyond(rows: Sequence[Row]) -> list[Row]:
    """The results without those that cannot be held."""
    return [row for row in rows if _BEYOND not in row]
