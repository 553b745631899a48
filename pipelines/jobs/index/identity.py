"""A document's `_id` and version, and the record behind raw bytes. Pure: knows no server, reads no clock.

`_id` is readable (`web-1|cpu|1700000000000|1700000010000`) so that an operator can address a document by hand; where
the identity is longer than Elasticsearch allows, a hash. Two different identities never share an `_id`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import orjson
from pydantic import ValidationError

from engine.spec.record import Record

LONGEST_ID = 512
"""Bytes of an `_id`; more is refused by Elasticsearch."""

_ESCAPED = re.compile(r"[%|~\x00-\x20\x7f]")


class UnusableError(Exception):
    """The bytes are no record; ``code`` and ``reason`` go into the dead letter."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code, self.reason = code, reason


def document_id(record: Record) -> str:
    """The `_id`: identity fields joined by ``|``, or ``~`` and a SHA-256 where that is too long.

    >>> from pipelines.contracts.records import Label
    >>> document_id(Label(entity="db|1", metric="cpu", start=0, verdict="true"))
    'db%7C1|cpu|0'
    """
    parts = (str(getattr(record, name)) for name in record.identity)
    readable = "|".join(_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", part) for part in parts)
    raw = readable.encode()
    return readable if 0 < len(raw) <= LONGEST_ID else "~" + hashlib.sha256(raw).hexdigest()


def version(record: Record) -> int:
    """The external version: one above the revision, so that a higher revision wins; 1 of a record without revisions.

    >>> from pipelines.contracts.records import Incident
    >>> version(Incident(id="a", entity="a", start=0, revision=4))
    5
    """
    return int(getattr(record, "revision", 0)) + 1


def time_field(record: type[Record]) -> str:
    """The column that decides the index: `@timestamp`, else `event.start`; part of the identity, so it never moves."""
    aliases = {info.alias or name: name for name, info in record.model_fields.items()}
    return aliases.get("@timestamp") or aliases["event.start"]


def parse(raw: bytes, record: type[Record]) -> Record:
    """The record in the bytes; stricter than JSON parsers commonly are: no NaN, no lone surrogates, no unknown fields.

    Raises:
        UnusableError: If it is none.
    """
    try:
        tree: Any = orjson.loads(raw)
    except (orjson.JSONDecodeError, TypeError) as error:
        raise UnusableError("INVALID_JSON", str(error)) from None
    try:
        return record.model_validate(tree)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, e['loc'])) or 'record'}: {e['msg']}" for e in error.errors(include_input=False)]
        raise UnusableError("INVALID_RECORD", "; ".join(wrong)) from None
