"""What operators on two streams keep: the records of both sides as one segment of state."""

from __future__ import annotations

import polars as pl

from engine.state.segments import ShardState, pack, unpack


def load(state: ShardState, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two tables as `save` wrote them; without columns if there are none."""
    stored = state.get(name)
    tables = unpack(stored) if stored else {}
    return tables.get("left", pl.DataFrame()), tables.get("right", pl.DataFrame())


def save(state: ShardState, name: str, left: pl.DataFrame, right: pl.DataFrame) -> None:
    """Two tables as one segment."""
    tables = {side: table for side, table in (("left", left), ("right", right)) if table.height}
    if tables:
        state.put(name, pack(tables))
    else:
        state.remove(name)


def stacked(*tables: pl.DataFrame) -> pl.DataFrame:
    """Tables one below the other; those without rows do not matter."""
    some = [table for table in tables if table.height]
    return pl.concat(some, how="diagonal_relaxed") if some else pl.DataFrame()
