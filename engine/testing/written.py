"""The output of a job, decoded from its messages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.formats import columnar
from engine.runtime.messages import Message
from engine.runtime.shard import STATS, Stats
from engine.spec.duration import NEVER
from engine.spec.job import Job
from engine.spec.output import Output

Row = dict[str, Any]


@dataclass
class Written:
    """The output of one micro-batch.

    Attributes:
        rows: Results, in the order they were written.
        late: Late records.
        dead: Dead letters.
        watermark: The watermark after the micro-batch.
        stats: The statistics of each shard that ran.
        side: The results in each side output, by its name.
    """

    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    dead: list[Row] = field(default_factory=list)
    watermark: int = NEVER
    stats: list[Stats] = field(default_factory=list)
    side: dict[str, list[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, messages: Iterable[Message]) -> Written:
        """Decodes the messages of all shards; the watermark is that of the first shard."""
        written = cls()
        for message in messages:
            if message.topic == STATS:
                stats = Stats.of(message)
                written.stats.append(stats)
                written.watermark = stats.watermark if stats.shard == 0 else written.watermark
            elif message.topic == job.output.topic:
                written.rows += _rows(job.output, message)
            elif job.late and message.topic == job.late.topic:
                written.late += _rows(job.late, message)
            elif message.topic == job.dead.topic:
                written.dead.append(json.loads(message.value or b""))
            for side in job.side:
                if message.topic == side.output.topic:
                    written.side.setdefault(side.name, []).extend(_rows(side.output, message))
        return written


def _rows(output: Output, message: Message) -> list[Row]:
    """The records of a message; of a tombstone its key."""
    value = message.value or message.key
    if output.format == "json":
        return [json.loads(value)]
    rows: list[Row] = columnar.decode(value, output.record.arrow_schema())[0].to_pylist()
    return rows


@dataclass
class History:
    """The output of a job so far.

    Attributes:
        written: The output of each micro-batch.
    """

    written: list[Written] = field(default_factory=list, kw_only=True)

    @property
    def rows(self) -> list[Row]:
        """All results, in the order they were written."""
        return [row for written in self.written for row in written.rows]

    @property
    def late(self) -> list[Row]:
        """All late records."""
        return [row for written in self.written for row in written.late]

    @property
    def dead(self) -> list[Row]:
        """All dead letters."""
        return [row for written in self.written for row in written.dead]

    @property
    def side(self) -> dict[str, list[Row]]:
        """All results in each side output, by its name."""
        by_output: dict[str, list[Row]] = {}
        for written in self.written:
            for name, rows in written.side.items():
                by_output.setdefault(name, []).extend(rows)
        return by_output

    @property
    def watermarks(self) -> list[int]:
        """The watermark after each micro-batch."""
        return [written.watermark for written in self.written]
