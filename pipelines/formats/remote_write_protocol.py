"""The protocol of Prometheus remote write, 1.0 and 2.0: its messages, as far as they are used, and their recognition.

Source: the specifications of Remote-Write 1.0 (``prometheus.WriteRequest``) and 2.0
(``io.prometheus.write.v2.Request``). A label of 1.0 is read as bytes: the labels of a series are the same in each
request, so they are parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from engine.formats.dead_letters import payload_text
from pipelines.formats.refusals import FORMAT_UNKNOWN, RefusedError

_PACKAGE = "newnormal.remote_write"
_MESSAGES = {
    "Label": "string name 1, string value 2",
    "Sample": "double value 1, int64 timestamp 2",
    "Histogram": "uint64 count_int 1, double count_float 2, double sum 3, int64 timestamp 15",
    "Metadata": "int32 type 1",
    "Series": "bytes* labels 1, Sample* samples 2, bytes* exemplars 3, Histogram* histograms 4",
    "WriteRequest": "Series* timeseries 1, bytes* metadata 3",
    "Series2": "uint32* labels_refs 1, Sample* samples 2, Histogram* histograms 3, bytes* exemplars 4,"
    " Metadata metadata 5",
    "Request": "string* symbols 4, Series2* timeseries 5",
}
"""The fields of each message: type (``*``: repeated), name, number."""

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "double": _FIELD.TYPE_DOUBLE, "int64": _FIELD.TYPE_INT64, "uint64": _FIELD.TYPE_UINT64, "bytes": _FIELD.TYPE_BYTES,
    "int32": _FIELD.TYPE_INT32, "uint32": _FIELD.TYPE_UINT32, "string": _FIELD.TYPE_STRING,
}  # fmt: skip


def message_classes(package: str, messages: Mapping[str, str]) -> dict[str, Any]:
    """The classes of messages in protobuf, by name.

    Args:
        package: Their package.
        messages: The fields of each message: type (``*``: repeated), name, number.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for line in fields.split(","):
            kind, field, number = line.split()
            label = _FIELD.LABEL_REPEATED if kind.endswith("*") else _FIELD.LABEL_OPTIONAL
            declared = message.field.add(name=field, number=int(number), label=label)
            kind = kind.rstrip("*")
            declared.type = _TYPES.get(kind, _FIELD.TYPE_MESSAGE)
            if kind not in _TYPES:
                declared.type_name = f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptors = (pool.FindMessageTypeByName(f"{package}.{name}") for name in messages)
    return {each.name: message_factory.GetMessageClass(each) for each in descriptors}


_CLASSES = message_classes(_PACKAGE, _MESSAGES)
Label, WriteRequest, Request = (_CLASSES[name] for name in ("Label", "WriteRequest", "Request"))

_NAME = re.compile(rb"[^\x00-\x1f]+")


def read(value: bytes, second: bool | None = None) -> Any:
    """A request of one of the two versions.

    Args:
        value: The message, not compressed.
        second: Whether it is of version 2.0; ``None``: its first byte decides.

    Raises:
        RefusedError: ``FORMAT_UNKNOWN`` if it is neither.
    """
    request = (Request if (value[:1] == b'"' if second is None else second) else WriteRequest)()
    try:
        request.ParseFromString(value)
    except DecodeError as error:
        what = f"no request of remote write: {str(error)[:200]}: {payload_text(value)[:80]!r}"
        raise RefusedError(FORMAT_UNKNOWN, what) from None
    return request


def is_remote_write(value: bytes) -> bool:
    r"""Whether a message begins as a request of remote write does.

    One of version 2.0 begins with an empty symbol; one of 1.0 with a series whose first label has a name. An attribute
    of OTLP, which would stand in the same place as that name, begins with a control character.

    >>> is_remote_write(b'"\x00"\x04host'), is_remote_write(b"\n\x0a\n\x08\n\x03job\x12\x01a"), is_remote_write(b"")
    (True, True, False)
    """
    if value[:2] == b'"\x00':
        return True
    series = _inside(value[:4096], 0)
    label = _inside(value[:4096], series)
    name = _inside(value[:4096], label)
    length = value[name - 1] if name > 0 else 0
    named = 0 < length < 0x80 and _NAME.fullmatch(value[name : name + length]) is not None
    return named and value[name + length : name + length + 1] == b"\x12"


def _inside(value: bytes, at: int) -> int:
    """Where the content of a field with number 1 that holds bytes begins; -1 if there is none at a place."""
    if at < 0 or value[at : at + 1] != b"\n":
        return -1
    at += 1
    while at < len(value) and value[at] >= 0x80:
        at += 1
    return at + 1 if at + 1 < len(value) else -1
