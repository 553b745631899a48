"""Messages on their way through the JVM: a row a topic and partition, since a row costs more than what is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pandas as pd
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from engine.operator.shard import Message

OUTPUT = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("messages", BinaryType()),
    ]
)
_MESSAGES = pa.schema([("key", pa.binary()), ("value", pa.binary())])
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def bundled(messages: Sequence[Message]) -> pd.DataFrame:
    """Rows of `OUTPUT`; messages of one partition keep their order.

    >>> made = [Message("a", 0, b"k", b"1"), Message("a", 0, b"k", b"2"), Message("b", 1, b"", b"3")]
    >>> rows = bundled(made)
    >>> len(rows), list(unbundled(pa.Table.from_pandas(rows))) == made
    (2, True)
    """
    rows = []
    for (topic, partition), run in groupby(messages, lambda message: (message.topic, message.partition)):
        some = list(run)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _MESSAGES, options=_OPTIONS) as writer:
            columns = [[message.key for message in some], [message.value for message in some]]
            writer.write_table(pa.table(columns, schema=_MESSAGES))
        rows.append((topic, partition, sink.getvalue().to_pybytes()))
    return pd.DataFrame(rows, columns=OUTPUT.names)


def unbundled(rows: pa.Table) -> Iterator[Message]:
    """Inverse of `bundled`."""
    for topic, partition, blob in zip(*(rows[name] for name in OUTPUT.names), strict=True):
        messages = pa.ipc.open_stream(blob.as_buffer()).read_all()
        keys, values = (messages[name].to_pylist() for name in _MESSAGES.names)
        place = (topic.as_py(), partition.as_py())
        yield from (Message(*place, key, value) for key, value in zip(keys, values, strict=True))
