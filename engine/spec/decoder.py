"""The interface of input formats: from messages to columns, and which messages could not be used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ROW = "__row"
"""Column of decoded records: index of the message that each record came from."""


@dataclass(frozen=True)
class Messages:
    """Some consecutive messages of one topic partition, as arrays of the same length."""

    topic: str
    partition: int
    values: pa.Array
    offsets: npt.NDArray[np.int64]
    arrived: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: Sequence[bytes | None], arrived: int = 0) -> Messages:
        """Some values as messages that arrived together, epoch milliseconds, for callers that read no topic."""
        n = len(values)
        return cls("", 0, pa.array(values, pa.binary()), np.arange(n), np.full(n, arrived, np.int64))

    def where(self, keep: npt.NDArray[np.bool_]) -> Messages:
        """Only the messages for which ``keep`` is true."""
        values = self.values.filter(pa.array(keep))
        return Messages(self.topic, self.partition, values, self.offsets[keep], self.arrived[keep])


@dataclass
class Decoded:
    """The result of decoding some messages.

    Attributes:
        records: Columns of the record type and `ROW`.
        refused: Index of the message, code and reason of each that could not be used.
        writer_watermarks: Index and watermark of each message that carries its writer's watermark.
    """

    records: pa.Table
    refused: list[tuple[int, str, str]] = field(default_factory=list)
    writer_watermarks: list[tuple[int, int]] = field(default_factory=list)

    def among(self, rows: npt.NDArray[np.int64]) -> Decoded:
        """The same of messages that are some of others.

        Args:
            rows: For each message its index among the others.
        """
        at = self.records.schema.get_field_index(ROW)
        moved = pa.array(rows[self.records.column(ROW).to_numpy()].astype(np.int32), pa.int32())
        return Decoded(
            self.records.set_column(at, ROW, moved),
            [(int(rows[row]), code, why) for row, code, why in self.refused],
            [(int(rows[row]), time) for row, time in self.writer_watermarks],
        )


TOMBSTONE = b"\0tombstone:"
"""What stands for the missing value of a message, with its key behind it; no text, JSON or Arrow stream begins so."""


class Decoder(ABC):
    """One input format."""

    tombstones: ClassVar[bool] = False
    """Whether a message without a value comes as `TOMBSTONE` and its key; otherwise without either."""

    @abstractmethod
    def decode(self, messages: Messages) -> Decoded:
        """Decodes the usable messages to columns; never raises because of the content of a message."""

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        """A message with some records of a message, to send these again; ``None`` if this format cannot be divided.

        Args:
            value: A message that `decode` can read.
            records: Positions of the records, from 0, in the order in which `decode` returns them.
        """
        return None
