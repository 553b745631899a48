"""The decoder of our own JSON of log lines, whose program may be left out."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoded, Messages
from pipelines.formats.line_decoder import NO_PROGRAM


@dataclass(frozen=True)
class OwnLogDecoder(JsonDecoder):
    """Decodes messages such as ``{"@timestamp": 1795220820013, "host.name": "a", "message": "no"}``."""

    def decode(self, messages: Messages) -> Decoded:
        decoded = super().decode(messages)
        records = decoded.records
        at = records.schema.get_field_index("program")
        programs = records.column(at).combine_chunks()
        if pa.types.is_dictionary(programs.type):
            texts = pc.if_else(pc.equal(programs.dictionary, ""), NO_PROGRAM, programs.dictionary)
            named = pc.take(texts, programs.indices).dictionary_encode().cast(programs.type)
        else:
            named = pc.if_else(pc.equal(programs, ""), NO_PROGRAM, programs)
        decoded.records = records.set_column(at, records.schema.field(at), named)
        return decoded
