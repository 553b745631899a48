"""Portions of a large micro-batch: a shard that catches up works through it in parts, so that its memory is bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from engine.formats.decoded_size import decoded_bytes
from engine.runtime.intake import begins

MOST_BYTES = 64 * 2**20
"""About how many bytes of columns a portion has: a million rows or so."""


def portions(rows: pa.Table, most: int = MOST_BYTES) -> Iterator[pa.Table]:
    """Splits the messages of a micro-batch into portions that follow each other.

    Each portion has the same share of what the messages of each partition are without compression, in their order. So a
    job that processes one portion after the other does what it would do if Spark had made a micro-batch of each.

    Args:
        rows: Kafka rows (`engine.runtime.intake.KAFKA`), those of a partition adjacent and in the order of their
            offsets.
        most: About how many bytes a portion has without compression.

    >>> rows = pa.table({"topic": ["a"] * 4, "partition": [0, 0, 0, 1], "value": [b"1234", b"5678", b"90ab", b"cdef"]})
    >>> [portion["value"].to_pylist() for portion in portions(rows, 8)]
    [[b'1234', b'5678', b'cdef'], [b'90ab']]
    """
    weights = np.array([max(1, decoded_bytes(value.as_buffer())) if value.is_valid else 1 for value in rows["value"]])
    count = min(math.ceil(weights.sum() / most), rows.num_rows)
    if count <= 1:
        yield rows
        return
    first = begins(rows)
    sizes = np.diff(np.append(first, rows.num_rows))
    before = np.cumsum(weights) - weights
    before -= np.repeat(before[first], sizes)  # of the same partition
    number = before * count // np.repeat(np.add.reduceat(weights, first), sizes)
    for portion in range(count):
        if (mine := number == portion).any():
            yield rows.filter(pa.array(mine))
