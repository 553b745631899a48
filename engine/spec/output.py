"""The topics that a job writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.spec.choice import check_choice
from engine.spec.record import Record

Format = Literal["columnar", "json"]


@dataclass(frozen=True)
class Output:
    """A topic that a job writes, partitioned by one column.

    Args:
        topic: Its name.
        record: The type of its records.
        format: ``"columnar"``: few messages with many records each; ``"json"``: one message for each record.
        partitions: How many partitions the topic has.
        by: The column whose hash decides a record's partition; empty: the first one of the record type's identity.
        key: Columns that make up the key of a JSON message, as a JSON object; of a compacted topic, Kafka keeps the
            last message of each key. Empty: the key is the text of the column that decides the partition.
    """

    topic: str
    record: type[Record]
    format: Format = "columnar"
    partitions: int = 4
    by: str = ""
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice(self.format, Format, f"format of output {self.topic}")

    @property
    def partitioned_by(self) -> str:
        """The column that decides a record's partition."""
        return self.by or self.record.identity[0]


@dataclass(frozen=True)
class Side:
    """A further output of a job, written in the same transaction as the main one.

    Args:
        name: The name by which the user's own logic emits to it.
        output: Its topic.
        where: SQL condition on the results of the main output: results for which it is true are written here too.
            Empty: only what the user's own logic emits to it by name is written.
    """

    name: str
    output: Output
    where: str = ""
