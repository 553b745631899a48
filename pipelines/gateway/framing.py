"""Divides what comes over ports of logs into messages: syslog over TCP (RFC 6587, RFC 5425), and GELF.

Nothing here knows sockets; what is held of a message that has not come as a whole is bounded.
"""

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, field

LONGEST = 262_144
"""The most bytes of a message, after decompression too."""
_COUNT = re.compile(rb"([1-9][0-9]{0,6}) (?=<)")
_COUNT_BEGINS = re.compile(rb"[1-9][0-9]{0,6} ?")
_CHUNK = b"\x1e\x0f"
_MOST_CHUNKS = 128
_CHUNK_SECONDS = 5.0
_MOST_INCOMPLETE = 16_000_000
"""The most bytes of messages of GELF of which chunks are missing; the oldest are given up first."""
_CHUNK_COST = 500
"""Bytes that a chunk takes beside its content."""


class FramingError(ValueError):
    """What comes is no message, or too long a one."""


class Frames(ABC):
    """The messages of one connection; bytes that no message has yet are held."""

    def __init__(self) -> None:
        self._held = b""

    def add(self, data: bytes) -> list[bytes]:
        """The messages that end in what has come.

        Raises:
            FramingError: If a message is too long; nothing after it can be read.
        """
        buffer, at, messages = self._held + data, 0, []
        while (next_one := self._next(buffer, at)) is not None:
            begin, end, at = next_one
            if end > begin:
                messages.append(buffer[begin:end])
        self._held = buffer[at:]
        if len(self._held) > LONGEST:
            raise FramingError(f"a message is longer than {LONGEST} bytes")
        return messages

    def rest(self) -> list[bytes]:
        """The message that the end of the connection ends."""
        held, self._held = self._held.strip(b"\r\n\0 "), b""
        return [held] if held else []

    @abstractmethod
    def _next(self, buffer: bytes, at: int) -> tuple[int, int, int] | None:
        """Begin and end of the message at a place, and the place behind it; ``None`` if it has not come as a whole."""


class SyslogFrames(Frames):
    r"""Messages with their length before them, else up to a line end or NUL; a sender may change its mind.

    >>> frames = SyslogFrames()
    >>> frames.add(b"9 <34>a: no<34>b: y"), frames.add(b"es\n12 <34>c\nd"), frames.rest()
    ([b'<34>a: no'], [b'<34>b: yes'], [b'12 <34>c\nd'])
    """

    def _next(self, buffer: bytes, at: int) -> tuple[int, int, int] | None:
        counted = _COUNT.match(buffer, at)
        if counted is not None:
            begin, length = counted.end(), int(counted[1])
            if length > LONGEST:
                raise FramingError(f"a message of {length} bytes is longer than {LONGEST}")
            return (begin, begin + length, begin + length) if begin + length <= len(buffer) else None
        begins = _COUNT_BEGINS.match(buffer, at)
        if begins is not None and begins.end() == len(buffer):
            return None  # the length may go on
        ends = [place for mark in (b"\n", b"\0") if (place := buffer.find(mark, at)) >= 0]
        return (at, min(ends), min(ends) + 1) if ends else None


class GelfFrames(Frames):
    """Messages up to a NUL."""

    def _next(self, buffer: bytes, at: int) -> tuple[int, int, int] | None:
        end = buffer.find(b"\0", at)
        return (at, end, end + 1) if end >= 0 else None


@dataclass
class _Incomplete:
    """Chunks of a message by their number, and when the first one came."""

    since: float
    parts: dict[int, bytes] = field(default_factory=dict)


class GelfPackets:
    """Packets of GELF over UDP: plain, gzip or zlib, also in chunks, which must come within five seconds."""

    def __init__(self) -> None:
        self._incomplete: OrderedDict[tuple[str, bytes], _Incomplete] = OrderedDict()
        self._bytes = self.given_up = 0

    def message(self, sender: str, packet: bytes, now: float) -> bytes | None:
        """The message that a packet completes; ``None`` if parts of it have not come.

        Args:
            sender: The sender's address.
            packet: The packet.
            now: Seconds, of a clock that never goes back.

        Raises:
            FramingError: If it cannot be read.
        """
        while self._incomplete and (
            self._bytes > _MOST_INCOMPLETE or now - next(iter(self._incomplete.values())).since > _CHUNK_SECONDS
        ):
            self._forget(next(iter(self._incomplete)))
            self.given_up += 1
        if not packet.startswith(_CHUNK):
            return unpacked(packet)
        if len(packet) < 12 or not 0 < packet[11] <= _MOST_CHUNKS or packet[10] >= packet[11]:
            raise FramingError("a chunk of GELF without id, number and count of at most 128")
        key, number, count = (sender, packet[2:10]), packet[10], packet[11]
        held = self._incomplete.setdefault(key, _Incomplete(now))
        if number not in held.parts:
            held.parts[number] = packet[12:]
            self._bytes += len(packet) + _CHUNK_COST
        if sum(map(len, held.parts.values())) > LONGEST:
            self._forget(key)
            raise FramingError(f"a message is longer than {LONGEST} bytes")
        if len(held.parts) < count or any(at not in held.parts for at in range(count)):
            return None
        self._forget(key)
        return unpacked(b"".join(held.parts[at] for at in range(count)))

    def _forget(self, key: tuple[str, bytes]) -> None:
        parts = self._incomplete.pop(key).parts.values()
        self._bytes -= sum(len(each) + 12 + _CHUNK_COST for each in parts)


def unpacked(data: bytes) -> bytes:
    """A message that may be compressed by gzip or zlib.

    Raises:
        FramingError: If it is too long, or broken.

    >>> unpacked(zlib.compress(b"{}")), unpacked(b"{}")
    (b'{}', b'{}')
    """
    if data[:2] != b"\x1f\x8b" and data[:1] != b"\x78":
        return data
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        whole = stream.decompress(data, LONGEST + 1)
    except zlib.error as error:
        raise FramingError(f"neither gzip nor zlib: {error}") from None
    if len(whole) > LONGEST or not stream.eof:
        raise FramingError(f"compressed data that does not end, or is longer than {LONGEST} bytes")
    return whole
