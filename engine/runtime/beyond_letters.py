"""The dead letters of what an operator has not taken in, and of results that their type cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import orjson
import polars as pl

from engine.columns.partitioning import slots
from engine.formats.dead_letters import DeadLetter, dead_letter
from engine.spec.job import Job
from engine.spec.operator import Row
from engine.vectorized.beyond import BEYOND
from engine.vectorized.processor import Refused

_CODE = "RESULT_BEYOND"


def beyond_letters(job: Job, beyond: Sequence[pl.DataFrame], clock: int) -> Iterator[bytes]:
    """A letter for each result. It names the topic and partition where the result is missing, and no message of these.

    Args:
        job: The job.
        beyond: The results, with the column `BEYOND`.
        clock: When they were computed, epoch milliseconds of the shard's clock.
    """
    for frame in beyond:
        partitions = slots(frame[job.key[0]].cast(pl.String), job.output.partitions) if frame.height else ()
        for row, partition in zip(frame.to_dicts(), partitions, strict=True):
            name = row.pop(BEYOND)
            reason = f"{name} of these records leaves 64 bits; accepted: smaller values, or values cast to double"
            yield _letter(job, _CODE, reason, row, clock, int(partition)).to_json()


def refused_letters(job: Job, refused: Sequence[Refused], clock: int) -> Iterator[bytes]:
    """A letter for all that an operator has not taken in for one reason: how much it is, and the first record.

    Args:
        job: The job.
        refused: What was refused.
        clock: When, epoch milliseconds of the shard's clock.
    """
    for each in refused:
        first, count = each.records.row(0, named=True), each.records.height
        letter = _letter(job, each.code, each.reason, first, clock, each.slot % job.output.partitions)
        yield letter.model_copy(update={"records": count}).to_json()


def _letter(job: Job, code: str, reason: str, row: Row, clock: int, partition: int) -> DeadLetter:
    payload, at = orjson.dumps(row, default=str), max(0, clock)
    offset = -1 - int.from_bytes(sha256(payload).digest()[:6])  # negative: no message
    topic = job.output.topic
    return dead_letter(job.name, code, reason, payload, time=at, topic=topic, partition=partition, offset=offset)
