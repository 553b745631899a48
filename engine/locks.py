"""Locks between processes: an advisory lock on a file, which the kernel releases however its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def try_lock(path: Path) -> IO[str] | None:
    """Takes the lock on ``path``; the file returned holds it until closed. ``None`` if another process has it.

    Raises:
        OSError: The file cannot be opened for writing, or is a link.
    """
    held = _opened(path)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        return None
    return held


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock on ``path`` for the length of a block, after waiting for as long as another process holds it."""
    with _opened(path) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _opened(path: Path) -> IO[str]:
    """The file, created if it is missing; not through a link, which would create or empty another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "a")
