"""Decides what is sent again for a dead letter: the message as it was, or those of its records that were refused.

The other records of the message were used when it was read first. If the whole message were sent again, they would
count twice. So a message of several records is divided by the decoder of its format. Where that cannot be done, or the
message would be refused again, nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from engine.columns.partitioning import slots
from engine.formats.dead_letters import DeadLetter, positions
from engine.runtime import reading
from engine.spec.decoder import Decoder, Messages
from engine.spec.errors import NewnormalError
from engine.spec.source import Source

SourceOf = Callable[[DeadLetter], Source | None]
"""The input of a job that read the message of a letter; ``None`` if the job is not known here."""


@dataclass(frozen=True)
class Sending:
    """One message that is sent again.

    Attributes:
        topic: Its topic.
        partition: Its partition.
        key: Its key, or ``None``.
        value: Its value.
        headers: Its headers.
    """

    topic: str
    partition: int
    key: bytes | None
    value: bytes
    headers: Sequence[tuple[str, bytes]] = ()


def sendings(letter: DeadLetter, original: Message, source: Source | None, now: int, *, force: bool) -> list[Sending]:
    """The messages that are sent for a letter.

    Args:
        letter: The letter.
        original: The message that it is about.
        source: The input of the job that refused it; ``None``: not known, so only whole messages can be sent.
        now: The present, epoch milliseconds: a time that lay in the future may lie in the past now.
        force: True if it is not checked whether the job would refuse them again.

    Raises:
        NewnormalError: ``LETTER_USED``, ``LETTER_INDIVISIBLE`` or ``LETTER_STILL_WRONG``.
    """
    value, key = original.value() or b"", original.key()
    given: Any = original.headers() or []
    headers = tuple((name, held or b"") for name, held in given)
    whole = [Sending(letter.topic, letter.partition, _bytes(key), value, headers)]
    which = None if letter.refused is None else positions(letter.refused)
    if which == []:
        what = f"{letter.code}: the letter is about something beside the {letter.records} records of the message"
        accepted = "a letter about records that were refused"
        raise NewnormalError("LETTER_USED", what, letter.topic, accepted, "nothing was sent: they would count twice")
    everything = which is None or len(which) == letter.records
    parts = whole if everything and not (source and source.partitions and which) else []
    if not parts and which is not None:
        decided = _partitions(letter, value, which, source)
        for partition, records in decided.items():
            part = _divided(letter, value, records, source)
            parts.append(Sending(letter.topic, partition, _bytes(key), part, headers))
    if source is not None and not force:
        _check(letter, parts, source, now)
    return parts


def _bytes(key: bytes | str | None) -> bytes | None:
    return key.encode() if isinstance(key, str) else key


def _partitions(letter: DeadLetter, value: bytes, which: list[int], source: Source | None) -> dict[int, list[int]]:
    """The records that are sent, by partition: that of their key where the topic is partitioned by it."""
    if source is None or not source.partitions:
        return {letter.partition: which}
    decoded = source.formats[letter.topic].decode(_messages(letter.topic, letter.partition, [value], 0)).records
    own = slots(decoded.column(source.record.identity[0]).take(pa.array(which)), source.partitions)
    return {int(p): [at for at, mine in zip(which, own, strict=True) if mine == p] for p in np.unique(own)}


def _divided(letter: DeadLetter, value: bytes, records: list[int], source: Source | None) -> bytes:
    """A message with some records of a message only."""
    part = _part(letter, value, records, source.formats[letter.topic]) if source is not None else None
    if part is None:
        what = f"{letter.records} records are in the message, and only {len(records)} of them were refused"
        accepted = (
            "a format whose decoder has `only`, and settings with which it finds as many records as the job did; "
            "of a user's job, `--file FILE` names the file of the job"
        )
        now = "nothing was sent: the other records would count twice"
        raise NewnormalError("LETTER_INDIVISIBLE", what, letter.topic, accepted, now)
    return part


def _part(letter: DeadLetter, value: bytes, records: list[int], decoder: Decoder) -> bytes | None:
    """The same; ``None`` if the decoder cannot do it, or no longer reads the message as it was when it was refused."""
    there = decoder.decode(_messages(letter.topic, letter.partition, [value], 0)).records.num_rows
    try:
        return decoder.only(value, records) if there == letter.records else None
    except (LookupError, ValueError):
        return None


def _check(letter: DeadLetter, parts: Sequence[Sending], source: Source, now: int) -> None:
    """Refuses what the job would refuse again."""
    for part in parts:
        messages = _messages(part.topic, part.partition, [part.value], now)
        _, _, dead = reading.read(source, messages, letter.job)
        if dead:
            what = f"{dead[0].code}: {dead[0].reason}"
            accepted = "a message that the job can use; --force sends it all the same"
            raise NewnormalError("LETTER_STILL_WRONG", what, letter.topic, accepted, "nothing was sent")


def _messages(topic: str, partition: int, values: Sequence[bytes], now: int) -> Messages:
    return Messages(
        topic, partition, pa.array(values, pa.binary()), np.zeros(len(values), np.int64), np.full(len(values), now)
    )
