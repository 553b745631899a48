"""The topics that a job writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.spec.choice import check_choice
from engine.spec.errors import NewnormalError
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
            last message of each key. A record whose other columns are all null becomes a message without a value (a
            tombstone), which deletes the key. Empty: the key is the text of the column that decides the partition.

    Raises:
        NewnormalError: ``OUTPUT_MISFIT`` if there is no column by which the topic is partitioned; ``CHOICE_INVALID``.
    """

    topic: str
    record: type[Record]
    format: Format = "columnar"
    partitions: int = 4
    by: str = ""
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice(self.format, Format, f"format of output {self.topic}")
        name = self.record.__name__
        if not self.by and not self.record.identity:
            what = f"{name} has no identity, and no column is named by which the topic is partitioned"
        elif self.partitioned_by not in self.record.arrow_schema().names:
            what = f"{name} lacks {self.partitioned_by}, by which the topic is partitioned"
        else:
            return
        accepted = f'identity = ("<column>",) in the class {name}, or Output(..., by="<column>")'
        raise NewnormalError("OUTPUT_MISFIT", what, f"output {self.topic}", accepted, "no job")

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
