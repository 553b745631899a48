"""Where the archive keeps what, and what one write to it holds.

    telemetry/day=2026-11-22/part-3f2a9c01-000000012.parquet   records of an event-time day, for any tool
    _messages/telemetry/3f2a9c01-000000012.parquet             the messages that these records came in
    _writing/, _importing/                                     files that are being written

A write takes one micro-batch of one topic. It has one file of records in each day that it has records of, and one file
of messages, which is put in its place last: the write is complete when that file is there. Both names come from the
checkpoint's identity and the number of the micro-batch, so a repeated micro-batch replaces its own files.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.spec.errors import NewnormalError

DAY_MS = 86_400_000
FIRST_MS, LAST_MS = 0, 4_102_444_800_000
"""Event times that have a day: from 1970 to 2100."""

_PLACE = {"partition": pa.int32(), "offset": pa.int64()}
_TIMES = {"arrived": pa.int64(), "watermark": pa.int64()}

MESSAGES = pa.schema({**_PLACE, **_TIMES, "rows": pa.int32(), "value": pa.binary()})
"""Columns of a file of messages. A message that is no Arrow batch of the topic's records is kept in ``value``."""

WHOLE = -1
"""Number of rows of a message that is kept in ``value``."""

KAFKA_COLUMNS = pa.schema({**_PLACE, "row": pa.int32(), **_TIMES})
"""Columns of a file of records beside those of the record: its message, its place in it, and the message's arrival."""

IMPORTED = "import-"
"""How the names of writes begin that hold history from elsewhere, see `pipelines.history`."""

_META = b"newnormal"

Places = Mapping[int, int]
"""An offset for each partition."""


@dataclass(frozen=True)
class Write:
    """One complete write to the archive.

    Attributes:
        name: Its name; see `write_name`.
        start: Where each partition began.
        end: The next offset of each partition, behind markers of transactions that follow the last message; never less
            than its start, with which it is equal where the archive had all that the micro-batch had of a partition.
        count: Number of messages.
        days: Days of which it has records, e.g. ``2026-11-22``.
        origin: Where imported history comes from, for people; empty if the messages are those of the log.
    """

    name: str
    start: Places
    end: Places
    count: int = 0
    days: tuple[str, ...] = ()
    origin: str = ""

    def metadata(self) -> dict[bytes, bytes]:
        """The write as metadata of its file of messages."""
        content = {"start": self.start, "end": self.end, "count": self.count, "days": self.days}
        content |= {"origin": self.origin} if self.origin else {}
        return {_META: json.dumps(content).encode()}


@dataclass(frozen=True)
class TopicFolder:
    """The folders of one topic.

    Args:
        root: Folder of the archive.
        topic: Full name of the topic.
    """

    root: Path
    topic: str

    @property
    def records(self) -> Path:
        """Folder of the days."""
        return self.root / self.topic

    @property
    def messages(self) -> Path:
        """Folder of the files of messages."""
        return self.root / "_messages" / self.topic

    @property
    def writing(self) -> Path:
        """Folder of files that are being written."""
        return self.root / "_writing" / self.topic

    @property
    def importing(self) -> Path:
        """Folder of files of history that are being written, by another process than those of the log."""
        return self.root / "_importing" / self.topic

    def day(self, day: str) -> Path:
        """Folder of a day."""
        return self.records / f"day={day}"

    def part(self, day: str, name: str) -> Path:
        """The file of records of a write in a day."""
        return self.day(day) / f"part-{name}.parquet"

    def listed(self, name: str) -> Path:
        """The file of messages of a write."""
        return self.messages / f"{name}.parquet"

    def days(self) -> list[str]:
        """All days that there are records of, sorted."""
        return sorted(folder.name.removeprefix("day=") for folder in self.records.glob("day=*"))

    def writes(self) -> list[Write]:
        """All complete writes, in the order of the log.

        Raises:
            NewnormalError: ``ARCHIVE_BROKEN`` if a file of messages cannot be read.
        """
        complete = [_read(file) for file in self.messages.glob("*.parquet")]
        return sorted(complete, key=lambda write: (sum(write.end.values()), sum(write.start.values())))

    def delete_day(self, day: str) -> None:
        """Deletes a day, for readers at once; a repetition completes what was interrupted."""
        aside = self.root / "_deleting" / self.topic / day
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(parents=True, exist_ok=True)
        self.day(day).rename(aside)
        shutil.rmtree(aside)

    def forget(self) -> None:
        """Removes the lists of messages of the oldest writes, all records of which were deleted."""
        there = set(self.days())
        for write in self.writes():
            if not there or there & set(write.days) or min(there) < max(write.days, default=""):
                return
            self.listed(write.name).unlink(missing_ok=True)

    def check_topic(self, identity: str) -> None:
        """Keeps the identity of the topic, and refuses another one: its offsets mean other messages.

        Raises:
            NewnormalError: ``ARCHIVE_OTHER_TOPIC``.
        """
        file = self.messages.with_name(f"{self.topic}.id")
        kept = file.read_text() if file.exists() else identity
        if kept != identity:
            what = f"the archive is that of topic {self.topic} with identity {kept}, now it has {identity}"
            accepted = f"another archive.path; or {self.records} and {self.messages} moved away, with {file.name}"
            raise NewnormalError("ARCHIVE_OTHER_TOPIC", what, str(self.root), accepted, "nothing was written")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(identity)


def write_name(checkpoint: str, batch: int) -> str:
    """The name of a write.

    Args:
        checkpoint: The identity of the checkpoint.
        batch: Number of the micro-batch.

    >>> write_name("3f2a9c01-77aa-4c1e-9d55-0123456789ab", 12)
    '3f2a9c01-000000012'
    """
    return f"{checkpoint[:8]}-{batch:09d}"


def imported_name(begin: int, end: int) -> str:
    """The name of a write of imported history, from its first event time and the one behind its last, epoch ms.

    >>> imported_name(1_795_219_200_000, 1_795_222_800_000)
    'import-1795219200000-1795222800000'
    """
    return f"{IMPORTED}{begin:013d}-{end:013d}"


def imported_times(name: str) -> tuple[int, int] | None:
    """The first event time of a write of imported history and the one behind its last; ``None`` of another write.

    >>> imported_times("import-1795219200000-1795222800000"), imported_times("3f2a9c01-000000012")
    ((1795219200000, 1795222800000), None)
    """
    if not name.startswith(IMPORTED):
        return None
    begin, end = name.removeprefix(IMPORTED).split("-")
    return int(begin), int(end)


def day_of(number: int) -> str:
    """The day with a number of days since 1970.

    >>> day_of(20_779)
    '2026-11-22'
    """
    return f"{datetime.fromtimestamp(number * 86_400, UTC):%Y-%m-%d}"


def pieces(rows: pa.Table, sizes: NDArray[np.int64], most: int) -> Iterator[pa.Table]:
    """Splits rows, so that each piece has about a size.

    Args:
        rows: The rows.
        sizes: The size of each, shape (n,).
        most: The size of a piece.
    """
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // most)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), rows.num_rows]) if rows.num_rows else ():
        yield rows.slice(begin, end - begin)


def place(written: Path, final: Path) -> None:
    """Puts a finished file in its place, at once and for good: it survives a power failure from then on."""
    with written.open("rb") as file:
        os.fsync(file.fileno())
    final.parent.mkdir(parents=True, exist_ok=True)
    written.replace(final)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(file: Path) -> Write:
    try:
        content = json.loads((pq.read_schema(file).metadata or {})[_META])
        start, end = ({int(p): int(offset) for p, offset in content[name].items()} for name in ("start", "end"))
        end = {p: max(offset, start.get(p, 0)) for p, offset in end.items()}  # 0.1 wrote less, where it had no news
        days, origin = tuple(content["days"]), str(content.get("origin", ""))
        return Write(file.stem, start, end, int(content["count"]), days, origin)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        accepted = "the file as the archive job wrote it, e.g. from a backup"
        raise NewnormalError("ARCHIVE_BROKEN", f"{file.name}: {error}", str(file.parent), accepted) from None
