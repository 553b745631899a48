"""Makes samples of what agents would have sent, by the very code with which the normalizer reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from engine.formats.dead_letters import DeadLetter
from engine.runtime.reading import checked, read
from engine.spec.decoder import ROW, Messages
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings
from pipelines.jobs.normalizers import normalizer

_SHOWN = 300
_MOST_PARTS = 10_000_000
"""Parts of a message. ``input.max_parts`` bounds what is sent; these messages are as long as the import makes them."""

_MOST_BYTES = 4_000_000
"""Bytes of messages that are decoded together."""


class Intake:
    """Reads messages as if they came in the topic of agents, and counts what is refused.

    Names, kinds, limits and reasons are those of the normalizer, with the same settings but for ``input.max_parts``.

    Args:
        settings: The settings.

    Attributes:
        refused: Number of refused messages and samples, by code.
        reasons: The first reason of each code.
    """

    def __init__(self, settings: Settings) -> None:
        given = settings.input.model_copy(update={"max_parts": _MOST_PARTS})
        (self._source,) = normalizer(settings.model_copy(update={"input": given})).inputs
        self._topic = settings.reads(topics.RAW_AGENTS)
        self.refused: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def records(self, messages: Iterable[bytes], arrived: int) -> pa.Table:
        """The samples of messages, with the columns of `Telemetry`.

        Args:
            messages: The messages, each of one of the formats of agents.
            arrived: When they would have arrived, epoch milliseconds: a sample may not lie far after that.
        """
        tables, some, size = [Telemetry.arrow_schema().empty_table()], list[bytes](), 0
        for message in messages:
            some.append(message)
            size += len(message)
            if size > _MOST_BYTES:
                tables.append(self._read(some, arrived))
                some, size = [], 0
        if some:
            tables.append(self._read(some, arrived))
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks()

    def checked(self, records: pa.Table, arrived: int) -> pa.Table:
        """The records that the normalizer would take, of a table that has the columns of `Telemetry` already."""
        rows = pa.array(np.zeros(records.num_rows, np.int32))
        good, refused = checked(self._source, records.append_column(ROW, rows), self._messages([b""], arrived))
        for _, code, why, _, which in refused:
            self.count(code, why, len(which))
        return good.drop_columns([ROW])

    def count(self, code: str, why: str, number: int = 1) -> None:
        """Counts what is refused."""
        self.refused[code] += number
        self.reasons.setdefault(code, why[:_SHOWN])

    def tried(self, values: list[bytes], arrived: int) -> tuple[pa.Table, list[DeadLetter]]:
        """The samples of messages, and the dead letters that they would be, which are not counted."""
        table, _, dead = read(self._source, self._messages(values, arrived), "import")
        return table, dead

    def _read(self, values: list[bytes], arrived: int) -> pa.Table:
        table, dead = self.tried(values, arrived)
        for letter in dead:
            self.count(letter.code, letter.reason, refused_in(letter))
        return table

    def _messages(self, values: list[bytes], arrived: int) -> Messages:
        n = len(values)
        return Messages(self._topic, 0, pa.array(values, pa.binary()), np.arange(n), np.full(n, arrived, np.int64))


def refused_in(letter: DeadLetter) -> int:
    """How many records a dead letter is about; at least 1, as something beside the records may be refused."""
    if letter.refused is None:
        return letter.records or 1
    spans = [part.partition("-") for part in letter.refused.split(",") if part]
    return max(1, sum(int(last or first) - int(first) + 1 for first, _, last in spans))


class TooMuchError(Exception):
    """A slice of time holds more than is kept in memory at a time; a shorter one may do."""


class StoppedError(Exception):
    """The import was stopped while a source was asked."""


def too_large(why: str, where: str) -> NewnormalError:
    """The error ``IMPORT_TOO_LARGE``: even the shortest slice of time holds too much."""
    accepted = "fewer series: a narrower --match, --query or set of files"
    return NewnormalError("IMPORT_TOO_LARGE", why, where, accepted, "what was imported stays, and is complete")
