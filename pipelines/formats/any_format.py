"""The decoder of topics whose messages may be of any format: each message is recognised by its content."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from engine.formats.dead_letters import payload_text
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.record import Record
from pipelines.contracts import topics
from pipelines.contracts.records import Log
from pipelines.formats.catalogue import FORMATS, guess
from pipelines.formats.refusals import FORMAT_UNKNOWN
from pipelines.formats.rules import RULES, Rules


@dataclass(frozen=True)
class AnyFormatDecoder(Decoder):
    """Decodes messages of all formats that carry one type of record; the formats may be mixed.

    Args:
        record: `Telemetry` or `Log`.
        rules: How labels and fields are read.
    """

    record: type[Record]
    rules: Rules = RULES

    @cached_property
    def _decoders(self) -> dict[str, Decoder]:
        return {each.name: each.build(self.rules) for each in FORMATS if each.record is self.record}

    def decode(self, messages: Messages) -> Decoded:
        values = messages.values.to_pylist()
        formats = [guess(value, self.record, self.rules) for value in values]
        refused = [(row, FORMAT_UNKNOWN, self._unknown(values[row])) for row, form in enumerate(formats) if not form]
        names = np.array([form.name if form else "" for form in formats], dtype=object)
        parts = []
        for name, decoder in self._decoders.items():
            mine = names == name
            if not mine.any():
                continue
            decoded = decoder.decode(messages if mine.all() else messages.where(mine))
            if mine.all():
                return decoded
            decoded = decoded.among(np.flatnonzero(mine))
            refused += decoded.refused
            parts.append(decoded.records)
        if not parts:
            return Decoded(self.record.arrow_schema().append(pa.field(ROW, pa.int32())).empty_table(), sorted(refused))
        records = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
        order = np.argsort(records.column(ROW).to_numpy(), kind="stable")
        return Decoded(records.take(pa.array(order)), sorted(refused))

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        form = guess(value, self.record, self.rules)
        return self._decoders[form.name].only(value, records) if form else None

    def _unknown(self, value: bytes | None) -> str:
        other = guess(value, rules=self.rules)
        if other is not None:
            better = topics.LOGS_AGENTS if other.record is Log else topics.RAW_AGENTS
            return f"looks like {other.name}, which belongs in the topic {better}"
        names = ", ".join(self._decoders)
        return f"looks like none of {names}: {payload_text(value)[:80]!r}"
