"""Locks between processes: an advisory lock on a file, which the kernel releases however its holder dies."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def try_lock(path: Path) -> IO[str] | None:
    """Takes the lock on ``path``; the file returned holds it until closed. ``None`` if another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = path.open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        return None
    return held


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock on ``path`` for the length of a block, after waiting for as long as another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
