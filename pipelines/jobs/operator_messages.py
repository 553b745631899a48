"""What operators say on its way into jobs: rules, labels, placements and acknowledgements, each one JSON message.

A job reads such topics beside its main input. All its shards get all messages, each as JSON text in a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import orjson
import pyarrow as pa
from pydantic import ValidationError

from engine.formats.dead_letters import payload_text
from engine.formats.json_decoder import JSON_MALFORMED
from engine.formats.refusals import explain
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from engine.spec.source import Source
from engine.watermarks import Prompt
from pipelines.contracts.records import Acknowledgement, Change, InferredPlacement, Label, Placement, Rule, Silence
from pipelines.contracts.settings import Settings
from pipelines.jobs.sources import bounds

LARGEST_MESSAGE = 65_536
"""The most bytes of a message: each shard keeps it in its state."""

OperatorMessage = Rule | Label | Placement | Acknowledgement | Silence | Change
R = TypeVar("R", bound=Record)
_CODES: dict[type[Record], str] = {
    Rule: "RULE_INVALID",
    Label: "LABEL_INVALID",
    Placement: "PLACEMENT_INVALID",
    InferredPlacement: "PLACEMENT_INVALID",
    Acknowledgement: "ACKNOWLEDGEMENT_INVALID",
    Silence: "SILENCE_INVALID",
    Change: "CHANGE_INVALID",
}


def invalid_code(record: type[Record]) -> str:
    """The error code for a message that is not a valid record of this type."""
    return _CODES[record]


def accepted(record: type[R], raw: bytes | None) -> R:
    """Reads and checks a message; used by the jobs that apply it and the commands that write it.

    Args:
        record: `Rule`, `Label`, `Placement`, `Acknowledgement`, `Silence` or `Change`.
        raw: The message; ``None`` for a tombstone.

    Raises:
        NewnormalError: ``JSON_MALFORMED``, or the record's `invalid_code`.
    """
    if not raw:
        why = f"an empty message (a tombstone) has no effect; a later {record.__name__.lower()} replaces an earlier one"
        raise NewnormalError(JSON_MALFORMED, why)
    if len(raw) > LARGEST_MESSAGE:
        raise NewnormalError(
            invalid_code(record), f"a message of {len(raw)} bytes; accepted: at most {LARGEST_MESSAGE}"
        )
    try:
        return record.model_validate(orjson.loads(raw))
    except ValidationError as error:
        raise NewnormalError(invalid_code(record), explain(error, record)) from None
    except ValueError as error:
        raise NewnormalError(JSON_MALFORMED, f"{error}: {payload_text(raw)[:80]}") from None


@dataclass(frozen=True)
class OperatorMessageDecoder(Decoder):
    """Decodes messages of operators, and refuses wrong ones; see `accepted`.

    Args:
        record: Type of the messages.
        carrier: Type of the rows: its column ``window_end`` is the event time at which the message takes effect, the
            column with the name of the record holds the message as JSON text, and ``came``, if it has one, when Kafka
            took it in.
    """

    record: type[OperatorMessage]
    carrier: type[Record]

    def decode(self, messages: Messages) -> Decoded:
        name = self.record.__name__.lower()
        rows, refused = [], []
        came = messages.arrived.tolist() if "came" in self.carrier.model_fields else None
        for row, value in enumerate(messages.values.to_pylist()):
            try:
                parsed = accepted(self.record, value)
            except NewnormalError as error:
                refused.append((row, error.code, error.what))
            else:
                made = {"window_end": parsed.effective_from, name: parsed.to_json().decode(), ROW: row}
                rows.append(made | ({"came": came[row]} if came else {}))
        schema = self.carrier.arrow_schema().append(pa.field(ROW, pa.int32()))
        return Decoded(pa.Table.from_pylist(rows, schema), refused)


def operator_messages(
    settings: Settings, carrier: type[Record], records: Mapping[str, type[OperatorMessage]], reports: bool = True
) -> Source:
    """The source of some topics of operators; every shard gets all of their messages.

    Operators send messages as soon as they make them, so a topic without new ones does not hold back the watermark.

    Args:
        settings: The settings.
        carrier: Type of the rows, see `OperatorMessageDecoder`.
        records: Type of the messages by topic, without the namespace.
        reports: True if the job writes wrong messages to the dead-letter topic; only one job does.
    """
    formats: dict[str, Decoder] = {
        settings.reads(topic): OperatorMessageDecoder(record, carrier) for topic, record in records.items()
    }
    expected = tuple((name, p) for name in formats for p in range(settings.kafka.partitions))
    prompt = Prompt(expected=expected)
    return Source(formats, carrier, "window_end", prompt, bounds(settings), broadcast=True, reports=reports)
