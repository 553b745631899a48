"""The base of decoders of log lines in JSON, whose messages hold one or several; and the decoder of our own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.contracts.records import Log
from pipelines.formats.by_message import WRONG, columns, gather, json_of, refusal_of, table
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, NO_MACHINE, RefusedError
from pipelines.formats.samples import LONGEST

Line = tuple[int, str, str, int, str]
"""(event time in epoch milliseconds, machine, program, severity from 0 to 8, text)"""

NO_PROGRAM = "-"
"""The program of a line that names none, as in syslog: the program is a part of a line's identity, and not empty."""

LONGEST_LINE = 65_536
_NO_LINE = "the message holds no text that could be a log line"


class LineDecoder(Decoder):
    """Decodes messages to columns of `Log`, message by message. Subclasses define the format."""

    @abstractmethod
    def lines(self, message: Any, arrived: int) -> Iterator[Line | None]:
        """The lines of one parsed message, which arrived at a time in epoch milliseconds; ``None`` for a part without.

        Raises:
            RefusedError: If the message cannot be used, for a reason with a code of its own.
            KeyError, TypeError, ValueError: If the message does not have the format.
        """

    def parsed(self, value: bytes) -> Any:
        """A message as `lines` takes it: by default JSON.

        Raises:
            RefusedError: ``JSON_MALFORMED``.
        """
        return json_of(value)

    def decode(self, messages: Messages) -> Decoded:
        arrived, values = messages.arrived.tolist(), messages.values.to_pylist()
        format_name = type(self).__name__.removesuffix("Decoder")
        return collect(
            len(values), lambda row: self.lines(self.parsed(values[row] or b""), int(arrived[row])), format_name
        )


def collect(messages: int, lines_of: Callable[[int], Iterable[Line | None]], format_name: str) -> Decoded:
    """The lines of messages as columns of `Log`; messages without a line, or with a wrong one, are refused.

    A message of which only some parts hold no line is used, and reported.

    Args:
        messages: How many messages there are.
        lines_of: The lines of a message, by its index; what it may raise see `LineDecoder.lines`.
        format_name: Name of the format, for reasons.
    """
    without: dict[int, tuple[int, int]] = {}

    def read(row: int) -> list[Line]:
        parts = list(lines_of(row))
        if None not in parts:
            return parts  # type: ignore[return-value]
        there = [line for line in parts if line is not None]
        if there:
            without[row] = (len(parts) - len(there), len(parts))
        return there

    lines, index, refused = gather(
        *(messages, read, lambda row, error: refusal_of(error, format_name), _are_fine),
        lambda row, line: _checked(line),
    )
    empty = np.ones(messages, np.bool_)
    empty[index] = False
    empty[[row for row, _, _ in refused]] = False
    refused += [(row, MESSAGE_EMPTY, _NO_LINE) for row in np.flatnonzero(empty).tolist()]
    whole = {row for row, _, _ in refused}
    partly = ((row, lost, held) for row, (lost, held) in without.items() if row not in whole)
    refused += [(row, MESSAGE_EMPTY, f"{lost} of {held} parts: {_NO_LINE}") for row, lost, held in partly]
    return Decoded(table(Log, lines, index), sorted(refused))


def _are_fine(lines: list[Line]) -> bool:
    """Whether `_checked` would take each line as it is; checked by the column."""
    if not lines:
        return True
    times, entities, programs, _, texts = columns(lines)
    if any(set(map(type, column)) != {str} for column in (entities, programs, texts)):
        return False
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return (
        max(map(abs, times)) <= 2**53
        and all(0 < len(name) <= LONGEST for names in (set(entities), set(programs)) for name in names)
        and max(map(len, texts)) <= LONGEST_LINE
    )


def checked(lines_of: Callable[[], Iterable[Line | None]], format_name: str) -> list[Line]:
    """The lines of a message.

    Args:
        lines_of: Its lines; what it may raise see `LineDecoder.lines`.
        format_name: Name of the format, for reasons.

    Raises:
        RefusedError: If one of them cannot be used, or there is none.
    """
    try:
        mine = [_checked(line) for line in lines_of() if line is not None]
    except WRONG as error:
        raise RefusedError(*refusal_of(error, format_name)) from None
    if not mine:
        raise RefusedError(MESSAGE_EMPTY, _NO_LINE)
    return mine


def _checked(line: Line) -> Line:
    time, entity, program, severity, text = line
    if not entity:
        raise RefusedError(MACHINE_UNKNOWN, NO_MACHINE)
    if not (isinstance(entity, str) and isinstance(program, str) and isinstance(text, str)):
        raise TypeError("machine, program and message must be text")
    if len(entity) > LONGEST or len(program) > LONGEST or len(text) > LONGEST_LINE:
        raise ValueError(f"a name is longer than {LONGEST} characters, or the text longer than {LONGEST_LINE}")
    if abs(time) > 2**53:
        raise ValueError(f"time {time} is beyond all calendars")
    text.encode()  # a lone surrogate is no text
    return time, entity, program or NO_PROGRAM, severity, text


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
