"""Counts the parts of a message without making any of them: samples, lines, labels, attributes, buckets, list elements.

A part takes two bytes of a message and some hundred bytes of memory once it is decoded, so that a message of a size
that Kafka takes could fill the memory of a process. The counts here cost one pass over the message. They are no less
than what the decoders make of it, give or take a constant factor; they need not be exact.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

MOST = 250_000
"""The most parts of a message by default. 4 MB of OTLP metrics with two attributes at each point have 200,000."""
_STEPS = 8
"""The most fields of a protobuf message, for each part that it may have. Honest ones have 4."""
_TEXT, _JSON = b"\n ,;\t|:", b",[{"
_SHARE = 4
"""In log lines, which have many, this number of separators counts as one part; so it does of quotes everywhere."""
_WIDTHS = {
    FieldDescriptor.TYPE_DOUBLE: 8, FieldDescriptor.TYPE_FIXED64: 8, FieldDescriptor.TYPE_SFIXED64: 8,
    FieldDescriptor.TYPE_FLOAT: 4, FieldDescriptor.TYPE_FIXED32: 4, FieldDescriptor.TYPE_SFIXED32: 4,
}  # fmt: skip
_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5


def of_text(value: bytes, log: bool = False) -> int:
    r"""The parts of a text: its lines, and what separators divide.

    Args:
        value: The message.
        log: Whether it holds log lines, whose words are no parts.

    >>> of_text(b"a,host=x v=1,w=2\nb,host=x v=1\n"), of_text(b"<34>1 - a p - - - one two three\n", log=True)
    (7, 2)
    """
    lines, quotes = value.count(b"\n"), value.count(b'"')
    separators = len(value) - len(value.translate(None, _TEXT))
    return max(lines, separators // _SHARE if log else separators, quotes // _SHARE)


def of_json(value: bytes, most: int) -> int:
    r"""The values in a message of JSON; exact only if there may be more than ``most``.

    >>> of_json(b'{"a":[1,2,{}],"b":"x,y,z"}', 100), of_json(b'{"a":[1,2,{}],"b":"x,y\\",z"}', 3)
    (8, 6)
    """
    rough = len(value) - len(value.translate(None, _JSON))
    if rough <= most:
        return rough
    plain = np.frombuffer(value.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
    inside = np.logical_xor.accumulate(plain == ord('"'))
    return sum(int(np.count_nonzero((plain == mark) > inside)) for mark in _JSON)


class _Field(NamedTuple):
    """What is known of a field: whether it is repeated, the type of message in it, and bytes of a packed number."""

    repeated: bool
    inner: Descriptor | None
    width: int


_UNKNOWN = _Field(False, None, 0)


@cache
def _fields(kind: Descriptor) -> dict[int, _Field]:
    return {
        field.number: _Field(
            field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED,
            field.message_type,
            0 if field.message_type or field.type in _TEXTS else _WIDTHS.get(field.type, 1),
        )
        for field in kind.fields
    }


def of_protobuf(value: bytes, kind: Descriptor, most: int) -> int | None:
    r"""The elements of all repeated fields of a message in protobuf, in it and in what it holds.

    Counting ends soon after ``most``: what is returned is then more than that, and no more is known.

    Args:
        value: The message.
        kind: Its type.
        most: The most parts that are of interest.

    Returns:
        Their number; ``None`` if this is no such message.
    """
    try:
        return _walked(value, kind, most)
    except _MalformedError:
        return None


class _MalformedError(Exception):
    """The bytes are no protobuf."""


def _walked(value: bytes, kind: Descriptor, most: int) -> int:
    parts, left, at, end, fields = 0, _STEPS * most, 0, len(value), _fields(kind)
    outer: list[tuple[int, dict[int, _Field]]] = []
    while at < end or outer:
        if at == end:
            end, fields = outer.pop()
            continue
        left -= 1
        if parts > most or left < 0:
            return most + 1
        tag, at = _varint(value, at, end)
        field = fields.get(tag >> 3, _UNKNOWN)
        if tag & 7 != _LENGTH:
            parts += field.repeated
            at = _skipped(value, at, end, tag & 7)
            continue
        length, at = _varint(value, at, end)
        if at + length > end:
            raise _MalformedError
        if field.inner is None:
            parts += (length // field.width if field.width else 1) if field.repeated else 0
            at += length
        else:
            parts += field.repeated
            outer.append((end, fields))
            end, fields = at + length, _fields(field.inner)
    return parts


def _skipped(value: bytes, at: int, end: int, wire: int) -> int:
    """The place behind a number of a wire type; groups, which nobody uses, have none."""
    if wire == _VARINT:
        return _varint(value, at, end)[1]
    at += {_EIGHT: 8, _FOUR: 4}.get(wire, 0)
    if at > end or wire > _FOUR:
        raise _MalformedError
    return at


def _varint(value: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint and the place behind it."""
    if at < end and value[at] < 0x80:
        return value[at], at + 1
    number = shift = 0
    while at < end and shift < 70:
        byte = value[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise _MalformedError
