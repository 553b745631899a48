"""Follows log files: what is new in each since the last look, across rotations and restarts.

A file is known by device, inode and its first bytes. What a rotation renamed is read to its end; a file that has
shrunk, or begins with other bytes, was emptied and is read from its beginning. Nothing here knows what lines mean.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.files import write_whole

_HEAD = 64
_READ = 4_000_000
"""The most bytes of a file that are read at a time."""
LONGEST = 65_536
"""The most bytes of a line with those that belong to it; what is longer is divided."""
_CONTINUES = (b" ", b"\t", b"Caused by:")


@dataclass
class Place:
    """How far a file has been read.

    Args:
        device: Number of the file system.
        inode: Number of the file in it.
        offset: The first byte that has not been taken.
        head: The first bytes of the file, at most 64, as hexadecimal digits.
    """

    device: int
    inode: int
    offset: int = 0
    head: str = ""


@dataclass(frozen=True)
class Read:
    """Lines that are new in a file; a line with those that continue it is one.

    Args:
        path: The path under which the file is followed.
        lines: The lines, without their ends.
    """

    path: str
    lines: list[bytes]


class FollowedFiles:
    """The files that fit some paths or globs.

    Args:
        patterns: Paths or globs.
        memory: The file in which places are remembered.
        from_start: Whether a file that is there at the first start ever is read from its beginning, not from its end.
    """

    def __init__(self, patterns: Sequence[str], memory: Path, from_start: bool = False) -> None:
        self._patterns, self._memory = patterns, memory
        known = json.loads(memory.read_bytes()) if memory.exists() else {}
        self._places = {path: Place(**place) for path, place in known.items()}
        self._left: dict[str, list[Place]] = {}
        self._held: dict[str, tuple[int, int]] = {}
        if not from_start:
            for path in self._paths():
                if path not in self._places and (found := _look(path)) is not None:
                    place, size = found
                    place.offset = size
                    self._places[path] = place

    def new(self) -> Iterator[Read]:
        """What is new in each file; asked for again, it goes on behind that. `save` remembers it over a restart."""
        for path in self._paths():
            found = _look(path)
            if found is None:
                continue
            there, size = found
            place = self._places.setdefault(path, there)
            if (place.device, place.inode) != (there.device, there.inode):
                renamed = _renamed(path, place)
                if renamed is not None:
                    yield from self._read(path, renamed, place, ended=True)
                place = self._places[path] = there
            if size < place.offset or not _same_head(path, place):
                place.offset, place.head = 0, there.head
            place.head = place.head if len(place.head) == 2 * _HEAD else there.head
            yield from self._read(path, path, place, ended=False)

    def save(self) -> None:
        """Remembers the places; all that `new` has returned counts as taken."""
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._memory, json.dumps({path: asdict(place) for path, place in self._places.items()}))

    def _paths(self) -> list[str]:
        found = (Path(each) for pattern in self._patterns for each in glob.glob(pattern, recursive=True))  # noqa: PTH207
        return sorted({str(path.absolute()) for path in found if path.is_file()})

    def _read(self, path: str, at: str, place: Place, ended: bool) -> Iterator[Read]:
        """The lines behind a place; the last one is held back for one look, as others may continue it.

        Args:
            path: The path under which the file is followed.
            at: Where it is now.
            place: The place, which is moved.
            ended: Whether nothing more comes.
        """
        while True:
            try:
                with Path(at).open("rb") as file:
                    file.seek(place.offset)
                    data = file.read(_READ)
            except OSError:
                return
            full = len(data) == _READ
            whole = data if ended and not full else data[: data.rfind(b"\n") + 1]
            if not whole and len(data) > LONGEST:
                whole = data[:LONGEST]
            lines, count, last = _lines(whole)
            state = (place.offset + last, place.offset + len(whole))
            if lines and not ended and not full and self._held.get(path) != state:
                self._held[path] = state
                lines, whole = lines[:count], whole[:last]
            else:
                self._held.pop(path, None)
            place.offset += len(whole)
            if lines:
                yield Read(path, lines)
            if not full:
                return


def _lines(data: bytes) -> tuple[list[bytes], int, int]:
    """The lines in some bytes, each with those that continue it; how many come before the last, and where it begins."""
    lines: list[bytes] = []
    at = last = count = 0
    for piece in data.split(b"\n"):
        line = piece.rstrip(b"\r")
        if lines and line.startswith(_CONTINUES) and len(lines[-1]) + len(line) < LONGEST:
            lines[-1] += b"\n" + line
        elif line.strip():
            last, count = at, len(lines)
            lines += [line[begin : begin + LONGEST] for begin in range(0, len(line), LONGEST)]
        at += len(piece) + 1
    return lines, count, last


def _look(path: str) -> tuple[Place, int] | None:
    """A file at its beginning, and its size; ``None`` if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            about = os.fstat(file.fileno())
            return Place(about.st_dev, about.st_ino, 0, file.read(_HEAD).hex()), about.st_size
    except OSError:
        return None


def _same_head(path: str, place: Place) -> bool:
    found = _look(path)
    return found is None or found[0].head.startswith(place.head)


def _renamed(path: str, place: Place) -> str | None:
    """Where a file is now that was followed under a path: a file in the same folder; ``None`` if there is none."""
    with os.scandir(Path(path).parent) as entries:
        for entry in entries:
            if entry.inode() == place.inode and entry.is_file() and entry.stat().st_dev == place.device:
                return entry.path if _same_head(entry.path, place) else None
    return None
