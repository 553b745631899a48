"""Bundles messages for the way through the JVM: one row for each topic and partition, because rows are expensive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pandas as pd
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from engine.runtime.messages import Outgoing

OUTPUT = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("messages", BinaryType()),
    ]
)
_MESSAGES = pa.schema([("key", pa.binary()), ("value", pa.binary())])
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def bundled(messages: Sequence[Outgoing]) -> pd.DataFrame:
    """Bundles messages to rows of `OUTPUT`; messages of one partition keep their order.

    >>> rows = bundled([Outgoing.of("a", 0, [b"1"]), Outgoing.of("a", 0, [b"2"]), Outgoing.of("b", 1, [b"3"])])
    >>> len(rows), [message.value for some in unbundled(pa.Table.from_pandas(rows)) for message in some]
    (2, [b'1', b'2', b'3'])
    """
    rows = []
    for (topic, partition), run in groupby(messages, lambda outgoing: (outgoing.topic, outgoing.partition)):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _MESSAGES, options=_OPTIONS) as writer:
            for outgoing in run:
                writer.write_batch(pa.record_batch([outgoing.keys, outgoing.values], schema=_MESSAGES))
        rows.append((topic, partition, sink.getvalue().to_pybytes()))
    return pd.DataFrame(rows, columns=OUTPUT.names)


def unbundled(rows: pa.Table) -> Iterator[Outgoing]:
    """Inverse of `bundled`."""
    for topic, partition, blob in zip(*(rows[name] for name in OUTPUT.names), strict=True):
        for batch in pa.ipc.open_stream(blob.as_buffer()):
            yield Outgoing(topic.as_py(), partition.as_py(), *batch.columns)
