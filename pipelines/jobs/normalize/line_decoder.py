"""The base of decoders of log lines: what is common to JSON formats whose messages hold one or several lines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from engine.formats.dead_letters import payload_text
from engine.formats.json_decoder import FIELD_INVALID, JSON_MALFORMED
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from pipelines.contracts.records import Log
from pipelines.jobs.normalize.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, NO_MACHINE, Refused, RefusedError
from pipelines.jobs.normalize.samples import LONGEST

Line = tuple[int, str, str, int, str]
"""(event time in epoch milliseconds, machine, program, severity from 0 to 7, text)"""

NO_PROGRAM = "-"
"""The program of a line that names none, as in syslog: the program is a part of a line's identity, and not empty."""

_LONGEST_LINE = 65_536


class LineDecoder(Decoder):
    """Decodes messages to columns of `Log`, message by message. Subclasses define the format."""

    @abstractmethod
    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        """The lines of one parsed message, which arrived at a time in epoch milliseconds.

        Raises:
            RefusedError: If the message cannot be used, for a reason with a code of its own.
            KeyError, TypeError, ValueError: If the message does not have the format.
        """

    def parsed(self, value: bytes) -> Any:
        """A message as `lines` takes it: by default JSON.

        Raises:
            RefusedError: ``JSON_MALFORMED``.
        """
        try:
            return orjson.loads(value)
        except ValueError as error:
            raise RefusedError(JSON_MALFORMED, f"{error}: {payload_text(value)[:80]}") from None

    def decode(self, messages: Messages) -> Decoded:
        arrived, values = messages.arrived.tolist(), messages.values.to_pylist()
        format_name = type(self).__name__.removesuffix("Decoder")
        return collect(
            len(values), lambda row: self.lines(self.parsed(values[row] or b""), int(arrived[row])), format_name
        )


def collect(messages: int, lines_of: Callable[[int], Iterable[Line]], format_name: str) -> Decoded:
    """The lines of messages as columns of `Log`; messages without a line, or with a wrong one, are refused.

    Args:
        messages: How many messages there are.
        lines_of: The lines of a message, by its index; what it may raise see `LineDecoder.lines`.
        format_name: Name of the format, for reasons.
    """
    found: list[Line] = []
    index: list[int] = []
    refused: list[Refused] = []
    for row in range(messages):
        try:
            mine = checked(partial(lines_of, row), format_name)
        except RefusedError as error:
            refused.append((row, error.code, str(error)))
            continue
        found += mine
        index += [row] * len(mine)
    return Decoded(_table(found, index), refused)


def checked(lines_of: Callable[[], Iterable[Line]], format_name: str) -> list[Line]:
    """The lines of a message.

    Args:
        lines_of: Its lines; what it may raise see `LineDecoder.lines`.
        format_name: Name of the format, for reasons.

    Raises:
        RefusedError: If one of them cannot be used, or there is none.
    """
    try:
        mine = [_checked(line) for line in lines_of()]
    except RefusedError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise RefusedError(FIELD_INVALID, f"not a {format_name} message: {type(error).__name__} {error}") from None
    if not mine:
        raise RefusedError(MESSAGE_EMPTY, "the message holds no text that could be a log line")
    return mine


def _checked(line: Line) -> Line:
    time, entity, program, severity, text = line
    if not entity:
        raise RefusedError(MACHINE_UNKNOWN, NO_MACHINE)
    if not (isinstance(entity, str) and isinstance(program, str) and isinstance(text, str)):
        raise TypeError("machine, program and message must be text")
    if len(entity) > LONGEST or len(program) > LONGEST or len(text) > _LONGEST_LINE:
        raise ValueError(f"a name is longer than {LONGEST} characters, or the text longer than {_LONGEST_LINE}")
    if abs(time) > 2**53:
        raise ValueError(f"time {time} is beyond all calendars")
    text.encode()  # a lone surrogate is no text
    return time, entity, program or NO_PROGRAM, severity, text


def _table(found: list[Line], index: list[int]) -> pa.Table:
    schema = Log.arrow_schema().append(pa.field(ROW, pa.int32()))
    if not found:
        return schema.empty_table()
    columns = [*zip(*found, strict=True), np.array(index, np.int32)]
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        encoded = pa.types.is_dictionary(field.type)
        array = pa.array(column, pa.string()).dictionary_encode() if encoded else pa.array(column, field.type)
        arrays.append(array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)
