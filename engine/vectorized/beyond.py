"""Results whose type cannot hold them, such as a sum beyond 64 bits: they leave the stream and become dead letters."""

from __future__ import annotations

import polars as pl

from engine.aggregates.signed import RETRACTION

BEYOND = "__beyond"
"""Column of results: the name of the first aggregate that cannot be held; null or no column: all can."""


def set_apart(results: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The results that can be held, and the others; what takes back one of the others is left out.

    >>> rows = pl.DataFrame({"n": [1, None], BEYOND: [None, "n"]})
    >>> [some.rows() for some in set_apart(rows)]
    [[(1,)], [(None, 'n')]]
    """
    if BEYOND not in results.columns:
        return results, results.clear()
    held = results[BEYOND].is_null()
    if held.all():
        return results.drop(BEYOND), results.clear()
    others = results.filter(~held)
    return results.filter(held).drop(BEYOND), others.filter(~pl.col(RETRACTION)) if RETRACTION in others else others
