"""A topic that a job writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.spec.record import Record


@dataclass(frozen=True)
class Output:
    """A topic that a job writes, partitioned by the first key column."""

    topic: str
    record: type[Record]
    format: Literal["columnar", "json"] = "columnar"
    partitions: int = 4
