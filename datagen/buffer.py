"""A queue of messages on disk, bounded by size and age: what Kafka has not acknowledged yet survives its writer.

It is an SQLite database: a row has some messages of one topic, in order, and a unique name. This module does not know
Kafka.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from datagen.outage import Dropped
from engine.private_files import private_folder
from engine.spec.errors import NewnormalError

_ROW = 1_000
"""Largest number of messages in a row."""
_TABLE = """\
CREATE TABLE IF NOT EXISTS waiting (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, topic TEXT NOT NULL, taken INTEGER NOT NULL,
  messages INTEGER NOT NULL, body BLOB NOT NULL)
"""
_INSERT = "INSERT INTO waiting (name, topic, taken, messages, body) VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class Parcel:
    """Messages of one topic that were put into the buffer together.

    Args:
        number: Position in the queue.
        name: Unique name, also among all buffers; name and index identify a message.
        topic: The topic of the messages.
        taken: When they were put into the buffer, epoch ms.
        keys: The key of each message.
        values: The value of each message; ``None`` for a message that has been delivered.
    """

    number: int
    name: str
    topic: str
    taken: int
    keys: list[str]
    values: list[str | None]

    @property
    def left(self) -> list[int]:
        """Indices of the messages that have not been delivered."""
        return [index for index, value in enumerate(self.values) if value is not None]


class DiskBuffer:
    """A buffer in one file, for one process; its methods may be called from several threads.

    Messages that were handed over are not dropped any more, as Kafka may have taken them.

    Args:
        path: The file; it is created if it does not exist.
        size: Largest number of bytes; the oldest messages are dropped first.
        age: Milliseconds after which messages are dropped.
        dropped: Function that is called with what was dropped.
        now: Function that returns the time, epoch milliseconds.

    Raises:
        NewnormalError: ``BUFFER_UNUSABLE`` if the file cannot be written, is no buffer, or another process has it.
    """

    def __init__(
        self,
        path: Path,
        size: int,
        age: int,
        dropped: Callable[[Dropped], None],
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.path, self._size, self._age, self._dropped, self._now = path, size, age, dropped, now
        self._lock, self._handed = threading.Lock(), 0
        try:
            private_folder(path.parent)
            self._base = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            for statement in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = NORMAL"):
                self._base.execute(f"PRAGMA {statement}")
            self._base.execute(_TABLE)
            self._waiting = int(self._number("SELECT coalesce(sum(messages), 0) FROM waiting"))
        except (OSError, sqlite3.Error) as error:
            taken = "locked" in str(error)
            what = "another process has this buffer: a source of this name runs already" if taken else str(error)
            accepted = "one process at a time; or another name (`--entity`), namespace or state directory"
            accepted = accepted if taken else "a file of our own that can be written; a broken one may be deleted"
            raise NewnormalError("BUFFER_UNUSABLE", what, str(path), accepted, "nothing was started") from None
        with self._lock:
            self._give_up(self._now())

    @property
    def waiting(self) -> int:
        """Messages in the buffer."""
        return self._waiting

    @property
    def last(self) -> int:
        """Number of the newest row; 0 without any."""
        with self._lock:
            return self._number("SELECT coalesce(max(number), 0) FROM waiting")

    def append(self, topic: str, keys: Sequence[str], values: Sequence[str]) -> None:
        """Adds messages, and drops those beyond the bounds of size and age."""
        now, rows = self._now(), []
        for first in range(0, len(values), _ROW):
            some = list(keys[first : first + _ROW]), list(values[first : first + _ROW])
            rows.append((secrets.token_hex(8), topic, now, len(some[0]), _packed(*some)))
        with self._lock:
            try:
                with self._transaction():
                    self._base.executemany(_INSERT, rows)
                self._waiting += len(values)
                self._give_up(now)
            except sqlite3.Error as error:
                self._dropped(Dropped(len(values), now, now, f"the buffer {self.path} cannot be written: {error}"))

    def head(self, messages: int) -> list[Parcel]:
        """The oldest messages: as many as asked for, or one row if that has more."""
        return self._take(0, messages)

    def hand_over(self, messages: int) -> list[Parcel]:
        """Hands over the next messages: as many as asked for, or one row if that has more."""
        parcels = self._take(self._handed, messages)
        self._handed = parcels[-1].number if parcels else self._handed
        return parcels

    def take_back(self) -> None:
        """Makes `hand_over` return again the messages that were handed over but not removed."""
        self._handed = 0

    def done(self, parcels: Iterable[int]) -> None:
        """Removes rows whose messages were all delivered, by their numbers."""
        numbers = [(number,) for number in parcels]
        with self._lock, self._transaction():
            gone = sum(self._messages(number) for (number,) in numbers)
            self._base.executemany("DELETE FROM waiting WHERE number = ?", numbers)
        self._waiting -= gone

    def shrink(self, parcel: Parcel) -> None:
        """Replaces a row by its messages that are left."""
        if not parcel.left:
            self.done([parcel.number])
            return
        row = len(parcel.left), _packed(parcel.keys, parcel.values), parcel.number
        with self._lock, self._transaction():
            self._waiting += row[0] - self._messages(parcel.number)
            self._base.execute("UPDATE waiting SET messages = ?, body = ? WHERE number = ?", row)

    def close(self) -> None:
        """Closes the file; waiting messages stay in it."""
        with self._lock:
            self._base.close()

    def _take(self, after: int, messages: int) -> list[Parcel]:
        parcels: list[Parcel] = []
        with self._lock:
            rows = self._base.execute("SELECT * FROM waiting WHERE number > ? ORDER BY number", (after,))
            for number, name, topic, taken, count, body in rows:
                if parcels and count > messages:
                    break
                messages -= count
                parcels.append(Parcel(number, name, topic, taken, *orjson.loads(zlib.decompress(body))))
            rows.close()
        return parcels

    def _give_up(self, now: int) -> None:
        """Drops messages that are too old, then the oldest ones until the rest is small enough."""
        old = "taken < ? AND number > ?", (now - self._age, self._handed)
        self._evict(*old, f"they waited for more than {self._age / 3_600_000:g} h (setting buffer.age)")
        why = f"the buffer holds no more than {self._size / 2**20:g} MB (setting buffer.size)"
        oldest = "number = (SELECT min(number) FROM waiting WHERE number > ?)", (self._handed,)
        while self._used() > self._size and self._evict(*oldest, why):
            pass

    def _evict(self, which: str, values: tuple[int, ...], why: str) -> bool:
        columns = "coalesce(sum(messages), 0), min(taken), max(taken)"
        count, first, last = self._base.execute(f"SELECT {columns} FROM waiting WHERE {which}", values).fetchone()
        if count:
            self._base.execute(f"DELETE FROM waiting WHERE {which}", values)
            self._waiting -= count
            self._dropped(Dropped(count, first, last, why))
        return bool(count)

    def _used(self) -> int:
        """Number of bytes of the file that are in use."""
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._number("PRAGMA page_size")

    def _messages(self, number: int) -> int:
        return self._number("SELECT coalesce(sum(messages), 0) FROM waiting WHERE number = ?", number)

    def _number(self, query: str, *values: int) -> int:
        (number,) = self._base.execute(query, values).fetchone()
        return int(number)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN")
        try:
            yield
        except BaseException:
            if self._base.in_transaction:  # SQLite itself has rolled back where the disk is full
                self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")


def _packed(keys: Sequence[str], values: Sequence[str | None]) -> bytes:
    return zlib.compress(orjson.dumps([keys, values]), 1)
