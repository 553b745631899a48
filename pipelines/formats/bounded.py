"""Refuses messages with too many parts before a decoder sees them, and gives it a few MB at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from engine.spec.decoder import Decoded, Decoder, Messages
from engine.spec.record import Record
from pipelines.contracts.records import Log
from pipelines.formats import parts
from pipelines.formats.refusals import TOO_MANY_PARTS
from pipelines.formats.remote_write_protocol import Request, WriteRequest, is_remote_write

_TOGETHER = 2_000_000
"""The bytes of messages that are decoded together; a larger message is decoded alone."""


def why_refused(value: bytes, record: type[Record], most: int) -> str | None:
    """The reason why a message is not decoded; ``None`` if it has no more than ``most`` parts.

    Args:
        value: The message, of any format.
        record: What it is to become: `Telemetry` or `Log`.
        most: The most parts.

    >>> why_refused(b"a,host=x v=1,w=2", Log, 100)
    >>> why_refused(b"x" + 100 * bytes([10]), Log, 10)
    'it holds more than 10 samples, lines, labels or other parts; send smaller batches, or raise input.max_parts'
    """
    return reason(most) if len(value) > most and _count(value, record, most) > most else None


def reason(most: int) -> str:
    """Why a message with more than ``most`` parts is not decoded."""
    return (
        f"it holds more than {most} samples, lines, labels or other parts; send smaller batches, or raise"
        " input.max_parts"
    )


def _count(value: bytes, record: type[Record], most: int) -> int:
    first = value[:64].lstrip()[:1] or value.lstrip()[:1]
    if value[:1] in (b"\n", b'"'):
        counts = [parts.of_protobuf(value, kind, most) for kind in _kinds(value, record)]
        if counts != [None] * len(counts):
            return max(filter(None, counts), default=0)
    if first in (b"{", b"["):
        return parts.of_json(value, most)
    return parts.of_text(value, record is Log)


def _kinds(value: bytes, record: type[Record]) -> list[Descriptor]:
    """The types of messages in protobuf that a message is parsed as; log lines also as metrics, to tell them apart."""
    if record is Log:
        return [ExportLogsServiceRequest.DESCRIPTOR, ExportMetricsServiceRequest.DESCRIPTOR]
    if is_remote_write(value):
        return [(Request if value[:1] == b'"' else WriteRequest).DESCRIPTOR]
    return [ExportMetricsServiceRequest.DESCRIPTOR]


@dataclass(frozen=True)
class BoundedDecoder(Decoder):
    """Decodes messages with another decoder, but for those with too many parts, which are refused.

    Args:
        decoder: The other decoder.
        record: What it makes.
        most: The most parts of a message.
    """

    decoder: Decoder
    record: type[Record]
    most: int = parts.MOST

    def decode(self, messages: Messages) -> Decoded:
        sizes = np.asarray(pc.fill_null(pc.binary_length(messages.values), 0)).astype(np.int64)
        refused = list(self._refused(messages.values, sizes))
        if not refused and (len(sizes) == 1 or sizes.sum() <= _TOGETHER):
            return self.decoder.decode(messages)
        rows = np.setdiff1d(np.arange(len(sizes)), [row for row, _, _ in refused])
        pieces = [self._piece(messages, mine) for mine in _pieces(rows, sizes)] or [self._piece(messages, rows)]
        records = pa.concat_tables(each.records for each in pieces).unify_dictionaries().combine_chunks()
        refused += [each for piece in pieces for each in piece.refused]
        return Decoded(records, sorted(refused), [each for piece in pieces for each in piece.writer_watermarks])

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        return self.decoder.only(value, records)

    def _refused(self, values: pa.Array, sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, str, str]]:
        for row in np.flatnonzero(sizes > self.most).tolist():
            why = why_refused(values[row].as_py(), self.record, self.most)
            if why:
                yield row, TOO_MANY_PARTS, why

    def _piece(self, messages: Messages, rows: npt.NDArray[np.int64]) -> Decoded:
        """What some of the messages become, with their places among all."""
        keep = np.zeros(len(messages.values), np.bool_)
        keep[rows] = True
        return self.decoder.decode(messages.where(keep)).among(rows)


def _pieces(rows: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """The messages in their order, in pieces of at most `_TOGETHER` bytes unless one message is larger."""
    begin = held = 0
    for at, size in enumerate(sizes[rows].tolist()):
        if held + size > _TOGETHER and at > begin:
            yield rows[begin:at]
            begin, held = at, 0
        held += size
    if begin < len(rows):
        yield rows[begin:]
