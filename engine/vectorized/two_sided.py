"""The stored records of a join: those of both sides in one segment."""

from __future__ import annotations

import polars as pl

from engine.state.segments import ShardState, pack, unpack


def load(state: ShardState, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Loads two tables that `save` has written; frames without columns if there are none."""
    stored = state.get(name)
    tables = unpack(stored) if stored else {}
    return tables.get("left", pl.DataFrame()), tables.get("right", pl.DataFrame())


def save(state: ShardState, name: str, left: pl.DataFrame, right: pl.DataFrame) -> None:
    """Stores two tables as one segment."""
    tables = {side: table for side, table in (("left", left), ("right", right)) if table.height}
    if tables:
        state.put(name, pack(tables))
    else:
        state.remove(name)
