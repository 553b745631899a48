"""Decodes the messages of one partition to columns, and makes the checks that hold for all formats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.columns.partitioning import slots
from engine.formats.dead_letters import DeadLetter, dead_letter
from engine.formats.heartbeat import HEARTBEAT
from engine.spec.decoder import ROW, Decoded, Messages
from engine.spec.duration import NEVER
from engine.spec.log_place import COLUMNS, HIDDEN, Times, before_each, placed
from engine.spec.most_keys import CODE, MostKeys
from engine.spec.source import Source
from engine.spec.steps import apply
from engine.spec.too_large import refusal, stand_ins
from engine.state.known_keys import KnownKeys
from engine.watermarks import Marker

LARGEST = 1e150
"""Greatest accepted absolute value of a number: its square must still be a finite number."""

_Refused = tuple[int, str, str, int, list[int]]
"""Index of a message, code, reason, number of records in the message, positions of the refused ones."""

_INDEX = f"{HIDDEN}index"
_UNTIMED = "the steps of the job give it no event time (null)"
_PARTITIONER = "CRC-32 of the key modulo their number"


def read(
    source: Source, messages: Messages, job: str, log_decides: bool = False, keys: KnownKeys | None = None
) -> tuple[pa.Table, Marker, list[DeadLetter]]:
    """Decodes and checks messages of one partition.

    Args:
        source: The input that they belong to.
        messages: The messages.
        job: Name of the job, for dead letters.
        log_decides: Whether the records get their place in the log, see `engine.spec.log_place`.
        keys: The keys that the shard knows; ``None``: how many there are is not asked.

    Returns:
        The good records after the steps, the marker of the partition's clock, and the dead letters.
    """
    first, last, offset = int(messages.arrived.min()), int(messages.arrived.max()), int(messages.offsets[0])
    beats = pc.fill_null(pc.equal(messages.values, HEARTBEAT), False).to_numpy(zero_copy_only=False)
    messages = messages.where(~beats) if beats.any() else messages
    last_record = int(messages.arrived.max()) if len(messages.values) else NEVER
    messages, dead = _without_too_large(job, messages)
    decoded = source.formats[messages.topic].decode(messages)
    records, refused = checked(source, decoded.records, messages, keys)
    dead += _decoders_letters(job, messages, decoded)
    dead += [_dead(job, messages, *part) for part in refused]
    dead = dead if source.reports else []
    if source.clock != "event":
        marker = Marker(messages.topic, messages.partition, last, None, first, last, last, offset)
        return apply(source.steps, _stamped(source, records, messages)), marker, dead
    newest = pc.max(records.column(source.time)).as_py() if records.num_rows else NEVER
    carriers, watermarks = _writer_watermarks(source, records, decoded, messages)
    writer_watermark = int(watermarks.max()) if len(watermarks) else None
    observed = source.watermark.observed(records.column(source.time).to_numpy())
    marker = Marker(
        messages.topic, messages.partition, newest, writer_watermark, first, last, last_record, offset, observed
    )
    if log_decides:
        records = _with_log(source, records, len(messages.values), carriers, watermarks)
    stepped, untimed = _stepped(source, records)
    dead += [_dead(job, messages, *part) for part in untimed] if source.reports else []
    return placed(stepped, messages.topic, messages.partition) if log_decides else stepped, marker, dead


def _stepped(source: Source, records: pa.Table) -> tuple[pa.Table, list[_Refused]]:
    """The records after the steps, and those that the steps have left without an event time, as `checked` returns them.

    A function of the user's own may lose from which record one came: such records are reported for the first message.
    """
    if all(step.keeps(source.time) for step in source.steps):
        return apply(source.steps, records.drop_columns([ROW])), []
    rows = records.column(ROW).to_numpy()
    index = pa.array(np.arange(len(rows)), pa.int64())
    stepped = apply(source.steps, records.drop_columns([ROW]).append_column(_INDEX, index))
    timed = stepped.column(source.time).is_valid()
    if pc.all(timed).as_py() in (True, None):
        return stepped.drop_columns([_INDEX]) if _INDEX in stepped.column_names else stepped, []
    lost = [0] * (stepped.num_rows - int(pc.sum(timed).as_py()))
    from_ = stepped.column(_INDEX).filter(pc.invert(timed)).to_pylist() if _INDEX in stepped.column_names else lost
    stepped = stepped.drop_columns([_INDEX]) if _INDEX in stepped.column_names else stepped
    held, place, positions_of = np.bincount(rows), positions(rows), dict[int, list[int]]()
    for record in dict.fromkeys(from_):
        positions_of.setdefault(int(rows[record]), []).append(int(place[record]))
    letters = [(row, "TIME_MISSING", _UNTIMED, int(held[row]), which) for row, which in positions_of.items()]
    return stepped.filter(timed), letters


def _without_too_large(job: str, messages: Messages) -> tuple[Messages, list[DeadLetter]]:
    """The messages without those that Kafka's client did not decompress, and the dead letters of these."""
    unread = stand_ins(messages.values).to_numpy(zero_copy_only=False)
    if not unread.any():
        return messages, []
    dead = [
        _dead(job, messages, row, *refusal(messages.values[row].as_py())) for row in np.flatnonzero(unread).tolist()
    ]
    return messages.where(~unread), dead


def _with_log(source: Source, records: pa.Table, messages: int, carriers: Times, watermarks: Times) -> pa.Table:
    """The records with `engine.spec.log_place.COLUMNS`; ``carriers`` are the messages that carry the watermarks."""
    rows = records.column(ROW).to_numpy()
    writer = before_each(messages, carriers, watermarks)
    newest = before_each(messages, rows, records.column(source.time).to_numpy())
    for field, values in zip(COLUMNS, (writer, newest), strict=True):
        records = records.append_column(field, pa.array(values[rows]))
    return records


def _writer_watermarks(source: Source, records: pa.Table, decoded: Decoded, messages: Messages) -> tuple[Times, Times]:
    """The watermarks in the messages or records, each capped at a bound after the arrival of its message.

    Returns:
        The index of the message of each, and the watermarks.
    """
    column = source.watermark.record_watermarks(records)
    if column is not None:
        valid = pc.is_valid(column)
        rows, watermarks = records.column(ROW).filter(valid).to_numpy(), column.filter(valid).to_numpy()
    else:
        rows, watermarks = np.array(decoded.writer_watermarks, np.int64).reshape(-1, 2).T
    return rows, np.minimum(watermarks, messages.arrived[rows] + source.bounds.max_ahead)


def _stamped(source: Source, records: pa.Table, messages: Messages) -> pa.Table:
    """The records with their arrival in the time column."""
    arrived = pa.array(messages.arrived[records.column(ROW).to_numpy()])
    columns = {name: records.column(name) for name in source.record.arrow_schema().names} | {source.time: arrived}
    return pa.table(columns, schema=source.decoded())


def checked(
    source: Source, records: pa.Table, messages: Messages, keys: KnownKeys | None = None
) -> tuple[pa.Table, list[_Refused]]:
    """Divides records into good and refused ones; the arguments are those of `read`.

    Returns:
        The good records; and for each message with others: its index, code, reason, how many records it holds, and the
        positions of those that are refused.
    """
    rows = records.column(ROW).to_numpy()
    own = source.clock == "event"
    times = records.column(source.time).to_numpy() if own else messages.arrived[rows]
    wrong = own & (source.bounds.early(times) | source.bounds.ahead(times, messages.arrived[rows]))
    broken = np.zeros(len(rows), bool)
    for name, column in zip(records.schema.names, records.columns, strict=True):
        if pa.types.is_floating(column.type):
            values = column.to_numpy()
            broken |= ~(np.abs(values) <= LARGEST) & column.is_valid().to_numpy()
        elif name in source.record.identity and pa.types.is_dictionary(column.type):
            broken |= pc.equal(column, "").to_numpy()
    astray = np.zeros(len(rows), bool)
    if source.partitions:
        astray = slots(records.column(source.record.identity[0]), source.partitions) != messages.partition
    bad = wrong | broken | astray
    beyond = np.zeros(len(rows), bool)
    if source.most_keys and keys:
        beyond = keys.beyond(source.most_keys, messages.topic, messages.partition, records, ~bad, times)
    if not bad.any() and not beyond.any():
        return records, []
    refused: dict[tuple[int, str], tuple[str, list[int]]] = {}
    held, place = np.bincount(rows), positions(rows)
    for index in np.flatnonzero(bad):
        row = int(rows[index])
        code, why = _why(source, int(times[index]), int(messages.arrived[row]), bool(astray[index]))
        refused.setdefault((row, code), (why, []))[1].append(int(place[index]))
    letters = [(row, code, why, int(held[row]), which) for (row, code), (why, which) in refused.items()]
    if source.most_keys and beyond.any():
        for row in np.unique(rows[beyond]).tolist():
            mine = np.flatnonzero(beyond & (rows == row))
            why = _too_many(source.most_keys, records, int(mine[0]))
            letters.append((row, CODE, why, int(held[row]), place[mine].tolist()))
    return records.filter(pa.array(~(bad | beyond))), letters


def _too_many(most: MostKeys, records: pa.Table, at: int) -> str:
    """Why a record is refused that brings one key too many."""
    return most.reason(tuple(str(records.column(name)[at].as_py()) for name in most.key))


def _decoders_letters(job: str, messages: Messages, decoded: Decoded) -> list[DeadLetter]:
    """The dead letters of the decoder; one about a message with records says that none of these is refused by it."""
    if not decoded.refused:
        return []
    held = np.bincount(decoded.records.column(ROW).to_numpy(), minlength=len(messages.values)).tolist()
    return [
        _dead(job, messages, row, code, why, held[row] or None, [] if held[row] else None)
        for row, code, why in decoded.refused
    ]


def positions(rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The position of each record within its message, from 0.

    >>> positions(np.array([0, 0, 2, 0, 2], np.int32))
    array([0, 1, 0, 2, 1])
    """
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    return place


def _why(source: Source, time: int, arrived: int, astray: bool) -> tuple[str, str]:
    """Code and reason for refusing a record."""
    wrong_time = source.bounds.refusal(time, arrived, source.time) if source.clock == "event" else None
    if wrong_time:
        return wrong_time
    if astray:
        return "KEY_ASTRAY", f"its key belongs to another of the {source.partitions} partitions: {_PARTITIONER}"
    return "VALUE_INVALID", f"NaN, beyond ±{LARGEST:g}, or an empty key; accepted: finite numbers"


def _dead(
    job: str, messages: Messages, row: int, code: str, reason: str,
    records: int | None = None, refused: list[int] | None = None,
) -> DeadLetter:  # fmt: skip
    return dead_letter(
        job,
        code,
        reason,
        messages.values[row].as_py(),
        time=int(messages.arrived[row]),
        topic=messages.topic,
        partition=messages.partition,
        offset=int(messages.offsets[row]),
        records=records,
        refused=refused,
    )
