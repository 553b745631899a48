"""The keys of the view's database. Keys of one machine stand together, in order of machine and metric.

The first byte says what an entry is. Names follow as UTF-8, each ended by the bytes 0 and 1; a byte 0 in a name is
followed by 255, so that no name can be taken for another, whatever characters it has.
"""

from __future__ import annotations

import struct

STATE, WINDOW, VERDICT, BELIEF, ABNORMAL, FULL, MACHINE, ROW = b"s", b"w", b"v", b"b", b"a", b"f", b"e", b"r"
PROGRESS, META = b"p", b"m"
"""What an entry is: last state of a series, statistics of a window, verdict on a window, belief that was said with a
window, abnormal series by score, series by when they are full, a machine, last row of a key of a job's topic, progress
in a partition, how the database is laid out."""

_END = b"\0\1"


def names(*parts: str) -> bytes:
    r"""Names as a part of a key.

    >>> names("a", "b"), names("a\0b")
    (b'a\x00\x01b\x00\x01', b'a\x00\xffb\x00\x01')
    >>> sorted([names("b", "a"), names("a", "z"), names("a-1", "a")]) == [
    ...     names("a", "z"), names("a-1", "a"), names("b", "a")]
    True
    """
    return b"".join(_escaped(part) + _END for part in parts)


def beginning(prefix: str) -> bytes:
    """The beginning of the keys of all machines whose names begin with a prefix."""
    return _escaped(prefix)


def parts(key: bytes) -> list[str]:
    r"""The inverse of `names`.

    >>> parts(names("a/b", "c\0é"))
    ['a/b', 'c\x00é']
    """
    pieces = key.split(_END)[:-1]
    return [piece.replace(b"\0\xff", b"\0").decode("utf-8", "surrogatepass") for piece in pieces]


def slot(number: int) -> bytes:
    """The place of a window in the ring of its series, as a part of a key."""
    return number.to_bytes(4, "big")


def descending(score: float) -> bytes:
    """A score of at least 0 as a part of a key, so that higher scores come first.

    >>> descending(99.5) < descending(99.25) < descending(0.0)
    True
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", max(score, 0.0)))
    return struct.pack(">Q", (1 << 63) - bits)


def _escaped(name: str) -> bytes:
    text = name.encode("utf-8", "surrogatepass")
    return text.replace(b"\0", b"\0\xff") if b"\0" in text else text
