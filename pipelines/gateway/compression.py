"""Decompresses bodies, never to more bytes than are allowed."""

from __future__ import annotations

import zlib
from http import HTTPStatus

import pyarrow as pa

from pipelines.gateway.protocol import MalformedError, NotTakenError

_GZIP = 16 + zlib.MAX_WBITS
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_HEADER = 6
_ZSTD_WHOLE = 0x20
"""The flag of a frame whose window is its content."""
_ZSTD_WINDOW = 8 << 20
"""The largest window, bytes, which the specification asks all to support."""
_MEMBERS = 64
"""The most members of a gzip. Each costs a copy of all that follows it; agents send one."""


def decompressed(data: bytes, encoding: str, most: int) -> bytes:
    """The content of a body.

    Args:
        data: The body.
        encoding: ``identity``, ``gzip``, ``deflate`` (zlib), ``zstd``, or ``snappy`` (the block format, as remote write
            uses it).
        most: The most bytes that are accepted.

    Raises:
        NotTakenError: ``GATEWAY_TOO_LARGE``, ``GATEWAY_ENCODING``.
    """
    content = _DECOMPRESSORS[encoding](data, most) if encoding in _DECOMPRESSORS else data
    if len(content) > most:
        after = " after decompression" if encoding in _DECOMPRESSORS else ""
        raise too_large(f"more than {most} bytes{after}", "gateway.max_decompressed")
    return content


def too_large(size: str, setting: str) -> NotTakenError:
    """The refusal of a body that is too large."""
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return NotTakenError("GATEWAY_TOO_LARGE", f"the body has {size}", setting, "smaller batches", status=status)


def _gunzip(data: bytes, most: int) -> bytes:
    parts: list[bytes] = []
    room = most
    while data:
        if len(parts) == _MEMBERS:
            raise MalformedError("GATEWAY_ENCODING", f"the body is gzip of more than {_MEMBERS} members")
        member = zlib.decompressobj(_GZIP)
        try:
            parts.append(member.decompress(data, room + 1))
        except zlib.error as error:
            raise MalformedError("GATEWAY_ENCODING", f"the body is no gzip: {error}") from None
        room -= len(parts[-1])
        if room < 0:
            break
        if not member.eof:
            raise MalformedError("GATEWAY_ENCODING", "the body is gzip that does not end")
        data = member.unused_data
    return b"".join(parts)


def _inflate(data: bytes, most: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise MalformedError("GATEWAY_ENCODING", f"the body is no deflate: {error}") from None
    if len(content) <= most and (not stream.eof or stream.unused_data):
        raise MalformedError("GATEWAY_ENCODING", "the body is deflate that does not end, or is followed by more")
    return content


def _unzstd(data: bytes, most: int) -> bytes:
    if data[:4] != _ZSTD or len(data) < _ZSTD_HEADER:
        raise MalformedError("GATEWAY_ENCODING", "the body is no zstd")
    exponent, mantissa = data[5] >> 3, data[5] & 7
    if not data[4] & _ZSTD_WHOLE and (8 + mantissa) << (7 + exponent) > _ZSTD_WINDOW:
        raise MalformedError("GATEWAY_ENCODING", f"the body is zstd with a window of more than {_ZSTD_WINDOW} bytes")
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return bytes(stream.read(most + 1))
    except (OSError, pa.ArrowException) as error:
        raise MalformedError("GATEWAY_ENCODING", f"the body is no zstd: {str(error)[:100]}") from None


def _unsnap(data: bytes, most: int) -> bytes:
    size = _announced(data)
    if size > most:
        raise too_large(f"{size} bytes after decompression, more than {most}", "gateway.max_decompressed")
    try:
        return bytes(pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True)) if size else b""
    except (OSError, pa.ArrowException) as error:
        raise MalformedError("GATEWAY_ENCODING", f"the body is no snappy block: {str(error)[:100]}") from None


def _announced(data: bytes) -> int:
    """The size that a block of snappy says in its first bytes."""
    size = 0
    for at, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return size
    raise MalformedError("GATEWAY_ENCODING", "the body is no snappy block: it does not say its size")


_DECOMPRESSORS = {"gzip": _gunzip, "deflate": _inflate, "zstd": _unzstd, "snappy": _unsnap}
"""Each returns the content of a body, or more than the most bytes that are accepted."""
