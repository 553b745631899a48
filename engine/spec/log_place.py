"""The place of records in the log of their source partition: what stood there before the message of each record.

From it the shard finds the watermark by which it decides whether a record is too late, see
`engine.spec.operator.Progress.passed`. Only the records of inputs that are partitioned by the key of the job have it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from engine.spec.duration import NEVER

HIDDEN = "__log_"
"""The columns whose names begin so are no part of a record; steps keep them."""

WRITER, NEWEST = f"{HIDDEN}writer", f"{HIDDEN}newest"
"""Columns: the greatest watermark of the writer, and the greatest event time, in the messages of the same run before
the record's message; `NOTHING` if there is none."""

NOTHING = NEVER - 1
"""Below every watermark, also below `NEVER`, the watermark of a writer that does not know it yet."""

COLUMNS = (pa.field(WRITER, pa.int64()), pa.field(NEWEST, pa.int64()))
_PLACE = b"place"
Times = npt.NDArray[np.int64]


def before_each(messages: int, rows: Times, values: Times) -> Times:
    """For each of some messages the greatest value in the messages before it; `NOTHING` if there is none.

    Args:
        messages: Number of messages.
        rows: The message of each value.
        values: The values.

    >>> before_each(4, np.array([0, 0, 2]), np.array([5, 7, 6])).tolist() == [NOTHING, 7, 7, 7]
    True
    """
    greatest = np.full(messages + 1, NOTHING, np.int64)
    np.maximum.at(greatest, rows + 1, values)
    return np.maximum.accumulate(greatest)[:-1]


def placed(records: pa.Table, topic: str, partition: int) -> pa.Table:
    """Records of one run of messages, marked with the topic and the number of their partition."""
    return records.replace_schema_metadata({_PLACE: orjson.dumps([topic, partition])})


def place(metadata: Mapping[bytes, bytes] | None) -> tuple[str, int] | None:
    """Topic and partition with which `placed` marked some records; ``None`` if it did not.

    >>> place(placed(pa.table({"x": [1]}), "t", 3).schema.metadata)
    ('t', 3)
    """
    if not metadata or _PLACE not in metadata:
        return None
    topic, partition = orjson.loads(metadata[_PLACE])
    return topic, partition
