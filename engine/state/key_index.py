"""Finds the rows of keys in a table with many keys, at a cost that follows the keys that are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.columns.arrays import Ints

_MOST_CHUNKS = 16


class KeyIndex:
    """Keys in order of their first appearance, and the row of each; rows are found by sorted hashes.

    Args:
        names: Names of the parts of a key, which are texts.

    Attributes:
        keys: The key of each row, columns ``names``.
        hashes: Hashes of the keys, ascending, shape (n,).
        rows: The row of each hash, shape (n,).

    >>> index = KeyIndex(["machine"])
    >>> index.add(pl.DataFrame({"machine": ["b", "a", "b"]}))
    array([0, 1, 0])
    >>> index.find(pl.DataFrame({"machine": ["a", "c"]}))
    array([ 1, -1])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.keys = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
        self.hashes: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.rows: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self.keys.height

    def find(self, keys: pl.DataFrame) -> Ints:
        """The row of each key, -1 for those that are not known; shape (n,)."""
        places = np.full(keys.height, -1, np.int64)
        if not keys.height or not len(self):
            return places
        hashes = _hashes(keys)
        at, left = np.searchsorted(self.hashes, hashes), np.arange(keys.height)
        while len(left):  # one round, and one more for each key that has the hash of another
            left = left[at[left] < len(self)]
            left = left[self.hashes[at[left]] == hashes[left]]
            rows = self.rows[at[left]]
            same = _equal(self.keys[rows], keys[left])
            places[left[same]] = rows[same]
            left = left[~same]
            at[left] += 1
        return places

    def add(self, keys: pl.DataFrame) -> Ints:
        """The row of each key; keys that are not known get new rows, in the order in which they come."""
        places = self.find(keys)
        missing = np.flatnonzero(places < 0)
        if len(missing):
            new = keys[missing].unique(maintain_order=True)
            hashes, height = _hashes(new), len(self)
            order = np.argsort(hashes, kind="stable")
            at = np.searchsorted(self.hashes, hashes[order])
            self.hashes = np.insert(self.hashes, at, hashes[order])
            self.rows = np.insert(self.rows, at, height + order)
            grown = pl.concat([self.keys, new])
            self.keys = grown.rechunk() if grown.n_chunks() > _MOST_CHUNKS else grown
            places[missing] = self.find(keys[missing])
        return places


def _hashes(keys: pl.DataFrame) -> npt.NDArray[np.uint64]:
    return keys.hash_rows(1).to_numpy()


def _equal(keys: pl.DataFrame, others: pl.DataFrame) -> npt.NDArray[np.bool_]:
    equal = np.ones(keys.height, np.bool_)
    for one, other in zip(keys, others, strict=True):
        equal &= one.eq_missing(other).to_numpy()
    return equal
