"""Reads messages one by one, and checks what they hold by the column: common to the decoders of JSON messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from engine.formats.dead_letters import payload_text
from engine.formats.json_decoder import FIELD_INVALID, JSON_MALFORMED
from engine.spec.decoder import ROW
from engine.spec.record import Record
from pipelines.formats.refusals import Refused, RefusedError

T = TypeVar("T")

WRONG = (RefusedError, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""What reading a message may raise if it does not have its format, or is nested too deeply to be shown."""


def json_of(value: bytes | None) -> Any:
    """What a message holds as JSON.

    Raises:
        RefusedError: ``JSON_MALFORMED``.
    """
    try:
        return orjson.loads(value or b"")
    except ValueError as error:
        raise RefusedError(JSON_MALFORMED, f"{error}: {payload_text(value)[:80]}") from None


def refusal_of(error: Exception, format_name: str) -> tuple[str, str]:
    """Code and reason of the refusal of a message, from what was raised when it was read.

    >>> refusal_of(KeyError("host"), "Telegraf")
    ('FIELD_INVALID', "not a Telegraf message: the field 'host' is missing")
    """
    if isinstance(error, RefusedError):
        return error.code, str(error)
    if isinstance(error, KeyError):
        return FIELD_INVALID, f"not a {format_name} message: the field {error} is missing"
    what = str(error) if type(error) is ValueError else f"{type(error).__name__} {error}"
    return FIELD_INVALID, f"not a {format_name} message: {what}"


def columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """The columns of one or more rows; faster than ``zip(*rows)``, which makes an iterator for each row.

    >>> columns([(1, "a"), (2, "b")])
    [[1, 2], ['a', 'b']]
    """
    return [list(map(itemgetter(at), rows)) for at in range(len(rows[0]))]


def gather(
    messages: int,
    read: Callable[[int], Iterable[T]],
    refusal: Callable[[int, Exception], tuple[str, str]],
    are_fine: Callable[[list[T]], bool],
    checked: Callable[[int, T], T],
) -> tuple[list[T], npt.NDArray[np.int32], list[Refused]]:
    """What the messages hold; a message of which any part is wrong is refused as a whole.

    Args:
        messages: How many messages there are.
        read: What a message holds, by its index; it may raise one of `WRONG`.
        refusal: Code and reason of the refusal of a message, from what was raised.
        are_fine: Whether `checked` would return each of all parts as it is; it looks at all at once.
        checked: A part of a message, by its index, as it is to be used; it may raise one of `WRONG`. It is asked for
            each part only if not all are fine.

    Returns:
        All parts; for each the index of its message, shape (n,); the refusals, by the index of the message.
    """
    parts: list[T] = []
    counts: list[int] = []
    refused: list[Refused] = []
    for row in range(messages):
        held = len(parts)
        try:
            parts.extend(read(row))
        except WRONG as error:
            del parts[held:]
            refused.append((row, *refusal(row, error)))
        counts.append(len(parts) - held)
    try:
        fine = are_fine(parts)
    except WRONG:
        fine = False
    if fine:
        return parts, np.repeat(np.arange(messages, dtype=np.int32), counts), refused
    good: list[T] = []
    index: list[int] = []
    end = 0
    for row, count in enumerate(counts):
        begin, end = end, end + count
        try:
            good += [checked(row, part) for part in parts[begin:end]]
            index += [row] * count
        except WRONG as error:
            refused.append((row, *refusal(row, error)))
    return good, np.array(index, np.int32), sorted(refused)


def table(record: type[Record], rows: Sequence[tuple[Any, ...]], index: npt.NDArray[np.int32]) -> pa.Table:
    """Rows as a decoded table.

    Args:
        record: Type of the records.
        rows: The values of the fields of each record, in their order.
        index: For each the index of its message, shape (n,).
    """
    schema = record.arrow_schema().append(pa.field(ROW, pa.int32()))
    if not rows:
        return schema.empty_table()
    arrays = []
    for column, field in zip([*columns(rows), index], schema, strict=True):
        encoded = pa.types.is_dictionary(field.type)
        array = pa.array(column, pa.string()).dictionary_encode() if encoded else pa.array(column, field.type)
        arrays.append(array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)
