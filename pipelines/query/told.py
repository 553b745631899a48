"""What was told to whom: a line for each message that a channel took, beside the database that one process has open.

The console reads it while `newnormal notify run` writes. There are two files, the newer of which is written; when it is
full it takes the place of the older one. So what is kept is bounded, and the last messages are always there.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

_FULL = 1_000_000
"""Bytes from which on a file is full."""

_ONE_AT_A_TIME = threading.Lock()
"""Held while a line is added: each channel has a thread."""


@dataclass(frozen=True)
class SentMessage:
    """A message that a channel took.

    Attributes:
        at: When it took it, epoch milliseconds.
        channel: Name of the channel.
        state: The state of the news; ``summary`` for several incidents in one message.
        title: Its first line.
        incidents: Ids of the incidents that it tells of.
    """

    at: int
    channel: str
    state: str
    title: str
    incidents: tuple[str, ...]


class ToldFiles:
    """The two files of one namespace.

    Args:
        folder: The folder of the database, beside which they are.
        full: Bytes from which on a file is full.
    """

    def __init__(self, folder: Path, full: int = _FULL) -> None:
        self._newer, self._full = folder.with_name(f"{folder.name}-told.jsonl"), full
        self._older = folder.with_name(f"{folder.name}-told-before.jsonl")

    def add(self, message: SentMessage) -> None:
        """Adds a line. A disk that is full loses it: nothing but the console rests on it."""
        with _ONE_AT_A_TIME, suppress(OSError):
            self._newer.parent.mkdir(parents=True, exist_ok=True)
            if self._newer.exists() and self._newer.stat().st_size >= self._full:
                self._newer.replace(self._older)
            with self._newer.open("ab", buffering=0) as file:
                file.write(orjson.dumps(asdict(message)) + b"\n")

    def read(self) -> Sequence[SentMessage]:
        """What is known, the oldest message first; a line that a crash has cut is left out."""
        return [each for path in (self._older, self._newer) for each in _lines(path)]


def _lines(path: Path) -> Sequence[SentMessage]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    messages = []
    for line in lines:
        with suppress(ValueError, TypeError, KeyError):
            fields = orjson.loads(line)
            messages.append(SentMessage(**fields | {"incidents": tuple(fields["incidents"])}))
    return messages
