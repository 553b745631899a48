"""What a columnar message takes in memory once it is decompressed, found without decompressing it.

A message of 300 kB may hold names of 5 MB, as the names of a machine's series are much alike. Arrow writes before each
compressed buffer how many bytes it becomes; where the buffers begin stands in the metadata of each part, a flatbuffer.
Source: Arrow's columnar format, ``Message.fbs``, "Compression"; pyarrow has no access to it.
"""

from __future__ import annotations

import struct

import pyarrow as pa

_HEADER, _DATA, _BUFFERS, _COMPRESSION = 2, 1, 2, 3
"""Numbers of fields: what a part holds, the batch in a dictionary, the places of the buffers of a batch, how these are
compressed."""

_MOST = 2**31
"""A compressed buffer that says that it becomes more counts as this; the decoder refuses what is not true."""


def decoded_bytes(message: pa.Buffer) -> int:
    """Bytes of all buffers of a message without compression; its own length if it is no Arrow stream.

    >>> from engine.formats import columnar
    >>> message = pa.py_buffer(columnar.encode(pa.table({"time": [7] * 100_000})))
    >>> message.size < 10_000, decoded_bytes(message) - 800_000 < 1_000
    (True, True)
    >>> decoded_bytes(pa.py_buffer(b"{}"))
    2
    """
    if message.size < 4 or message[:4].to_pybytes() != b"\xff\xff\xff\xff":
        return int(message.size)
    total = 0
    try:
        for part in pa.ipc.MessageReader.open_stream(message):
            if part.type in ("dictionary", "record batch"):
                total += _of_part(part.metadata.to_pybytes(), part.body, part.type == "dictionary")
    except (pa.ArrowException, OSError, struct.error):
        return max(total, int(message.size))  # the decoder says what is wrong with it
    return max(total, int(message.size))


def _of_part(metadata: bytes, body: pa.Buffer, is_dictionary: bool) -> int:
    """Bytes of the buffers of a record batch or a dictionary."""
    root = _number("<I", metadata, 0)
    batch = _table(metadata, root, _HEADER)
    if is_dictionary:
        batch = _table(metadata, batch, _DATA)
    buffers = _table(metadata, batch, _BUFFERS)
    compressed, total = _field(metadata, batch, _COMPRESSION) != 0, 0
    for nth in range(_number("<I", metadata, buffers)):
        begin, length = struct.unpack_from("<qq", metadata, buffers + 4 + 16 * nth)
        becomes = -1  # not compressed
        if compressed and length >= 8:
            becomes = struct.unpack("<q", body[begin : begin + 8].to_pybytes())[0]
        total += length if becomes < 0 else min(becomes, _MOST)
    return total


def _table(data: bytes, table: int, field: int) -> int:
    """Where the table or vector begins to which a field of a table points."""
    at = _field(data, table, field)
    if not at:
        raise struct.error("a field is missing")
    return at + _number("<I", data, at)


def _field(data: bytes, table: int, field: int) -> int:
    """Where a field of a table stands; 0 if it has its default value."""
    columns = table - _number("<i", data, table)
    if 4 + 2 * field >= _number("<H", data, columns):
        return 0
    offset = _number("<H", data, columns + 4 + 2 * field)
    return table + offset if offset else 0


def _number(kind: str, data: bytes, at: int) -> int:
    return int(struct.unpack_from(kind, data, at)[0])
