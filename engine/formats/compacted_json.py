"""Decodes a compacted topic of JSON, in which a message without a value (a tombstone) deletes its key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from engine.formats.json_decoder import JsonDecoder
from engine.spec.columns import require
from engine.spec.decoder import TOMBSTONE, Decoded, Messages
from engine.spec.errors import NewnormalError


@dataclass(frozen=True)
class CompactedJsonDecoder(JsonDecoder):
    """As `JsonDecoder`; a tombstone is a record of its key, at its arrival, whose other columns are null.

    Args:
        record: The type of the records.
        key: The column whose text is the key of the messages.
        time: The column of the event time.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN`` without such a column; ``RECORD_INVALID`` if the key is no text, or another
            field must not be missing.
    """

    tombstones: ClassVar[bool] = True

    key: str
    time: str

    def __post_init__(self) -> None:
        columns, where = self.record.arrow_schema(), f"record type {self.record.__name__}, tombstones={self.key!r}"
        require([self.key], columns, where)
        fields = self.record.model_fields.items()
        if self.record.model_fields[self.key].annotation is not str:
            what, accepted = f"{self.key} is no text", "a field of type str: the text of the messages' keys"
            raise NewnormalError("RECORD_INVALID", what, where, accepted, "no job")
        needed = [name for name, field in fields if name not in (self.key, self.time) and field.default is not None]
        if needed:
            what = f"a message without a value has no {', '.join(needed)}"
            raise NewnormalError("RECORD_INVALID", what, where, f"{needed[0]}: ... | None = None", "no job")

    def decode(self, messages: Messages) -> Decoded:
        gone = pc.fill_null(pc.starts_with(messages.values, TOMBSTONE), False).to_numpy(zero_copy_only=False)
        if gone.any():
            values = [
                self._line(value, int(arrived)) if is_gone else value
                for value, arrived, is_gone in zip(messages.values.to_pylist(), messages.arrived, gone, strict=True)
            ]
            messages = replace(messages, values=pa.array(values, pa.binary()))
        return super().decode(messages)

    def _line(self, value: bytes, arrived: int) -> bytes:
        """The JSON for a tombstone; the value itself, which is refused, if its key is no text."""
        names = {name: info.alias or name for name, info in self.record.model_fields.items()}
        try:
            key = value.removeprefix(TOMBSTONE).decode()
        except UnicodeDecodeError:
            return value
        return orjson.dumps({names[self.time]: arrived, names[self.key]: key})
