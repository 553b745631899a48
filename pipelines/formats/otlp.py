"""What the decoders of OTLP share: reading protobuf or JSON, recognising it, and attributes as labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from engine.formats.dead_letters import payload_text
from pipelines.formats.refusals import FORMAT_UNKNOWN, RefusedError

_ERRORS = (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError, json_format.ParseError)
_DIGITS = 7


def read(value: bytes, kind: type[Any], as_json: bool | None = None) -> Any:
    """An export request, from protobuf or from JSON.

    Args:
        value: The message.
        kind: The type of the request.
        as_json: Whether it is JSON; ``None``: `is_json` decides.

    Raises:
        RefusedError: ``FORMAT_UNKNOWN`` if the message is neither.
    """
    request = kind()
    try:
        if is_json(value) if as_json is None else as_json:
            json_format.ParseDict(orjson.loads(value), request, ignore_unknown_fields=True)
        else:
            request.ParseFromString(value)
    except (DecodeError, *_ERRORS) as error:
        raise _refused(error, value) from None
    return request


def tree(value: bytes) -> Any:
    """A message in JSON, parsed; ``None`` if it is none, which `read` explains."""
    if not is_json(value):
        return None
    try:
        return orjson.loads(value)
    except ValueError:
        return None


def of_tree(part: Any, kind: type[Any]) -> Any:
    """A part of a message in JSON, parsed, as protobuf.

    Raises:
        RefusedError: ``FORMAT_UNKNOWN`` if it does not have the type.
    """
    try:
        return json_format.ParseDict(part, kind(), ignore_unknown_fields=True)
    except _ERRORS as error:
        raise _refused(error, orjson.dumps(part)) from None


def _refused(error: Exception, value: bytes) -> RefusedError:
    what = f"no OTLP request in protobuf or JSON: {type(error).__name__} {str(error)[:200]}: "
    return RefusedError(FORMAT_UNKNOWN, what + repr(payload_text(value)[:80]))


def is_json(value: bytes) -> bool:
    r"""Whether a message is JSON, and not protobuf whose first resource is 123 bytes long: this length is a brace.

    >>> is_json(b' {"resourceLogs": []}'), is_json(b"\n{" + bytes(123)), is_json(b"\n\x02\n\x00")
    (True, False, False)
    """
    return value.lstrip()[:1] == b"{" and not framed(value)


def framed(value: bytes) -> bool:
    r"""Whether a message is a sequence of protobuf fields with number 1 that hold bytes, as all requests of OTLP are.

    >>> framed(b"\n\x02\n\x00"), framed(b"\n\x09"), framed(b"")
    (True, False, False)
    """
    at, size = 0, len(value)
    while at < size:
        if value[at] != 0x0A:
            return False
        at, length, shift = at + 1, 0, 0
        while at < size and shift < 7 * _DIGITS:
            length |= (value[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if value[at - 1] < 0x80:
                break
        else:
            return False
        at += length
    return size > 0 and at == size


def labels(attributes: Iterable[KeyValue]) -> tuple[tuple[str, str], ...]:
    """The names and values of attributes, as text."""
    return tuple((each.key, each.value.string_value or text(each.value)) for each in attributes)


def text(value: AnyValue) -> str:
    """The value of an attribute or of a log's body, as text; lists and maps as JSON.

    >>> text(AnyValue(bool_value=True)), text(AnyValue(int_value=3)), text(AnyValue())
    ('true', '3', '')
    """
    kind = value.WhichOneof("value")
    if kind is None:
        return ""
    if kind in ("string_value", "int_value", "double_value"):
        return str(getattr(value, kind))
    if kind == "bytes_value":
        return value.bytes_value.decode(errors="replace")
    return orjson.dumps(_plain(value), default=_readable, option=orjson.OPT_NON_STR_KEYS).decode()


def _readable(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: _plain(each.value) for each in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)
