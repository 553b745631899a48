"""Placements and acknowledgements on their way to the incidents job, and what the job keeps of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import orjson
import polars as pl
import pyarrow as pa
from pydantic import ValidationError

from engine.formats.dead_letters import payload_text
from engine.formats.json_decoder import JSON_MALFORMED
from engine.formats.refusals import explain
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.errors import NewnormalError
from engine.spec.record import Instant, Record
from pipelines.contracts.records import Acknowledgement, Placement

LARGEST = 65_536
"""The most bytes of a message."""

R = TypeVar("R", bound=Record)
COLUMNS: dict[type[Record], str] = {Placement: "placement", Acknowledgement: "acknowledgement"}


class SiteMessage(Record):
    """A placement or an acknowledgement, as JSON text in a column."""

    identity: ClassVar[tuple[str, ...]] = ("window_end",)

    window_end: Instant
    """Event time. It has the name of the event-time column of the news, because both are inputs of one job."""
    placement: str | None = None
    acknowledgement: str | None = None


def invalid_code(record: type[Record]) -> str:
    """The error code for a message that is not a valid placement, or not a valid acknowledgement."""
    return "PLACEMENT_INVALID" if issubclass(record, Placement) else "ACKNOWLEDGEMENT_INVALID"


def accepted(record: type[R], raw: bytes | None) -> R:
    """Reads and checks a message.

    Args:
        record: `Placement` or `Acknowledgement`.
        raw: The message; ``None`` for a tombstone.

    Raises:
        NewnormalError: ``JSON_MALFORMED``, ``PLACEMENT_INVALID`` or ``ACKNOWLEDGEMENT_INVALID``.
    """
    if not raw:
        raise NewnormalError(
            JSON_MALFORMED, "an empty message (a tombstone) has no effect; a later message replaces one"
        )
    if len(raw) > LARGEST:
        raise NewnormalError(invalid_code(record), f"a message of {len(raw)} bytes; accepted: at most {LARGEST}")
    try:
        return record.model_validate(orjson.loads(raw))
    except ValidationError as error:
        raise NewnormalError(invalid_code(record), explain(error, record)) from None
    except ValueError as error:
        raise NewnormalError(JSON_MALFORMED, f"{error}: {payload_text(raw)[:80]}") from None


@dataclass(frozen=True)
class SiteMessageDecoder(Decoder):
    """Decodes placements or acknowledgements, and refuses wrong ones; see `accepted`.

    Args:
        record: `Placement` or `Acknowledgement`.
    """

    record: type[Placement] | type[Acknowledgement]

    def decode(self, messages: Messages) -> Decoded:
        rows, refused = [], []
        for row, value in enumerate(messages.values.to_pylist()):
            try:
                parsed = accepted(self.record, value)
            except NewnormalError as error:
                refused.append((row, error.code, error.what))
            else:
                text = parsed.to_json().decode()
                rows.append({"window_end": getattr(parsed, "time"), COLUMNS[self.record]: text, ROW: row})  # noqa: B009
        schema = SiteMessage.arrow_schema().append(pa.field(ROW, pa.int32()))
        return Decoded(pa.Table.from_pylist(rows, schema), refused)


@dataclass
class Known:
    """What operators have said of a site: the last message on each machine, and on each incident.

    Of two messages on the same, the one with the later event time counts; so their order does not matter.

    Args:
        texts: The messages by kind (a column of `SiteMessage`) and by machine or incident, as JSON text.
    """

    texts: dict[str, dict[str, str]] = field(default_factory=dict)

    def take(self, batch: pl.DataFrame) -> bool:
        """Adds messages; True if one of them says something new."""
        before = {name: dict(own) for name, own in self.texts.items()}
        for record, column in COLUMNS.items():
            own = self.texts.setdefault(column, {})
            for text in batch[column].drop_nulls().to_list() if column in batch.columns else ():
                new = record.from_json(text)
                key = str(getattr(new, record.identity[0]))
                if key not in own or _order(record, own[key]) < _order(record, text):
                    own[key] = text
        self.texts = {name: own for name, own in self.texts.items() if own}
        return self.texts != before

    def parents(self) -> dict[str, str]:
        """What each machine with a place depends on."""
        placed = [Placement.from_json(text) for text in self.texts.get("placement", {}).values()]
        return {p.entity: p.parent for p in sorted(placed, key=lambda p: p.entity) if p.parent}

    def acknowledgements(self) -> dict[str, Acknowledgement]:
        """The last acknowledgement of each incident."""
        given = self.texts.get("acknowledgement", {})
        return {name: Acknowledgement.from_json(given[name]) for name in sorted(given)}

    def forget(self, before: int) -> None:
        """Forgets acknowledgements that were given before an event time, epoch milliseconds."""
        for name, given in self.acknowledgements().items():
            if given.time < before:
                del self.texts["acknowledgement"][name]


def _order(record: type[Record], text: str) -> tuple[int, str]:
    return int(getattr(record.from_json(text), "time")), text  # noqa: B009
