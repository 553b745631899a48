"""The dead letters of results that their type cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import orjson
import polars as pl

from engine.columns.partitioning import slots
from engine.formats.dead_letters import dead_letter
from engine.spec.job import Job
from engine.vectorized.beyond import BEYOND

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
            payload = orjson.dumps(row, default=str)
            reason = f"{name} of these records leaves 64 bits; accepted: smaller values, or values cast to double"
            offset = -1 - int.from_bytes(sha256(payload).digest()[:6])  # negative: no message
            letter = dead_letter(
                job.name, _CODE, reason, payload,
                time=max(0, clock), topic=job.output.topic, partition=int(partition), offset=offset,
            )  # fmt: skip
            yield letter.to_json()
