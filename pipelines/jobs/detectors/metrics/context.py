"""The column `context` of verdicts: the numbers by name that explanations need; null for most rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from models.numbers.arrays import Array, Ints
from models.verdicts import SeriesVerdicts

NAMED = pl.List(pl.Struct({"key": pl.String, "value": pl.Float64}))
"""The type of a column of numbers by name: a list of entries, as few rows have any, and different ones."""

KEYS = (
    *("values", "watched", "metrics", "lowest", "highest", "run", "run_for", "ordinary", "same_for"),
    *("before", "level", "known", "absent"),
    *("peers", "theirs", "early", "inherited"),
)
"""Names in the context of a metric's verdict: `models.series.past`, `models.regimes`, `Fleet`. Three come first, and
``inherited`` last."""


def named(rows: Ints, keys: pl.Series, values: Array, n: int) -> pl.Series:
    """Makes a column of numbers by name for n rows; null for rows without numbers.

    Args:
        rows: The row of each number, ascending, shape (m,).
        keys: The name of each number, shape (m,).
        values: The numbers; NaN is left out, shape (m,).
        n: Number of rows of the column.

    >>> named(np.array([1, 1]), pl.Series(["cpu", "mem"]), np.array([0.9, 0.1]), 2).to_list()
    [None, [{'key': 'cpu', 'value': 0.9}, {'key': 'mem', 'value': 0.1}]]
    """
    there = np.flatnonzero(np.isfinite(values))
    counts = np.bincount(rows[there], minlength=n)
    entries = pl.DataFrame({"key": keys[there].cast(pl.String), "value": values[there]}).to_struct()
    # pyarrow would import pandas to make an array of NumPy's, which takes half a second of a short command
    ends, empty = (
        pl.Series(values).to_arrow() for values in (np.append(0, np.cumsum(counts)).astype(np.int32), counts == 0)
    )
    lists = pa.ListArray.from_arrays(ends, entries.to_arrow(), mask=empty)
    return pl.Series(lists).cast(NAMED)


def learned_from(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Adds the columns ``values``, ``clock`` and ``metrics`` from the contexts of verdicts; null if not known.

    ``values`` is how many values the series had before, with those that it inherited, ``clock`` the mean of the
    milliseconds between its own, ``metrics`` how many metrics of its machine were judged at the same time. Verdicts on
    logs have no context.

    >>> known = [("values", 1440.0), ("watched", 86_400_000.0), ("metrics", 12.0), ("inherited", 60.0)]
    >>> known = [{"key": key, "value": value} for key, value in known]
    >>> entries = pl.Series([known[:3], known, [{"key": "absent", "value": 1.0}], None], dtype=NAMED)
    >>> learned_from(pl.DataFrame({"context": entries})).select("values", "clock", "metrics").rows()
    [(1440.0, 60000.0, 12.0), (1500.0, 60000.0, 12.0), (None, None, None), (None, None, None)]
    """
    if "context" not in verdicts.columns:
        return verdicts
    numbers = [(place, pl.col("context").list.get(place, null_on_oob=True).struct) for place in (0, 1, 2, -1)]
    own, watched, metrics, inherited = (
        pl.when(number.field("key") == KEYS[place]).then(number.field("value")) for place, number in numbers
    )
    clock = pl.when(own > 0).then(watched / own)
    return verdicts.with_columns(values=own + inherited.fill_null(0.0), clock=clock, metrics=metrics)


def absent(rows: Ints, n: int) -> pl.Series:
    """The contexts of n joined verdicts: the number `absent` on the rows that end an absence, and nothing else.

    >>> absent(np.array([1]), 2).to_list()
    [None, [{'key': 'absent', 'value': 1.0}]]
    """
    return named(rows, pl.Series(["absent"]).new_from_index(0, len(rows)), np.ones(len(rows)), n)


class Contexts:
    """The contexts of the verdicts of a frame.

    Args:
        verdicts: The verdicts of the models.
        metrics: For each verdict how many metrics of its machine were judged at the same time, shape (n,).
    """

    def __init__(self, verdicts: SeriesVerdicts, metrics: Ints) -> None:
        self._rows: list[Ints] = []
        self._keys: list[Ints] = []
        self._values: list[Array] = []
        at = np.flatnonzero(np.isfinite(verdicts.context["values"]))
        for key, name in enumerate(KEYS):
            if name in verdicts.context:
                self._put(at, key, verdicts.context[name][at])
        self._put(at, KEYS.index("metrics"), metrics[at].astype(np.float64))

    def absent(self, rows: Ints) -> None:
        """Sets the number `absent` of rows that end an absence."""
        self._put(rows, KEYS.index("absent"), np.ones(len(rows)))

    def column(self, n: int) -> pl.Series:
        """The contexts as a column of n rows."""
        if not self._rows:
            return pl.Series([None], dtype=NAMED).new_from_index(0, n)
        rows, keys, values = np.concatenate(self._rows), np.concatenate(self._keys), np.concatenate(self._values)
        order = np.lexsort((keys, rows))
        names = pl.Series(KEYS, dtype=pl.String).gather(keys[order])
        return named(rows[order], names, values[order], n)

    def _put(self, rows: Ints, key: int, values: Array) -> None:
        if len(rows):
            self._rows.append(rows)
            self._keys.append(np.full(len(rows), key))
            self._values.append(values)
