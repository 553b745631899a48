"""Portions of a large micro-batch: a shard that catches up works through it in parts, so that its memory is bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.runtime.intake import begins

MOST_BYTES = 16 * 2**20
"""About how many bytes of messages a portion has. A columnar message has 20 to 100 bytes a row."""


def portions(rows: pa.Table, most: int = MOST_BYTES) -> Iterator[pa.Table]:
    """Splits the messages of a micro-batch into portions that follow each other.

    Each portion has the same share of the messages of each partition, in their order. So a job that processes one
    portion after the other does what it would do if Spark had made a micro-batch of each.

    Args:
        rows: Kafka rows (`engine.runtime.intake.KAFKA`), those of a partition adjacent and in the order of their
            offsets.
        most: About how many bytes of messages a portion has.

    >>> rows = pa.table({"topic": ["a"] * 4, "partition": [0, 0, 0, 1], "value": [b"1234", b"5678", b"90ab", b"cdef"]})
    >>> [portion["value"].to_pylist() for portion in portions(rows, 8)]
    [[b'1234', b'5678', b'cdef'], [b'90ab']]
    """
    count = math.ceil((pc.sum(pc.binary_length(rows["value"])).as_py() or 0) / most)
    if count <= 1:
        yield rows
        return
    first = begins(rows)
    sizes = np.diff(np.append(first, rows.num_rows))
    nth = np.arange(rows.num_rows) - np.repeat(first, sizes)
    number = nth * count // np.repeat(sizes, sizes)
    for portion in range(count):
        if (mine := number == portion).any():
            yield rows.filter(pa.array(mine))
