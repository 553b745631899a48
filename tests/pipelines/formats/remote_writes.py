"""Requests of remote write as the tests send them, encoded by hand from the specifications' .proto files."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

Samples = Iterable[tuple[float, int]]
"""(value, epoch milliseconds)"""

STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
"""The NaN with which Prometheus says that a series has ended."""


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, content: bytes | str | int | float) -> bytes:
    """A field of a message: text and messages with their length, integers as varints, floats as 64 bits."""
    if isinstance(content, float):
        return varint(number << 3 | 1) + struct.pack("<d", content)
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def _samples(number: int, samples: Samples) -> bytes:
    return b"".join(field(number, field(1, float(value)) + field(2, time)) for value, time in samples)


def series(labels: Mapping[str, str], *samples: tuple[float, int], histograms: Iterable[bytes] = ()) -> bytes:
    """``prometheus.TimeSeries`` of 1.0."""
    told = b"".join(field(1, field(1, name) + field(2, value)) for name, value in labels.items())
    return told + _samples(2, samples) + b"".join(field(4, each) for each in histograms)


def request(*found: bytes, metadata: bytes = b"") -> bytes:
    """``prometheus.WriteRequest`` of 1.0."""
    return b"".join(field(1, each) for each in found) + (field(3, metadata) if metadata else b"")


def histogram(count: int, total: float, time: int) -> bytes:
    """``Histogram`` of both versions: its count, sum and time."""
    return field(1, count) + field(3, float(total)) + field(15, time)


class Second:
    """``io.prometheus.write.v2.Request``."""

    def __init__(self) -> None:
        self._symbols = [""]
        self._series: list[bytes] = []

    def _ref(self, text: str) -> int:
        if text not in self._symbols:
            self._symbols.append(text)
        return self._symbols.index(text)

    def add(
        self, labels: Mapping[str, str], *samples: tuple[float, int], kind: int = 0, histograms: Iterable[bytes] = ()
    ) -> Second:
        """Adds a series; ``kind`` is the type of its metadata."""
        refs = b"".join(varint(self._ref(text)) for pair in labels.items() for text in pair)
        told = field(1, refs) + _samples(2, samples) + b"".join(field(3, each) for each in histograms)
        self._series.append(told + (field(5, field(1, kind)) if kind else b""))
        return self

    def bytes(self) -> bytes:
        """The encoded request."""
        symbols = b"".join(field(4, each) for each in self._symbols)
        return symbols + b"".join(field(5, each) for each in self._series)
