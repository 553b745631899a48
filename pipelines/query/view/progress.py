"""How far the view has read each partition of its topics, which is stored together with what was read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from engine.spec.duration import NEVER, iso
from pipelines.query.view.keys import PROGRESS

HEARTBEAT = PROGRESS + b"\0heartbeat"
"""Key of the `Heartbeat`."""

_SILENT = 5.0
"""The view looks at Kafka about once a second; it has lost Kafka if it has heard nothing for so long, seconds."""


@dataclass
class Progress:
    """The progress in one partition of a topic.

    Attributes:
        next: Offset of the next message to read.
        watermark: The writer's watermark, epoch milliseconds; `NEVER` if it is not known, or the topic has none.
        written: When Kafka took in the last message that was read, epoch milliseconds.
        end: Offset behind the last message that Kafka has.
        reached: Offset at which Kafka has said that there is nothing more.
        counts: Series of the partition by kind, open incidents and abnormal series.
    """

    next: int = 0
    watermark: int = NEVER
    written: int = 0
    end: int = 0
    reached: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Progress:
        """A copy that can be changed by itself."""
        return Progress(self.next, self.watermark, self.written, self.end, self.reached, Counter(self.counts))

    def stored(self) -> bytes:
        """The value in the database."""
        return orjson.dumps(self)

    @classmethod
    def of(cls, value: bytes) -> Progress:
        """The inverse of `stored`."""
        whole = orjson.loads(value)
        return cls(**{**whole, "counts": Counter(whole["counts"])})

    @property
    def behind(self) -> int:
        """Messages that were not read yet."""
        return max(0, self.end - max(self.next, self.reached))


@dataclass(frozen=True)
class Heartbeat:
    """What the process that reads Kafka says of itself.

    Attributes:
        heard: When it last heard from Kafka, epoch seconds.
        messages: Messages read since it began.
        refused: Those of them that could not be read and were skipped.
    """

    heard: float
    messages: int = 0
    refused: int = 0

    def stored(self) -> tuple[bytes, bytes]:
        """The database entry."""
        return HEARTBEAT, orjson.dumps(self)

    @classmethod
    def of(cls, value: bytes | None) -> Heartbeat:
        """The inverse of `stored`."""
        return cls(**orjson.loads(value)) if value else cls(0.0)


def key(topic: str, partition: int) -> bytes:
    """The key of the progress in a partition."""
    return PROGRESS + str(partition).encode() + b"\0" + topic.encode()


def age(places: Iterable[Progress], heard: float) -> dict[str, Any]:
    """How old answers are that come from some partitions.

    Args:
        places: The progress in each.
        heard: When the view last heard from Kafka, epoch seconds.

    Returns:
        ``messages_behind``: messages in Kafka that are not read; ``seconds_behind``: age of the last one that was read
        if there are any, or since when nothing was heard from Kafka; ``event_time``: up to it all windows were read,
        and judged.
    """
    partitions, now = list(places), time.time()
    silent = now - heard
    late = [now - it.written / 1000 for it in partitions if it.behind and it.written]
    seconds = max([*late, silent if silent > _SILENT else 0.0, 0.0])
    answer: dict[str, Any] = {
        "messages_behind": sum(one.behind for one in partitions),
        "seconds_behind": round(seconds, 3),
    }
    watermarks = [one.watermark for one in partitions if one.watermark != NEVER]
    return {"event_time": iso(min(watermarks)), **answer} if watermarks else answer
