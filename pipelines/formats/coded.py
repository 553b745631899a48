"""Codes of columns of texts: what is done once for each distinct text need not be done for each row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Codes = npt.NDArray[np.int64]


def codes_of(column: pl.Series) -> tuple[Codes, list[str]]:
    """The number of each row's text among the distinct texts, and these texts; null counts as empty.

    >>> codes_of(pl.Series(["b", "a", "b", None]))
    (array([0, 1, 0, 2]), ['b', 'a', ''])
    """
    encoded = column.fill_null("").to_arrow().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def pairs_of(first: Codes, second: Codes, seconds: int) -> tuple[Codes, Codes, Codes]:
    """The number of each row's pair of codes among the distinct pairs; and for each pair its two codes.

    Args:
        first: Codes, shape (n,).
        second: Codes from 0 to ``seconds - 1``, shape (n,).
        seconds: Number of codes of the second column.
    """
    encoded = pa.array(first * seconds + second).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    return encoded.indices.to_numpy().astype(np.int64), distinct // seconds, distinct % seconds
