"""What stands for a record that is too large without compression: Kafka's client was not let read it.

Kafka bounds the compressed batch only. The bounded client (docs/decisions/0031) puts this stand-in at the offset of a
record that it does not decompress; the jobs make a dead letter of it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

MOST_IN_RECORD = 16 << 20
"""Largest record without compression, bytes."""
MOST_IN_BATCH = 256 << 20
"""Bytes to which a batch is decompressed at most; what lies behind is refused."""
MOST_IN_POLL = 64 << 20
"""Bytes of records after which a poll of Kafka's client in Java ends; the record that passes them is still in it."""
MOST_HEADERS = 10_000
"""Headers of a record that a broker of ours takes. Readers skip them, whatever their number."""
STAND_IN = b"newnormal:record-too-large:"
"""Begin of the stand-in; the size of the record in bytes follows, or -1 if the batch had too many bytes before it.

An agent that writes such a message itself has it refused, and nothing else.
"""


def stand_ins(values: pa.Array) -> pa.Array:
    """Which values of a binary array stand for a record that is too large."""
    return pc.fill_null(pc.starts_with(values, STAND_IN), False)


def refusal(value: bytes) -> tuple[str, str]:
    """Code and reason of the dead letter, with the size of the record and what is accepted.

    >>> code, reason = refusal(b"newnormal:record-too-large:950000007")
    >>> print(f"{code}: {reason}")
    RECORD_TOO_LARGE: 950,000,007 bytes without compression; accepted: 16,777,216 in a record, 268,435,456 in a batch
    """
    size = value[len(STAND_IN) :].decode("ascii", "replace")
    reason = (
        f"{int(size):,} bytes without compression" if size.isdigit() else "it lies behind too many bytes of its batch"
    )
    return "RECORD_TOO_LARGE", f"{reason}; accepted: {MOST_IN_RECORD:,} in a record, {MOST_IN_BATCH:,} in a batch"
