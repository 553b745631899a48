"""The shard and the topic partition of a key: CRC-32, as in librdkafka's `consistent` partitioner.

Of a generated name (`engine.columns.replicas`) that of the set of replicas is hashed, so that they are in one place.

If the number of partitions is a multiple of the number of shards, each partition is written by one shard only.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.columns.dictionaries import whole
from engine.columns.replicas import replicas_of


@lru_cache(maxsize=1 << 17)
def crc32(key: str) -> int:
    """CRC-32 of the UTF-8 bytes of a key, or of the set of replicas that it belongs to.

    >>> crc32("host-1") == zlib.crc32(b"host-1"), crc32("shop/cart-7d4b9c6f5-x2x7p") == zlib.crc32(b"shop/cart")
    (True, True)
    """
    return zlib.crc32((replicas_of(key) or key).encode("utf-8", "surrogatepass"))


def slots(keys: pa.ChunkedArray | pl.Series, n: int) -> npt.NDArray[np.int64]:
    """The slot in ``range(n)`` of each key. Each distinct key is hashed once; null counts as empty text."""
    column = keys.to_arrow() if isinstance(keys, pl.Series) else whole(keys)
    if column.null_count:
        column = column.cast(pa.string()).fill_null("")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    table = np.array([crc32(key) % n for key in column.dictionary.to_pylist()], np.int64)
    return table[column.indices.to_numpy(zero_copy_only=False)] if len(table) else np.zeros(len(column), np.int64)
