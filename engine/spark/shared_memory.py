"""Copies of large segments of state in memory that all Python workers of a machine share.

A segment that is read through Spark passes RocksDB, the JVM, and a pickle that holds bytes as text, which together take
several times as long as what is then done with it. A shard may run in another worker each time, so a copy in the memory
of one process would seldom be there. The copies are never the truth: each has the digest of its content, Spark's state
says which digest it wants, and what is not here, or is older or newer, is read through Spark.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TextIO

from engine.state.kept_arrays import has_space

_MEMORY = Path("/dev/shm")
# what is made there can be opened by its owner only
_OURS = re.compile(r"newnormal-(\d+)-.+")
_LOCK = ".lock"
_held: dict[Path, TextIO] = {}
"""The lock of the folder of this process, held as long as it lives."""

_SPARE = 0.25
"""This share of the folder's space is left to others."""


class SharedMemory:
    """Copies of the segments of one shard of a job; the newest of each segment.

    Args:
        folder: Where they are; ``None``: nowhere, and nothing is found.
        shard: The shard.

    >>> with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
    ...     memory = SharedMemory(Path(name), 0)
    ...     memory.put("a", b"value", "digest")
    ...     memory.get("a", "digest"), memory.get("a", "other"), memory.get("b", "digest")
    (b'value', None, None)
    """

    def __init__(self, folder: Path | None, shard: int) -> None:
        self.folder, self.shard = folder, shard

    def get(self, name: str, digest: str) -> bytes | None:
        """The copy of a segment whose content has this digest, or ``None``."""
        if self.folder is None:
            return None
        try:
            with self._file(name).open("rb") as file:
                return file.read() if file.read(len(digest)) == digest.encode() else None
        except OSError:
            return None

    def put(self, name: str, value: bytes, digest: str) -> None:
        """Keeps a copy in place of the one of before; where there is no space, none is kept."""
        if self.folder is None:
            return
        file = self._file(name)
        new = file.with_name(f"{file.name}-{os.getpid()}")
        try:
            if not has_space(self.folder, len(value), _SPARE):
                self.remove(name)
                return
            with new.open("wb") as out:
                out.write(digest.encode())
                out.write(value)
            new.replace(file)  # so that a reader sees the whole of one or of the other
        except OSError:
            new.unlink(missing_ok=True)
            self.remove(name)

    def remove(self, name: str) -> None:
        """Removes the copy of a segment, if there is one."""
        if self.folder is not None:
            self._file(name).unlink(missing_ok=True)

    @property
    def unpacked(self) -> Path | None:
        """The folder of the shard for `engine.state.kept_arrays`."""
        return self.folder / f"{self.shard}" if self.folder else None

    def _file(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.shard}-{sha256(name.encode()).hexdigest()[:24]}"


def folder_of(job: str) -> Path | None:
    """The folder for a job of this process, with which it ends; ``None`` where the system has no such memory."""
    root = _root()
    if root is None:
        return None
    folder = root / job
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:  # the system has removed it, as at the end of a user's last session
        root.mkdir(0o700, exist_ok=True)
        if root.stat().st_uid != os.geteuid():
            raise
        _lock(root)
        folder.mkdir(exist_ok=True)
    return folder


@cache
def _root() -> Path | None:
    try:
        _sweep()
        root = Path(tempfile.mkdtemp(prefix=f"newnormal-{os.getpid()}-", dir=_MEMORY))
        _lock(root)
    except OSError:
        return None
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def _lock(root: Path) -> None:
    """Shows others that the process of a folder lives."""
    _held[root] = (root / _LOCK).open("w")
    flock(_held[root], LOCK_EX | LOCK_NB)


def _sweep() -> None:
    """Removes what processes have left that were killed."""
    for entry in _MEMORY.iterdir():
        if _OURS.fullmatch(entry.name) and _is_left(entry):
            shutil.rmtree(entry, ignore_errors=True)


def _is_left(root: Path) -> bool:
    """Whether the process of a folder is gone. It may be one of a container with this memory and numbers of its own."""
    try:
        with (root / _LOCK).open("r+") as file:
            flock(file, LOCK_EX | LOCK_NB)
            return True
    except FileNotFoundError:  # of a version without locks, or just made
        return not Path(f"/proc/{root.name.split('-')[1]}").exists()
    except OSError:
        return False
