"""Derives a document's `_id` and version from its record, and reads the record from bytes. Pure functions.

The `_id` is readable (`web-1|cpu|1700000000000|1700000010000`), so that an operator can address a document by hand. An
identity that is longer than Elasticsearch allows becomes a hash. Two different identities never share an `_id`.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from typing import Any

import orjson
from pydantic import ValidationError

from engine.spec.record import Record

LONGEST_ID = 512
"""The most bytes of an `_id`; Elasticsearch refuses a longer one."""

_ESCAPED = re.compile(r"[%|~\x00-\x20\x7f]")


class UnusableError(Exception):
    """Some bytes are not a record that can be stored; the attributes ``code`` and ``reason`` go to the dead letter."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code, self.reason = code, reason


def document_id(record: Record) -> str:
    """The `_id` of a record: its identity fields joined by ``|``, or, if that is too long, ``~`` and a SHA-256.

    >>> from pipelines.contracts.records import Label
    >>> document_id(Label(entity="db|1", metric="cpu", start=0, verdict="true"))
    'db%7C1|cpu|0'
    """
    readable = "|".join([_readable(getattr(record, name)) for name in record.identity])
    if 0 < len(readable) <= LONGEST_ID // 4:  # no character takes more than 4 bytes
        return readable
    raw = readable.encode()
    return readable if 0 < len(raw) <= LONGEST_ID else "~" + hashlib.sha256(raw).hexdigest()


def _readable(value: object) -> str:
    text = str(value)
    if type(value) is int or not _ESCAPED.search(text):
        return text
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def version(record: Record) -> int:
    """The external version of a record: its revision plus 1, so that a higher revision wins; 1 without a revision.

    >>> from pipelines.contracts.records import News
    >>> version(News(entity="a", metric="m", window_start=0, window_end=1, kind="anomaly", record_score=9, revision=4))
    5
    """
    return int(getattr(record, "revision", 0)) + 1


def time_field(record: type[Record]) -> str:
    """The column whose time decides the index: `@timestamp`, else `event.start`.

    The column is part of the identity, or decided by it, so a document never changes its index.
    """
    aliases = {info.alias or name: name for name, info in record.model_fields.items()}
    return aliases.get("@timestamp") or aliases["event.start"]


def parse(raw: bytes, record: type[Record]) -> tuple[Record, bool]:
    """Reads a record from JSON. NaN, infinite numbers, lone surrogates and unknown fields are refused.

    Returns:
        The record, and True if its bytes can be stored as they are: one line, in which all names are aliases and all
        values have the types of the fields, none of them only convertible to it.

    Raises:
        UnusableError: If the bytes are not such a record.

    >>> from pipelines.contracts.records import Label
    >>> label = Label(entity="db", metric="cpu", start=0, verdict="true")
    >>> parse(label.to_json(), Label) == (label, True)
    True
    >>> parse(label.to_json().replace(b"host.name", b"entity"), Label) == (label, False)
    True
    """
    try:
        tree: Any = orjson.loads(raw)
    except (orjson.JSONDecodeError, TypeError) as error:
        raise UnusableError("INVALID_JSON", str(error)) from None
    if b"\n" not in raw and b"\r" not in raw:  # lines separate documents in a bulk request
        with suppress(ValidationError):
            return record.model_validate(tree, strict=True, by_alias=True, by_name=False), True
    try:
        return record.model_validate(tree), False
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, e['loc'])) or 'record'}: {e['msg']}" for e in error.errors(include_input=False)]
        raise UnusableError("INVALID_RECORD", "; ".join(wrong)) from None
