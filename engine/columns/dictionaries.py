"""Dictionary-encoded Arrow columns: as one array, and with a dictionary of only the values in use."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, with one dictionary for all chunks."""
    unified = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column
    array = unified.combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def compact(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Reduces the dictionary to the values in use: that of Polars may hold all values the process has ever seen.

    >>> compact(pa.chunked_array([pa.DictionaryArray.from_arrays([1, 1], ["a", "b"])]),
    ...     pa.dictionary(pa.int32(), pa.string())).chunk(0).dictionary.to_pylist()
    ['b']
    """
    array = whole(column)
    if array.null_count or not len(array):
        return pa.chunked_array([array.cast(pa.string()).dictionary_encode()], kind)
    codes = array.indices.to_numpy(zero_copy_only=False)
    used, dense = np.unique(codes, return_inverse=True)
    values = array.dictionary.take(pa.array(used)).cast(pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(dense, pa.int32()), values)], kind)
